//! What the files of a cgroup say, of version 1 and 2: see cgroups(7), and the kernel's `cgroup-v1/cpuacct.rst`,
//! `cgroup-v1/memory.rst`, `sched-design-CFS.rst` and `cgroup-v2.rst`.

/// The pids of those that are in it, a line for each. Who has ended and is not waited for is not among them.
pub(super) const PROCESSES: &str = "cgroup.procs";

/// A file that counts, and what to make of its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    pub(super) file: &'static str,
    pub(super) parse: fn(&str) -> Option<u64>,
}

/// CPU time of all that was ever in it, in microseconds: of v2, and of v1. The `cpu.stat` of v1 has no such line.
pub(super) const CPU: [Counter; 2] = [
    Counter { file: "cpu.stat", parse: |text| line(text, "usage_usec") },
    Counter { file: "cpuacct.usage", parse: |text| Some(text.trim().parse::<u64>().ok()? / 1000) },
];

/// Anonymous memory that is charged to it and those below, in bytes: of v2, and of v1.
pub(super) const MEMORY: [Counter; 1] =
    [Counter { file: "memory.stat", parse: |text| line(text, "anon").or_else(|| line(text, "total_rss")) }];

/// A file that says how much of a CPU that is short a cgroup gets beside its siblings, by their weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    pub(super) file: &'static str,
    /// What the kernel begins with.
    pub(super) whole: &'static str,
    /// A tenth of that.
    pub(super) tenth: &'static str,
}

/// Of v2, and of v1.
pub(super) const WEIGHTS: [Weight; 2] = [
    Weight { file: "cpu.weight", whole: "100", tenth: "10" },
    Weight { file: "cpu.shares", whole: "1024", tenth: "102" },
];

pub(super) fn pids(text: &str) -> Vec<u32> {
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

fn line(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(counters: &[Counter], file: &str, text: &str) -> Option<u64> {
        let counter = counters.iter().find(|counter| counter.file == file).unwrap();
        (counter.parse)(text)
    }

    #[test]
    fn cpu_is_in_microseconds_whatever_the_version() {
        let cpu = |file, text| read(&CPU, file, text);
        assert_eq!(
            cpu("cpu.stat", "usage_usec 16405214\nuser_usec 16000000\nsystem_usec 405214\n"),
            Some(16_405_214)
        );
        assert_eq!(cpu("cpuacct.usage", "127918677\n"), Some(127_918));
        assert_eq!(cpu("cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"), None, "v1");
        for garbage in [
            "",
            "usage_usec",
            "usage_usec -1",
            "usage_usec 1x",
            "usage_usecs 1",
            "usage_usec 184467440737095516160",
        ] {
            assert_eq!(cpu("cpu.stat", garbage), None, "{garbage:?}");
        }
        for garbage in ["", "-1", "1 2", "12x"] {
            assert_eq!(cpu("cpuacct.usage", garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn memory_is_what_is_anonymous_and_no_page_cache() {
        let memory = |text| read(&MEMORY, "memory.stat", text);
        assert_eq!(memory("anon 1700000000\nfile 3200000000\nanon_thp 5\n"), Some(1_700_000_000));
        let v1 =
            "cache 39000000000\nrss 4096\ntotal_cache 39000000000\ntotal_rss 204779520\ntotal_rss_huge 0\n";
        assert_eq!(memory(v1), Some(204_779_520), "with those below");
        for garbage in ["", "anon", "anon x", "anon_thp 5", "total_rss_huge 5"] {
            assert_eq!(memory(garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn pids_are_lines() {
        assert_eq!(pids("42\n7\n"), [42, 7]);
        assert_eq!(pids(""), [0; 0]);
    }
}
