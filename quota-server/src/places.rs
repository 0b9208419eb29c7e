//! So many of something at a time for each who has some, so that nobody takes all of it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// How many places each has; who has none is not in it.
pub(crate) struct Places<K>(Arc<Mutex<HashMap<K, usize>>>);

/// A place, until it is dropped.
pub(crate) struct Place<K: Eq + Hash> {
    places: Places<K>,
    owner: K,
}

impl<K: Eq + Hash + Clone> Places<K> {
    /// One more for this owner; none where he has as many as he may.
    pub(crate) fn take(&self, owner: K, most: usize) -> Option<Place<K>> {
        let mut all = self.0.lock();
        match all.get_mut(&owner) {
            Some(count) if *count >= most => return None,
            Some(count) => *count += 1,
            None => drop(all.insert(owner.clone(), 1)),
        }
        Some(Place { places: self.clone(), owner })
    }
}

impl<K: Eq + Hash> Place<K> {
    /// Whose it is.
    pub(crate) const fn owner(&self) -> &K {
        &self.owner
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut all = self.places.0.lock();
        if let Some(count) = all.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.owner);
            }
        }
    }
}

impl<K> Clone for Places<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Default for Places<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_so_many_and_is_forgotten_with_the_last() {
        let places = Places::default();
        let mut taken: Vec<_> = (0..3).filter_map(|_| places.take("one", 2)).collect();
        assert_eq!(taken.len(), 2);
        taken.extend(places.take("other", 2));
        assert_eq!(taken.iter().map(|place| *place.owner()).collect::<Vec<_>>(), ["one", "one", "other"]);
        drop(taken.remove(0));
        let again = [places.take("one", 2), places.take("one", 2)];
        assert!(again[0].is_some() && again[1].is_none());
        drop((taken, again));
        assert!(places.0.lock().is_empty());
    }
}
