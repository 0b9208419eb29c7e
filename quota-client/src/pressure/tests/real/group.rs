use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io};

use rustix::process::{Pid, Signal, kill_process};

use super::{LONG, Machine, Reader, Settings};
use crate::pressure::cgroup::{Cgroups, Hierarchy, Version};
use crate::pressure::memory;

/// Where the processes of a cgroup go that has cgroups below it.
const ASIDE: &str = "aside";

/// A cgroup in each hierarchy, with an idle process in it. Whoever is in it is killed, and it is removed, when it is
/// dropped.
pub(super) struct Group {
    cpu: Directory,
    memory: Directory,
    /// In all hierarchies, each once.
    all: BTreeSet<PathBuf>,
    process: Option<Process>,
}

#[derive(Clone)]
struct Directory(Version, PathBuf);

/// A process that is killed when it is dropped.
pub(super) struct Process(Child);

/// Why there is no group.
enum Without {
    Kernel(String),
    /// The kernel has what it takes, and this process may not use it.
    Allowed(String),
}

impl Group {
    /// None where it cannot be: then it says why, and in CI the test fails, unless it is the kernel that has none.
    pub(super) fn start(name: &str) -> Option<Self> {
        match Self::make(name) {
            Ok(group) => Some(group),
            Err(Without::Kernel(why)) => {
                eprintln!("skipped: {why}");
                None
            }
            Err(Without::Allowed(why)) => {
                assert!(env::var("CI").as_deref() != Ok("true"), "in CI these tests must run: {why}");
                eprintln!("skipped: a cgroup cannot be made here: {why}");
                None
            }
        }
    }

    fn make(name: &str) -> Result<Self, Without> {
        let text = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let own = Cgroups::find(&Machine, &text("/proc/self/mountinfo"), &text("/proc/self/cgroup"));
        let name = format!("quota-test-{}-{name}", std::process::id());
        let top = |hierarchy: &Hierarchy| hierarchy.levels.last().map(|top| (hierarchy.version, top.clone()));
        let directory = |hierarchy: &Option<Hierarchy>, controller: &str| {
            let top = hierarchy.as_ref().and_then(top);
            let offered = top.filter(|(version, top)| {
                *version == Version::V1 || has_word(&top.join("cgroup.controllers"), controller)
            });
            if let Some((version, top)) = offered {
                return Ok(Directory(version, top.join(&name)));
            }
            let why = format!("no hierarchy that is mounted has the controller {controller}");
            // Where it lists only what v1 has, what v2 has is in `cgroup.controllers`.
            let is_known = has_word("/proc/cgroups".as_ref(), controller);
            Err(if is_known { Without::Allowed(why) } else { Without::Kernel(why) })
        };
        let (cpu, memory) = (directory(&own.cpu, "cpu")?, directory(&own.memory, "memory")?);
        // v1 counts CPU in a hierarchy of its own, and v2 stalls, with whatever controllers it has.
        let others = [&own.cpuacct, &own.unified].into_iter().flatten().filter_map(top);
        let others = others.map(|(_, top)| top.join(&name));
        let all = others.chain([cpu.1.clone(), memory.1.clone()]).collect();
        let allowed = |error: io::Error| Without::Allowed(error.to_string());
        let mut group = Self::of(cpu, memory, all).map_err(allowed)?;
        group.process = Some(group.run("exec sleep 600"));
        Ok(group)
    }

    fn of(cpu: Directory, memory: Directory, all: BTreeSet<PathBuf>) -> io::Result<Self> {
        let group = Self { cpu, memory, all, process: None };
        for Directory(version, directory) in [&group.cpu, &group.memory] {
            if let (Version::V2, Some(parent)) = (version, directory.parent()) {
                fs::write(parent.join("cgroup.subtree_control"), "+cpu +memory")?;
            }
        }
        group.all.iter().try_for_each(fs::create_dir)?;
        Ok(group)
    }

    /// A cgroup below this one, without a process of its own. Those of this one are moved aside: v2 hands controllers
    /// down only from a cgroup without any.
    pub(super) fn child(&self, name: &str) -> Self {
        for directory in &self.all {
            let aside = directory.join(ASIDE);
            if !aside.exists() {
                fs::create_dir(&aside).unwrap();
            }
            for process in processes(directory) {
                fs::write(aside.join("cgroup.procs"), process.to_string()).unwrap();
            }
        }
        let below = |Directory(version, directory): &Directory| Directory(*version, directory.join(name));
        let all = self.all.iter().map(|directory| directory.join(name)).collect();
        Self::of(below(&self.cpu), below(&self.memory), all).unwrap()
    }

    /// As `/proc/PID/cgroup` calls it.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let membership = fs::read_to_string(format!("/proc/{}/cgroup", self.process())).unwrap();
        let path = membership
            .lines()
            .find_map(|line| line.split_once(":/").filter(|(_, path)| path.contains("quota-test")));
        let path = Path::new("/").join(path?.1);
        path.ancestors().find(|path| path.file_name() == self.cpu.1.file_name()).map(Path::to_owned)
    }

    /// The idle process.
    pub(super) fn process(&self) -> u32 {
        self.process.as_ref().unwrap().0.id()
    }

    /// Reads the pressure on the idle process.
    pub(super) fn reader(&self) -> Reader<Machine> {
        Reader::new(Machine, format!("/proc/{}", self.process()), Settings::default())
    }

    pub(super) fn limit_cpu(&self, cpus: f64) {
        let Directory(version, directory) = &self.cpu;
        let quota = (cpus * 100_000.0) as u64;
        match version {
            Version::V1 => fs::write(directory.join("cpu.cfs_quota_us"), quota.to_string()).unwrap(),
            Version::V2 => fs::write(directory.join("cpu.max"), format!("{quota} 100000")).unwrap(),
        }
    }

    /// Without swap, where the kernel counts it.
    pub(super) fn limit_memory(&self, bytes: u64) {
        let Directory(version, directory) = &self.memory;
        let (limit, swap, most) = match version {
            Version::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes),
            Version::V2 => ("memory.max", "memory.swap.max", 0),
        };
        fs::write(directory.join(limit), bytes.to_string()).unwrap();
        if directory.join(swap).exists() {
            fs::write(directory.join(swap), most.to_string()).unwrap();
        }
    }

    /// With its page cache.
    pub(super) fn memory_usage(&self) -> u64 {
        memory::usage(&Machine, self.memory.0, &self.memory.1).unwrap()
    }

    /// Runs a shell in it, which does nothing before it is there.
    pub(super) fn run(&self, command: &str) -> Process {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("read -r go; {command}")]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut process = Process(shell.spawn().unwrap());
        self.adopt(process.0.id());
        process.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
        process
    }

    /// Moves a process here.
    pub(super) fn adopt(&self, process: u32) {
        for directory in &self.all {
            fs::write(directory.join("cgroup.procs"), process.to_string()).unwrap();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.process = None;
        let deadline = Instant::now() + LONG;
        for directory in &self.all {
            let aside = directory.join(ASIDE);
            while [&aside, directory].iter().any(|group| group.exists() && fs::remove_dir(group).is_err()) {
                for process in processes(directory).into_iter().chain(processes(&aside)) {
                    kill(process);
                }
                if Instant::now() >= deadline {
                    eprintln!("{} cannot be removed", directory.display());
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

impl Drop for Process {
    /// With its children: a pipe's other end may hold the memory.
    fn drop(&mut self) {
        let id = self.0.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        children.split_ascii_whitespace().filter_map(|child| child.parse().ok()).for_each(kill);
        kill(id);
        let _ = self.0.wait();
    }
}

fn kill(process: u32) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn processes(directory: &Path) -> Vec<u32> {
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn has_word(file: &Path, word: &str) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_ascii_whitespace().any(|found| found == word)
}
