#![cfg_attr(fuzzing, allow(dead_code, reason = "tests make more of it"))]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

use crate::pressure::files::Files;

/// Files in memory, each a text or the error that reading it gives. A directory is there if a file is below it.
#[derive(Clone, Debug, Default)]
pub(super) struct Fixture(Arc<Mutex<BTreeMap<PathBuf, Result<String, i32>>>>);

const GIB: u64 = 1 << 30;

impl Fixture {
    /// A machine with 4 processors, half of them busy, and 64 GiB, of which a quarter is held.
    pub(super) fn machine() -> Self {
        Self::default()
            .with("/proc/self/status", "Name:\tgitaly\nCpus_allowed_list:\t0-3\n")
            .with("/proc/meminfo", memory(64 * GIB, 48 * GIB))
            .with("/proc/vmstat", "pgmajfault 1\noom_kill 3\n")
            .with("/proc/pressure/cpu", stalled("3.00"))
            .with("/proc/pressure/memory", stalled("2.00"))
            .with("/proc/pressure/io", stalled("1.00"))
            .processors(0)
    }

    /// `/proc/stat` after so many seconds in which two of the four processors were busy.
    pub(super) fn processors(self, seconds: u64) -> Self {
        let busy = format!("{} 0 0 0 0 0 0 0 0 0", seconds * 100);
        let idle = format!("0 0 0 {} 0 0 0 0 0 0", seconds * 100);
        self.with(
            "/proc/stat",
            format!("cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 {busy}\ncpu1 {busy}\ncpu2 {idle}\ncpu3 {idle}\n"),
        )
    }

    /// v2 alone, with the process in this cgroup, whose directory is there.
    pub(super) fn v2(cgroup: &str) -> Self {
        Self::machine()
            .with("/proc/self/cgroup", format!("0::{cgroup}\n"))
            .with(
                "/proc/self/mountinfo",
                "25 23 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
            )
            .with("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
            .with(format!("/sys/fs/cgroup{cgroup}/cgroup.procs"), "1\n")
    }

    /// A hybrid machine, as systemd mounts it: cpu and cpuacct are one hierarchy or two, memory is another, with the
    /// process at a path of its own in each; v2 has one controller that nobody needs.
    pub(super) fn hybrid(joint: bool) -> Self {
        let (cpu, cpuacct, mounts) = if joint {
            let options = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
            ("cpu,cpuacct", "cpu,cpuacct", options.to_owned())
        } else {
            let one = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
            (
                "cpu",
                "cpuacct",
                format!("{one}33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"),
            )
        };
        let rest = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                    35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                    39 31 0:36 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
                    40 31 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let cpu_lines =
            if joint { "1:cpu,cpuacct:/git\n".to_owned() } else { "2:cpuacct:/git\n1:cpu:/git\n".to_owned() };
        Self::machine()
            .with("/proc/self/cgroup", format!("4:memory:/api/124e\n{cpu_lines}9:name=systemd:/\n0::/\n"))
            .with("/proc/self/mountinfo", format!("{rest}{mounts}"))
            .with("/sys/fs/cgroup/unified/cgroup.controllers", "hugetlb\n")
            .with(
                "/sys/fs/cgroup/unified/cpu.stat",
                "usage_usec 7\nuser_usec 5\nsystem_usec 2\nnice_usec 0\n",
            )
            .with("/sys/fs/cgroup/unified/cpu.pressure", stalled("12.50"))
            .with(format!("/sys/fs/cgroup/{cpu}/cpu.cfs_quota_us"), "-1\n")
            .with(format!("/sys/fs/cgroup/{cpu}/cpu.cfs_period_us"), "100000\n")
            .with(format!("/sys/fs/cgroup/{cpu}/git/cpu.cfs_quota_us"), "200000\n")
            .with(format!("/sys/fs/cgroup/{cpu}/git/cpu.cfs_period_us"), "100000\n")
            .with(format!("/sys/fs/cgroup/{cpu}/git/cpu.stat"), v1_cpu_stat(0))
            .with(format!("/sys/fs/cgroup/{cpuacct}/git/cpuacct.usage"), "0\n")
            .with("/sys/fs/cgroup/memory/release_agent", "\n")
            .with("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
            .with("/sys/fs/cgroup/memory/api/memory.limit_in_bytes", "9223372036854771712\n")
            .with("/sys/fs/cgroup/memory/api/124e/memory.limit_in_bytes", format!("{}\n", 4 * GIB))
            .with("/sys/fs/cgroup/memory/api/124e/memory.usage_in_bytes", format!("{}\n", 4 * GIB))
            .with(
                "/sys/fs/cgroup/memory/api/124e/memory.stat",
                format!("cache 1\nrss 1\ntotal_rss {GIB}\ntotal_shmem 0\n"),
            )
            .with("/sys/fs/cgroup/memory/api/124e/memory.oom_control", "oom_kill_disable 0\noom_kill 0\n")
    }

    pub(super) fn with(self, file: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        self.write(file, text);
        self
    }

    pub(super) fn write(&self, file: impl Into<PathBuf>, text: impl Into<String>) {
        self.0.lock().insert(file.into(), Ok(text.into()));
    }

    /// Reading it gives this error number from now on.
    pub(super) fn fail(&self, file: impl Into<PathBuf>, error: Errno) {
        self.0.lock().insert(file.into(), Err(error.raw_os_error()));
    }

    /// Removes a file, or a directory with all that is in it.
    pub(super) fn remove(&self, path: impl AsRef<Path>) {
        self.0.lock().retain(|file, _| !file.starts_with(path.as_ref()));
    }
}

impl Files for Fixture {
    fn read(&self, file: &Path) -> io::Result<String> {
        match self.0.lock().get(file) {
            Some(Ok(text)) => Ok(text.clone()),
            Some(Err(error)) => Err(io::Error::from_raw_os_error(*error)),
            None => Err(Errno::NOENT.into()),
        }
    }

    fn directories(&self, parent: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.0.lock();
        let mut below = files.keys().filter_map(|file| file.strip_prefix(parent).ok()).peekable();
        if below.peek().is_none() {
            return Err(Errno::NOENT.into());
        }
        let name = |file: &Path| file.parent().and_then(|path| Some(parent.join(path.iter().next()?)));
        Ok(below.filter_map(name).collect::<BTreeSet<_>>().into_iter().collect())
    }
}

pub(super) fn memory(total: u64, available: u64) -> String {
    format!("MemTotal: {} kB\nMemFree: 1 kB\nMemAvailable: {} kB\n", total / 1024, available / 1024)
}

pub(super) fn stalled(percent: &str) -> String {
    format!(
        "some avg10={percent} avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    )
}

/// As a kernel of 6.18 writes it.
pub(super) fn v1_cpu_stat(throttled_nanos: u64) -> String {
    format!("nr_periods 0\nnr_throttled 0\nthrottled_time {throttled_nanos}\nnr_bursts 0\nburst_time 0\n")
}
