//! How loaded the machine is, from `/proc` (proc(5)). What cannot be read is absent, which is not healthy.

use std::fs;

use quota_proto::v1;

/// Compares the machine with what it was at the last sample.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    before: Option<Processors>,
}

/// How loaded the machine is, and what it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) pressure: v1::Pressure,
    pub(super) capacity: v1::Capacity,
}

/// The processors since the machine's start, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Processors {
    busy: u64,
    all: u64,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    total_kib: u64,
    available_kib: u64,
}

impl Sampler {
    /// The first sample has no pressure of the processors: there is nothing to compare with.
    pub(super) fn sample(&mut self) -> Sample {
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        self.compare(Processors::parse(&read("/proc/stat")), Memory::parse(&read("/proc/meminfo")))
    }

    fn compare(&mut self, processors: Option<Processors>, memory: Option<Memory>) -> Sample {
        let before = std::mem::replace(&mut self.before, processors);
        let cpu = processors.zip(before).and_then(|(now, before)| now.share_busy_since(before));
        Sample {
            pressure: v1::Pressure { cpu, memory: memory.map(Memory::share_held), network: None },
            capacity: v1::Capacity {
                cpu_millicores: processors.map(|processors| processors.count * 1000),
                memory_bytes: memory.map(|memory| memory.total_kib.saturating_mul(1024)),
                network_bytes_per_second: None,
            },
        }
    }
}

impl Processors {
    /// `/proc/stat`: the line `cpu` with user, nice, system, idle, iowait, irq, softirq and steal, and a line for each.
    fn parse(text: &str) -> Option<Self> {
        let ticks: Vec<u64> = text
            .lines()
            .find_map(|line| line.strip_prefix("cpu "))?
            .split_ascii_whitespace()
            .map_while(|ticks| ticks.parse().ok())
            .collect();
        // What guests use is in user and nice already.
        let ticks = ticks.get(..8)?;
        let all = ticks.iter().fold(0u64, |sum, ticks| sum.saturating_add(*ticks));
        let is_one = |line: &&str| {
            line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let count = text.lines().filter(is_one).count() as u64;
        (count > 0).then_some(Self {
            busy: all.saturating_sub(ticks[3]).saturating_sub(ticks[4]),
            all,
            count,
        })
    }

    /// Idle time can step back a little (proc(5)), and then nothing is known.
    fn share_busy_since(self, before: Self) -> Option<f64> {
        let (busy, all) = (self.busy.checked_sub(before.busy)?, self.all.checked_sub(before.all)?);
        (all > 0).then(|| busy as f64 / all as f64)
    }
}

impl Memory {
    fn parse(text: &str) -> Option<Self> {
        let kib = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        };
        let (total_kib, available_kib) = (kib("MemTotal")?, kib("MemAvailable")?);
        (total_kib > 0).then_some(Self { total_kib, available_kib })
    }

    /// Page cache that can be given up is available.
    fn share_held(self) -> f64 {
        self.total_kib.saturating_sub(self.available_kib) as f64 / self.total_kib as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 10 50 800 40 0 0 0 7 7\ncpu0 60 5 25 400 20 0 0 0 0 0\ncpu1 40 5 25 400 20 0 0 0 0 0\n\
                        intr 1 2 3\ncpufreq 1\n";

    #[test]
    fn the_share_of_time_that_processors_were_busy() {
        let before = Processors::parse(STAT).unwrap();
        assert_eq!(before, Processors { busy: 160, all: 1000, count: 2 });
        let now = Processors { busy: 310, all: 1200, count: 2 };
        assert_eq!(now.share_busy_since(before), Some(0.75));
        assert_eq!(before.share_busy_since(before), None);
        assert_eq!(before.share_busy_since(now), None);
        let mut sampler = Sampler::default();
        let first = sampler.compare(Some(before), None);
        assert_eq!((first.pressure.cpu, first.capacity.cpu_millicores), (None, Some(2000)));
        assert_eq!(sampler.compare(Some(now), None).pressure.cpu, Some(0.75));
    }

    #[test]
    fn memory_that_can_be_given_up_is_not_held() {
        let text = "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:    250 kB\n";
        let memory = Memory::parse(text).unwrap();
        assert_eq!((memory.total_kib, memory.share_held()), (1000, 0.75));
    }

    #[test]
    fn what_cannot_be_read_is_absent() {
        for text in ["", "cpu 1 2 3", "cpu  a b", "cpu  1 2 3 4 5 6 7 8\n"] {
            assert_eq!(Processors::parse(text), None, "{text:?}");
        }
        for text in
            ["", "MemTotal: 1 kB", "MemTotal: 0 kB\nMemAvailable: 0 kB", "MemTotal: x kB\nMemAvailable: 1 kB"]
        {
            assert_eq!(Memory::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn this_machine_tells() {
        let sample = Sampler::default().sample();
        assert!(sample.capacity.cpu_millicores.is_some_and(|cores| cores >= 1000));
        assert!(sample.pressure.memory.is_some_and(|share| (0.0..=1.0).contains(&share)));
    }
}
