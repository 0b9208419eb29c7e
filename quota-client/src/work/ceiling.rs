use std::time::{Duration, Instant};

/// The most CPU time that a piece of work can have spent: what all processors give in the time since it began, and a
/// tenth, for clocks that are not exact. What a counter of the kernel says beyond that is wrong, and not charged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceiling {
    processors: u32,
    /// When the work, or the first of its processes, began: by the clock of the processes, which no test pauses.
    began: Instant,
    counted: Duration,
}

impl Ceiling {
    pub(super) const fn new(processors: u32, began: Instant) -> Self {
        Self { processors, began, counted: Duration::ZERO }
    }

    /// One of its processes began then.
    pub(super) fn began(&mut self, then: Instant) {
        self.began = self.began.min(then);
    }

    /// How much of this counts.
    pub(super) fn take(&mut self, cpu: Duration, now: Instant) -> Duration {
        let elapsed = now.saturating_duration_since(self.began);
        let most = elapsed.saturating_mul(self.processors).saturating_mul(11) / 10;
        let taken = cpu.min(most.saturating_sub(self.counted));
        self.counted += taken;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn f19_no_cost_is_more_than_all_processors_give_and_a_tenth() {
        let start = Instant::now();
        let mut ceiling = Ceiling::new(2, start);
        assert_eq!(ceiling.take(millis(150), start + millis(100)), millis(150));
        assert_eq!(ceiling.take(millis(150), start + millis(100)), millis(70), "two samples at once");
        assert_eq!(ceiling.take(Duration::MAX, start + millis(200)), millis(220));
        assert_eq!(ceiling.take(millis(10), start), Duration::ZERO, "the clock steps back");
        assert_eq!(ceiling.take(millis(100), start + millis(1000)), millis(100));
    }

    #[test]
    fn f19_the_most_there_is_does_not_overflow() {
        let start = Instant::now();
        let mut ceiling = Ceiling::new(u32::MAX, start);
        let late = start + Duration::from_secs(60 * 60 * 24 * 365 * 100);
        assert!(ceiling.take(Duration::MAX, late) > Duration::ZERO);
        assert!(ceiling.take(Duration::MAX, late) < Duration::MAX);
    }

    #[test]
    fn a_process_that_began_before_the_work_has_the_time_since_then() {
        let start = Instant::now();
        let mut ceiling = Ceiling::new(1, start + millis(100));
        ceiling.began(start);
        ceiling.began(start + millis(300));
        assert_eq!(ceiling.take(millis(500), start + millis(200)), millis(220));
    }
}
