use std::borrow::Borrow;
use std::collections::VecDeque;
use std::hash::Hash;

use super::{Heaviest, Kept};

/// Who was heaviest lately: a [`Heaviest`] for the slice of time that is open, and the heaviest of each of the slices before
/// it. The caller numbers the slices; a number below the open one counts as the open one.
#[derive(Clone, Debug)]
pub struct Lately<K, N = ()> {
    slice: u64,
    open: Heaviest<K, N>,
    closed: VecDeque<Closed<K, N>>,
    slices: Slices,
}

/// How much is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// Slices before the open one.
    pub before: u64,
    /// Keys told apart in the open slice; twice as many are held.
    pub open: usize,
    /// Keys held of each slice before it.
    pub closed: usize,
}

#[derive(Clone, Debug)]
struct Closed<K, N> {
    slice: u64,
    kept: Vec<(K, Kept<N>)>,
    missed: u64,
}

impl<K: Clone + Eq + Hash, N: Copy + Ord> Lately<K, N> {
    /// Nothing yet.
    pub fn new(slices: Slices) -> Self {
        Self { slice: 0, open: Heaviest::new(slices.open), closed: VecDeque::new(), slices }
    }

    /// Adds to the amount of a key in a slice; `own` makes the key where it is new.
    pub fn add<Q>(&mut self, slice: u64, key: &Q, amount: u64, note: N, own: impl FnOnce() -> K)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.advance(slice);
        self.open.add(key, amount, note, own);
    }

    /// What came in a slice and those before it that count.
    pub fn sum(&mut self, slice: u64) -> Heaviest<K, N> {
        self.advance(slice);
        let mut sum = Heaviest::of_all();
        sum.absorb(self.open.kept.iter().map(|(key, kept)| (key.clone(), *kept)), self.open.missed());
        for closed in &self.closed {
            sum.absorb(closed.kept.iter().cloned(), closed.missed);
        }
        sum
    }

    fn advance(&mut self, slice: u64) {
        if slice <= self.slice {
            return;
        }
        let open = std::mem::replace(&mut self.open, Heaviest::new(self.slices.open));
        if !open.is_empty() {
            self.closed.push_back(open.close(self.slice, self.slices.closed));
        }
        self.slice = slice;
        let oldest = slice.saturating_sub(self.slices.before);
        while self.closed.front().is_some_and(|closed| closed.slice < oldest) {
            self.closed.pop_front();
        }
    }
}

impl<K: Clone + Eq + Hash, N: Copy + Ord> Heaviest<K, N> {
    /// The heaviest, exact but for what was missed; what is dropped was at most that much.
    fn close(&self, slice: u64, most: usize) -> Closed<K, N> {
        let heaviest = self.heaviest(most + 1);
        let dropped = heaviest.get(most).map_or(0, |(_, kept)| kept.amount);
        let kept = heaviest.into_iter().take(most).map(|(key, kept)| (key.clone(), kept)).collect();
        Closed { slice, kept, missed: self.missed.saturating_add(dropped) }
    }
}
