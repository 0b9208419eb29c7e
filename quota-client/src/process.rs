//! How much CPU a process and its descendants have used, and how much memory they hold, from `/proc` (proc(5)).
//!
//! Of a tree, the sum over its live members of their own time and that of the children they waited for counts each
//! process once: one that has been waited for is in its parent's figure and no longer a member. A parent is read
//! before its children, so that one which ends in between is missed rather than counted twice; the next sample has
//! it. A process is known by its pid and start time, since pids are used again.
//!
//! Memory is anonymous memory: what the process itself filled, not the pages of files that the kernel may drop, nor those
//! that processes share. `statm` has it, in pages: what is resident without what is of files and shared, which is `RssAnon`
//! of `status` in one short line. `smaps_rollup` is exact to the page, but walks the page tables of the process, and
//! holds it up meanwhile. Pages that a process still shares with its parent since fork(2) count for both; only a cgroup
//! tells them apart.

#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;

use std::collections::{HashMap, HashSet};
use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;
use std::{fmt, fs};

use rustix::time::{ClockId, clock_gettime};

/// A process, by a name that is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pid: u32,
    /// Clock ticks after the machine's start.
    started: u64,
}

impl Process {
    /// The process that has this pid now.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        read_stat(pid).map(|stat| stat.process)
    }

    /// How long ago it started.
    pub(crate) fn age(self) -> Duration {
        let now = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
        now.saturating_sub(time(self.started))
    }

    /// Whether it is there, be it as a zombie.
    pub(crate) fn exists(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

/// As in the names of cgroups: the pid and the start, such as `42-987`.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.pid, self.started)
    }
}

impl FromStr for Process {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (pid, started) = text.split_once('-').unwrap_or((text, ""));
        Ok(Self { pid: pid.parse()?, started: started.parse()? })
    }
}

/// What a process and its descendants use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeUsage {
    /// Since they started.
    pub(crate) cpu: Duration,
    /// Anonymous memory that they hold now, in bytes.
    pub(crate) memory: u64,
}

/// What is read of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    process: Process,
    parent: u32,
    /// Its own and its waited-for children's time, in clock ticks.
    ticks: u64,
}

/// Who is whose child.
pub(crate) struct Family(HashMap<u32, Vec<Process>>);

impl Family {
    /// Of all processes there are. Reads a file for each: milliseconds, on a thread that may block.
    pub(crate) fn read() -> Self {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Self::new(pids.filter_map(read_stat))
    }

    fn new(stats: impl Iterator<Item = Stat>) -> Self {
        let mut children: HashMap<u32, Vec<Process>> = HashMap::new();
        for stat in stats {
            children.entry(stat.parent).or_default().push(stat.process);
        }
        Self(children)
    }

    /// What a process and its live descendants use; none where it cannot be read.
    pub(crate) fn usage(&self, root: Process) -> Option<TreeUsage> {
        let members = self.members(root, read_stat)?;
        let ticks = members.iter().fold(0u64, |sum, stat| sum.saturating_add(stat.ticks));
        let pids = members.iter().map(|stat| stat.process.pid);
        Some(TreeUsage { cpu: time(ticks), memory: anonymous_memory(pids) })
    }

    fn members(&self, root: Process, read: impl Fn(u32) -> Option<Stat>) -> Option<Vec<Stat>> {
        let read = |process: Process| read(process.pid).filter(|stat| stat.process == process);
        let mut members = vec![read(root)?];
        let mut seen = HashSet::from([root]);
        let mut parents = vec![root];
        while let Some(parent) = parents.pop() {
            for child in self.0.get(&parent.pid).into_iter().flatten() {
                if seen.insert(*child)
                    && let Some(stat) = read(*child)
                {
                    members.push(stat);
                    parents.push(*child);
                }
            }
        }
        Some(members)
    }
}

/// What these processes hold, in bytes. One that has ended holds nothing.
pub(crate) fn anonymous_memory(pids: impl IntoIterator<Item = u32>) -> u64 {
    let page_size = rustix::param::page_size() as u64;
    let pages = pids
        .into_iter()
        .filter_map(|pid| parse_anonymous_pages(&fs::read_to_string(format!("/proc/{pid}/statm")).ok()?));
    pages.fold(0u64, u64::saturating_add).saturating_mul(page_size)
}

fn time(ticks: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_micros(ticks.saturating_mul(1_000_000) / per_second)
}

fn read_stat(pid: u32) -> Option<Stat> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `/proc/PID/stat`. The name, in parentheses, may hold anything; the fields behind it are counted from the state,
/// which proc(5) numbers 3.
fn parse(pid: u32, text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let mut ticks = [14, 15, 16, 17].into_iter().map(field);
    let ticks = ticks.try_fold(0_u64, |sum, ticks| Some(sum.saturating_add(ticks?)))?;
    Some(Stat {
        process: Process { pid, started: field(22)? },
        parent: u32::try_from(field(4)?).ok()?,
        ticks,
    })
}

/// `/proc/PID/statm`: the second field is what is resident, the third what of that is of files or shared.
fn parse_anonymous_pages(text: &str) -> Option<u64> {
    let mut fields = text.split_ascii_whitespace().skip(1).map_while(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.next()?, fields.next()?);
    // They are read one after the other.
    Some(resident.saturating_sub(shared))
}

#[cfg(test)]
mod tests;
