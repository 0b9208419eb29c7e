//! What the machine has and how much of it is in use, from `/proc` (proc(5)).

use std::ops::RangeInclusive;
use std::path::Path;

use super::counters::Counters;
use super::files::Files;
use super::measured::{Absent, Figure, Measured, read, share};

/// The processors that a process may run on, since the machine's start, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Processors {
    busy: u64,
    all: u64,
    pub(super) count: u64,
}

/// In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) total: u64,
    available: u64,
}

impl Processors {
    const FILE: &'static str = "/proc/stat";

    /// `process` is its directory in `/proc`. Where that does not tell which processors it may run on, it is all of
    /// them.
    pub(super) fn read(files: &impl Files, process: &Path) -> Result<Self, Absent> {
        let status = read(files, &process.join("status")).unwrap_or_default();
        let stat = read(files, Path::new(Self::FILE))?;
        Self::parse(&stat, &allowed(&status)).ok_or_else(|| Absent::garbage(Path::new(Self::FILE), &stat))
    }

    /// How many there are, whoever may run on them; one where that cannot be read.
    pub(super) fn in_all(files: &impl Files) -> u32 {
        let stat = read(files, Path::new(Self::FILE)).unwrap_or_default();
        Self::parse(&stat, &[]).map_or(1, |all| u32::try_from(all.count).unwrap_or(u32::MAX))
    }

    /// For each processor a line `cpuN` with user, nice, system, idle, iowait, irq, softirq and steal.
    fn parse(text: &str, allowed: &[RangeInclusive<u32>]) -> Option<Self> {
        let mut processors = Self { busy: 0, all: 0, count: 0 };
        for line in text.lines().filter_map(|line| line.strip_prefix("cpu")) {
            let mut fields = line.split_ascii_whitespace();
            // The sum of all has no number.
            let Some(number) = fields.next().filter(|_| !line.starts_with(' ')) else { continue };
            let Ok(number) = number.parse() else { continue };
            if !allowed.is_empty() && !allowed.iter().any(|range| range.contains(&number)) {
                continue;
            }
            // What guests use is in user and nice already.
            let ticks: Vec<u64> = fields.take(8).map_while(|ticks| ticks.parse().ok()).collect();
            let [_, _, _, idle, waiting, _, _, _] = ticks[..] else { return None };
            let all = ticks.iter().fold(0u64, |sum, ticks| sum.saturating_add(*ticks));
            processors.all = processors.all.saturating_add(all);
            let busy = all.saturating_sub(idle).saturating_sub(waiting);
            processors.busy = processors.busy.saturating_add(busy);
            processors.count += 1;
        }
        (processors.count > 0).then_some(processors)
    }

    /// The share of their time in which they were busy, whoever used them.
    pub(super) fn used(&self, counters: &mut Counters) -> Measured {
        let file = Path::new(Self::FILE);
        let busy = counters.gained(file, "busy", self.busy);
        // Idle time can step back a little (proc(5)), and then nothing is known.
        let all = counters.gained(file, "all", self.all).filter(|ticks| *ticks > 0);
        let (busy, all) = busy.zip(all).ok_or(Absent::Unset)?;
        Ok(share(busy as f64, all as f64, file))
    }
}

/// `Cpus_allowed_list: 0-3,8` of `/proc/PID/status`, which is less than all in a cpuset or with an affinity.
fn allowed(status: &str) -> Vec<RangeInclusive<u32>> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).collect()
}

impl Memory {
    const FILE: &'static str = "/proc/meminfo";

    pub(super) fn read(files: &impl Files) -> Result<Self, Absent> {
        let text = read(files, Path::new(Self::FILE))?;
        Self::parse(&text).ok_or_else(|| Absent::garbage(Path::new(Self::FILE), &text))
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        let (total, available) = (bytes("MemTotal")?, bytes("MemAvailable")?);
        (total > 0).then_some(Self { total, available })
    }

    /// The share that cannot be given to whoever asks. Page cache that can be given up is available.
    pub(super) fn held(&self) -> Figure {
        let held = self.total.saturating_sub(self.available);
        share(held as f64, self.total as f64, Path::new(Self::FILE))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const STAT: &str = "cpu  100 10 50 800 40 0 0 0 7 7\ncpu0 60 5 25 400 20 0 0 0 0 0\ncpu1 40 5 25 400 20 0 0 0 0 0\n\
                        intr 1 2 3\ncpufreq 1\n";

    #[test]
    fn the_share_of_time_that_processors_were_busy() {
        let before = Processors::parse(STAT, &[]).unwrap();
        assert_eq!(before, Processors { busy: 160, all: 1000, count: 2 });
        let (mut counters, start) = (Counters::default(), Instant::now());
        let mut used = |busy, all| {
            counters.step(start);
            Processors { busy, all, count: 2 }.used(&mut counters).map(|figure| figure.value)
        };
        assert_eq!(used(160, 1000), Err(Absent::Unset), "there is nothing to compare with");
        assert_eq!(used(310, 1200), Ok(0.75));
        assert_eq!(used(310, 1200), Err(Absent::Unset), "no time has passed");
        assert_eq!(used(305, 1190), Err(Absent::Unset), "idle time stepped back");
        assert_eq!(used(300, 1200), Ok(0.0));
    }

    #[test]
    fn only_processors_that_the_process_may_run_on_count() {
        let allowed =
            |list: &str| allowed(&format!("Name:\tx\nCpus_allowed_list:\t{list}\nMems_allowed:\t1\n"));
        let one = Processors { busy: 70, all: 490, count: 1 };
        assert_eq!(Processors::parse(STAT, &allowed("1,7-9")), Some(one));
        assert_eq!(Processors::parse(STAT, &allowed("0-4294967295")).unwrap().count, 2);
        assert_eq!(
            Processors::parse(STAT, &allowed("x")).unwrap().count,
            2,
            "what is not understood is no limit"
        );
        assert_eq!(Processors::parse(STAT, &allowed("5")), None);
    }

    #[test]
    fn memory_that_can_be_given_up_is_not_held() {
        let text = "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:    250 kB\n";
        let memory = Memory::parse(text).unwrap();
        assert_eq!((memory.total, memory.held().value), (1_024_000, 0.75));
    }

    #[test]
    fn what_cannot_be_read_is_absent() {
        for text in ["", "cpu 1 2 3", "cpu  1 2 3 4 5 6 7 8\n", "cpu0 1 2 3", "cpu0 a b"] {
            assert_eq!(Processors::parse(text, &[]), None, "{text:?}");
        }
        for text in
            ["", "MemTotal: 1 kB", "MemTotal: 0 kB\nMemAvailable: 0 kB", "MemTotal: x kB\nMemAvailable: 1 kB"]
        {
            assert_eq!(Memory::parse(text), None, "{text:?}");
        }
    }
}
