//! A control group for one program: so much CPU and memory, and what it used. By the second version where its
//! controllers are there, else by the first. The program is in a group `server` below it, so that it may make groups for
//! its requests in another, `requests`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::id;
use std::time::{Duration, Instant};

/// The kernel's period for CPU quotas, in microseconds.
const PERIOD: u64 = 100_000;

/// The groups below: of the program, and of its requests.
const SERVER: &str = "server";
const REQUESTS: &str = "requests";

/// How long it may take until processes that were killed are gone.
const EMPTIED: Duration = Duration::from_secs(5);

/// A group that is removed, with what runs in it, when this is dropped.
#[derive(Debug)]
pub struct Cgroup {
    /// One folder for each controller, or one for all.
    folders: Vec<PathBuf>,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// What a group's processes used, and how they were held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupCpu {
    /// CPU time.
    pub used: Duration,
    /// Periods in which something ran.
    pub periods: u64,
    /// Of these, those in which it was held back.
    pub throttled: u64,
}

impl Cgroup {
    /// A new group with so many thousandths of a CPU, and bytes of memory.
    ///
    /// # Panics
    ///
    /// Panics where this process may make none: it takes root, and a host that hands cgroups on.
    pub fn new(name: &str, cpu_millis: u64, memory_bytes: u64) -> Self {
        let name = format!("{name}-{}", id());
        let quota = cpu_millis * PERIOD / 1000;
        if let Some(root) = second_version() {
            let group = Self { folders: vec![root.join(name)], version: Version::V2 };
            group.make("");
            group.write(0, "cpu.max", &format!("{quota} {PERIOD}"));
            group.write(0, "memory.max", &memory_bytes.to_string());
            group.write(0, "cgroup.subtree_control", "+cpu +memory");
            group.make(SERVER);
            group.make(REQUESTS);
            return group;
        }
        let folders = ["cpu", "cpuacct", "memory"].map(|controller| first_version(controller).join(&name));
        let group = Self { folders: folders.into(), version: Version::V1 };
        group.make("");
        group.make(SERVER);
        group.make(REQUESTS);
        group.write(0, "cpu.cfs_period_us", &PERIOD.to_string());
        group.write(0, "cpu.cfs_quota_us", &quota.to_string());
        group.write(2, "memory.limit_in_bytes", &memory_bytes.to_string());
        group
    }

    /// A shell script that moves its process into the group, and becomes the program that its arguments name.
    pub fn entering(&self) -> String {
        let moves =
            self.below(SERVER).map(|folder| format!("echo $$ > '{}/cgroup.procs' && ", folder.display()));
        format!("{}exec \"$@\"", moves.collect::<String>())
    }

    /// Where the program may make a group for each request, by controller.
    pub fn requests(&self) -> impl Iterator<Item = PathBuf> {
        self.below(REQUESTS)
    }

    fn below(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        self.folders.iter().map(move |folder| folder.join(name))
    }

    /// What was used since the group was made.
    pub fn cpu(&self) -> CgroupCpu {
        let stat = self.read(0, "cpu.stat");
        let field = |name: &str| {
            let value = stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            value.unwrap_or_else(|| panic!("no {name} in {stat:?}"))
        };
        let used = match self.version {
            Version::V1 => {
                Duration::from_nanos(self.read(1, "cpuacct.usage").trim().parse().expect("a number"))
            }
            Version::V2 => Duration::from_micros(field("usage_usec ")),
        };
        CgroupCpu { used, periods: field("nr_periods "), throttled: field("nr_throttled ") }
    }

    fn make(&self, name: &str) {
        for folder in self.below(name) {
            fs::create_dir_all(&folder)
                .unwrap_or_else(|error| panic!("{} cannot be made: {error}", folder.display()));
        }
    }

    fn write(&self, folder: usize, file: &str, value: &str) {
        let file = self.folders[folder].join(file);
        fs::write(&file, value).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    fn read(&self, folder: usize, file: &str) -> String {
        let file = self.folders[folder].join(file);
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let begun = Instant::now();
        for folder in &self.folders {
            while !is_removed(folder) && begun.elapsed() < EMPTIED {
                std::thread::yield_now();
            }
        }
    }
}

/// Kills what is in a group and in those below it. Returns whether all of them are gone.
fn is_removed(folder: &Path) -> bool {
    for below in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if below.is_dir() {
            is_removed(&below);
        }
    }
    kill_all(folder);
    fs::remove_dir(folder).is_ok() || !folder.exists()
}

fn kill_all(folder: &Path) {
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    for pid in processes.lines().filter_map(|line| rustix::process::Pid::from_raw(line.parse().ok()?)) {
        // One that has ended by now need not be.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Where the second version is mounted, if it has the controllers.
fn second_version() -> Option<PathBuf> {
    let root = PathBuf::from(mounts().into_iter().find(|mount| mount.kind == "cgroup2")?.folder);
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).ok()?;
    let has = |name| controllers.split_whitespace().any(|controller| controller == name);
    if !has("cpu") || !has("memory") {
        return None;
    }
    fs::write(root.join("cgroup.subtree_control"), "+cpu +memory").ok()?;
    Some(root)
}

/// Where a controller of the first version is mounted.
fn first_version(controller: &str) -> PathBuf {
    let has =
        |mount: &Mount| mount.kind == "cgroup" && mount.options.split(',').any(|option| option == controller);
    let mount = mounts().into_iter().find(has);
    mount.unwrap_or_else(|| panic!("no cgroup controller {controller} is mounted")).folder.into()
}

struct Mount {
    folder: String,
    kind: String,
    options: String,
}

/// Of `/proc/mounts`: device, folder, kind, options.
fn mounts() -> Vec<Mount> {
    let mounts = fs::read_to_string("/proc/mounts").expect("the mounts");
    let words = |line: &str| {
        let mut words = line.split(' ').skip(1).map(str::to_owned);
        Some(Mount { folder: words.next()?, kind: words.next()?, options: words.next()? })
    };
    mounts.lines().filter_map(words).collect()
}
