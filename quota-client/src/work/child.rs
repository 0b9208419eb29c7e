use std::time::{Duration, Instant};

use super::held::Held;
use crate::process::{Process, TreeUsage};

/// A child process whose CPU and memory count as its work's.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) key: u64,
    pub(super) process: Process,
    /// How much of its CPU has been counted.
    counted: Duration,
    held: Held,
}

/// What was used since it was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct New {
    pub(super) cpu: Duration,
    pub(super) byte_seconds: u64,
}

impl Child {
    pub(super) const fn new(key: u64, process: Process, now: Instant) -> Self {
        Self { key, process, counted: Duration::ZERO, held: Held::new(now) }
    }

    /// Bytes of memory at the last sample.
    pub(super) const fn held(&self) -> u64 {
        self.held.bytes()
    }

    /// What is new of it and its descendants.
    pub(super) fn sampled(&mut self, usage: TreeUsage, now: Instant) -> New {
        New { cpu: self.new_cpu(usage.cpu), byte_seconds: self.held.sampled(usage.memory, now) }
    }

    /// What is new when it has ended, or is sampled no more. Its wait status tells its CPU, where it is known.
    pub(super) fn ended(mut self, cpu: Option<Duration>, now: Instant) -> New {
        New { cpu: self.new_cpu(cpu.unwrap_or_default()), byte_seconds: self.held.until(now) }
    }

    /// A sample that misses a descendant which has just ended says less than the one before; the next has it again, and
    /// counts only what is more than was counted.
    fn new_cpu(&mut self, cpu: Duration) -> Duration {
        let new = cpu.saturating_sub(self.counted);
        self.counted = self.counted.max(cpu);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f20_what_a_sample_misses_is_counted_once_and_the_wait_status_adds_only_what_is_new() {
        let start = Instant::now();
        let process = Process::of(std::process::id()).unwrap();
        let mut child = Child::new(7, process, start);
        let mut cpu = |millis| {
            let usage = TreeUsage { cpu: Duration::from_millis(millis), memory: 0 };
            child.sampled(usage, start).cpu.as_millis()
        };
        assert_eq!([cpu(100), cpu(60), cpu(130), cpu(130)], [100, 0, 30, 0]);
        let ended = |cpu| child.clone().ended(cpu, start).cpu.as_millis();
        assert_eq!(ended(None), 0);
        assert_eq!([90, 130, 131].map(|millis| ended(Some(Duration::from_millis(millis)))), [0, 0, 1]);
    }

    #[test]
    fn memory_is_held_until_the_end() {
        let start = Instant::now();
        let mut child = Child::new(7, Process::of(std::process::id()).unwrap(), start);
        let usage = TreeUsage { cpu: Duration::ZERO, memory: 1000 };
        assert_eq!(child.sampled(usage, start + Duration::from_secs(1)).byte_seconds, 1000);
        assert_eq!(child.ended(None, start + Duration::from_secs(3)).byte_seconds, 2000);
    }
}
