//! Who is heaviest of any number of keys, in bounded memory.

mod lately;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

pub use lately::{Lately, Slices};

/// Amounts by key, of which only the heaviest are kept: a summary after Misra and Gries, pruned in batches.
///
/// Where twice as many keys are held as are to be kept, the amount of the lightest but the kept is taken from every key,
/// and those with nothing left are forgotten. So what is told of a key is never above the truth, and at most
/// [`Heaviest::missed`] below it, which is at most the sum of all amounts divided by `keep + 1`. An amount costs one look-up;
/// pruning visits each key once for each that came.
#[derive(Clone, Debug)]
pub struct Heaviest<K, N = ()> {
    keep: usize,
    kept: HashMap<K, Kept<N>>,
    missed: u64,
}

/// A key's amount, and what was noted with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept<N = ()> {
    /// How much of it came, less what was missed.
    pub amount: u64,
    /// The largest of what was noted.
    pub note: N,
}

impl<K: Eq + Hash, N: Copy + Ord> Heaviest<K, N> {
    /// Nothing yet; `keep` keys at the least are told apart, and twice as many are held at the most.
    pub fn new(keep: usize) -> Self {
        Self { keep, kept: HashMap::new(), missed: 0 }
    }

    /// Nothing yet; every key is kept, and nothing missed. How many come is the caller's to bound.
    pub fn of_all() -> Self {
        Self::new(usize::MAX)
    }

    /// Adds to the amount of a key; `own` makes it where it is new. An amount of 0 is none.
    pub fn add<Q>(&mut self, key: &Q, amount: u64, note: N, own: impl FnOnce() -> K)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if amount == 0 {
            return;
        }
        if let Some(kept) = self.kept.get_mut(key) {
            kept.amount = kept.amount.saturating_add(amount);
            kept.note = kept.note.max(note);
            return;
        }
        self.insert(own(), Kept { amount, note });
    }

    /// Adds what another summary tells.
    pub fn absorb(&mut self, told: impl IntoIterator<Item = (K, Kept<N>)>, missed: u64) {
        self.missed = self.missed.saturating_add(missed);
        for (key, Kept { amount, note }) in told {
            if let Some(kept) = self.kept.get_mut(&key) {
                kept.amount = kept.amount.saturating_add(amount);
                kept.note = kept.note.max(note);
            } else {
                self.insert(key, Kept { amount, note });
            }
        }
    }

    fn insert(&mut self, key: K, kept: Kept<N>) {
        self.kept.insert(key, kept);
        if self.kept.len() >= self.keep.max(1).saturating_mul(2) {
            self.prune();
        }
    }

    /// The heaviest keys, at most so many, heaviest first.
    pub fn heaviest(&self, most: usize) -> Vec<(&K, Kept<N>)> {
        let mut all: Vec<_> = self.kept.iter().map(|(key, kept)| (key, *kept)).collect();
        if most < all.len() {
            all.select_nth_unstable_by_key(most, |(_, kept)| Reverse(kept.amount));
            all.truncate(most);
        }
        all.sort_unstable_by_key(|(_, kept)| Reverse(kept.amount));
        all
    }

    /// What is told of a key.
    pub fn get<Q>(&self, key: &Q) -> Option<&Kept<N>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.kept.get(key)
    }

    /// The most that came of any key beside what is told of it; 0 where everything is told.
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// How many keys are held.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether nothing came.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    fn prune(&mut self) {
        let mut amounts: Vec<u64> = self.kept.values().map(|kept| kept.amount).collect();
        let (_, lightest, _) = amounts.select_nth_unstable_by_key(self.keep, |amount| Reverse(*amount));
        let taken = *lightest;
        self.missed = self.missed.saturating_add(taken);
        self.kept.retain(|_, kept| {
            kept.amount -= kept.amount.min(taken);
            kept.amount > 0
        });
    }
}
