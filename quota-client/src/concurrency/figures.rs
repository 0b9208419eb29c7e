use std::time::Duration;

use super::refusal::Reason;

/// What one set of limits is doing, and what it did since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// The limit in force, per key.
    pub(crate) limit: usize,
    /// Permits that are held, of all keys together.
    pub(crate) in_flight: usize,
    /// Requests that wait for one, of all keys together.
    pub(crate) queued: usize,
    /// Repositories or addresses that have a request in flight.
    pub(crate) keys: usize,
    /// How long those that got a permit waited for it.
    pub(crate) waits: Waits,
    /// How many got none, in the order of [`Reason::ALL`].
    pub(crate) refused: [u64; Reason::ALL.len()],
}

/// How many waits were how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// By upper bound; the last has none. Not cumulative.
    pub(crate) counts: [u64; Self::BOUNDS.len() + 1],
    /// All of them together.
    pub(crate) sum: Duration,
}

impl Waits {
    /// The upper bounds, inclusive. The first holds those who did not wait.
    pub(crate) const BOUNDS: [Duration; 8] = [
        Duration::ZERO,
        Duration::from_millis(10),
        Duration::from_millis(100),
        Duration::from_secs(1),
        Duration::from_secs(5),
        Duration::from_secs(15),
        Duration::from_secs(60),
        Duration::from_secs(300),
    ];

    pub(crate) fn add(&mut self, wait: Duration) {
        let bucket = Self::BOUNDS.iter().position(|bound| wait <= *bound).unwrap_or(Self::BOUNDS.len());
        self.counts[bucket] += 1;
        self.sum = self.sum.saturating_add(wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_counted_at_its_bound() {
        let mut waits = Waits::default();
        for millis in [0, 0, 1, 10, 11, 300_000, 300_001] {
            waits.add(Duration::from_millis(millis));
        }
        assert_eq!(waits.counts, [2, 2, 1, 0, 0, 0, 0, 1, 1]);
        assert_eq!(waits.sum, Duration::from_millis(600_023));
    }
}
