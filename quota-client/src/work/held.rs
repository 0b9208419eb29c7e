use std::time::Instant;

/// Memory that is held, summed over time. What is sampled is taken to be held since the sample before: exact for what
/// stays the same, and within one interval for what changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    bytes: u64,
    since: Instant,
}

impl Held {
    /// Nothing yet.
    pub(crate) const fn new(now: Instant) -> Self {
        Self { bytes: 0, since: now }
    }

    /// How much was held at the last sample.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// So much is held now. Returns the byte-seconds since the last sample.
    pub(crate) fn sampled(&mut self, bytes: u64, now: Instant) -> u64 {
        self.bytes = bytes;
        self.until(now)
    }

    /// What was last sampled was held until now, such as the end of a process, which holds nothing that could be
    /// sampled. Returns the byte-seconds since the last sample.
    pub(crate) fn until(&mut self, now: Instant) -> u64 {
        let micros = now.saturating_duration_since(self.since).as_micros();
        self.since = self.since.max(now);
        u64::try_from(u128::from(self.bytes).saturating_mul(micros) / 1_000_000).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn memory_counts_for_as_long_as_it_is_held() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut held = Held::new(start);
        assert_eq!(held.sampled(1000, at(500)), 500);
        assert_eq!(held.sampled(4000, at(1500)), 4000);
        assert_eq!(held.sampled(7000, at(1500)), 0, "two samples at once");
        assert_eq!(held.until(at(1600)), 700);
        assert_eq!(held.sampled(0, at(9000)), 0);
    }

    #[test]
    fn a_sample_that_comes_late_takes_nothing_back_and_the_most_is_held_down() {
        let start = Instant::now();
        let mut held = Held::new(start + Duration::from_secs(5));
        assert_eq!(held.sampled(1000, start), 0);
        assert_eq!(held.until(start + Duration::from_secs(6)), 1000);
        assert_eq!(held.sampled(u64::MAX, start + Duration::from_secs(60)), u64::MAX);
    }
}
