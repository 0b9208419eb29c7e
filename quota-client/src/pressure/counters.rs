use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Counters of the kernel, at this sample and at the one before. One that goes down, since its cgroup was made anew,
/// has gained nothing in that step; each is guarded for itself. What a sample does not read is forgotten, so there are
/// never more than it reads.
#[derive(Debug, Default)]
pub(super) struct Counters {
    at: Option<Instant>,
    /// Seconds since the sample before; none at the first, and where no time has passed.
    elapsed: Option<f64>,
    before: HashMap<Key, u64>,
    now: HashMap<Key, u64>,
}

type Key = (PathBuf, &'static str);

impl Counters {
    /// Begins a sample.
    pub(super) fn step(&mut self, now: Instant) {
        let elapsed = self.at.map(|at| now.saturating_duration_since(at).as_secs_f64());
        self.elapsed = elapsed.filter(|seconds| *seconds > 0.0);
        self.at = Some(now);
        self.before = std::mem::take(&mut self.now);
    }

    /// What a counter gained since the sample before, where it was read there.
    pub(super) fn gained(&mut self, source: &Path, name: &'static str, count: u64) -> Option<u64> {
        let key = (source.to_owned(), name);
        let before = self.before.get(&key).copied();
        self.now.insert(key, count);
        before.map(|before| count.saturating_sub(before))
    }

    /// What a counter gained, a second.
    pub(super) fn rate(&mut self, source: &Path, name: &'static str, count: u64) -> Option<f64> {
        let gained = self.gained(source, name, count)?;
        self.elapsed.map(|seconds| gained as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn f19_a_counter_that_goes_down_gains_nothing_in_that_step() {
        let (mut counters, start) = (Counters::default(), Instant::now());
        let mut at = |second, usage, throttled| {
            counters.step(start + Duration::from_secs(second));
            let usage = counters.gained(Path::new("/cg"), "usage_usec", usage);
            (usage, counters.rate(Path::new("/cg"), "throttled_usec", throttled))
        };
        assert_eq!(at(0, 16_405_214, 100), (None, None), "there is nothing to compare with");
        assert_eq!(at(1, 781_274, 200), (Some(0), Some(100.0)), "each for itself");
        assert_eq!(at(2, 900_000, 40), (Some(118_726), Some(0.0)));
        assert_eq!(at(2, 900_001, 90), (Some(1), None), "no time has passed");
        assert_eq!(at(4, 900_002, 100), (Some(1), Some(5.0)));
    }

    #[test]
    fn what_a_sample_does_not_read_is_forgotten() {
        let (mut counters, start) = (Counters::default(), Instant::now());
        counters.step(start);
        counters.gained(Path::new("/cg/removed"), "usage_usec", 1);
        counters.step(start);
        counters.step(start);
        assert_eq!(counters.gained(Path::new("/cg/removed"), "usage_usec", 2), None);
        assert_eq!((counters.before.len(), counters.now.len()), (0, 1));
    }
}
