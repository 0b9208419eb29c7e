//! How much CPU a process and its descendants have used, from `/proc` (proc(5)).
//!
//! Of a tree, the sum over its live members of their own time and that of the children they waited for counts each
//! process once: one that has been waited for is in its parent's figure and no longer a member. A parent is read
//! before its children, so that one which ends in between is missed rather than counted twice; the next sample has
//! it. A process is known by its pid and start time, since pids are used again.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

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

    /// The CPU time of a process and its live descendants; none where it cannot be read.
    pub(crate) fn cpu(&self, root: Process) -> Option<Duration> {
        let ticks = self.ticks(root, read_stat)?;
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        Some(Duration::from_micros(ticks.saturating_mul(1_000_000) / per_second))
    }

    fn ticks(&self, root: Process, read: impl Fn(u32) -> Option<Stat>) -> Option<u64> {
        let read = |process: Process| read(process.pid).filter(|stat| stat.process == process);
        let mut sum = read(root)?.ticks;
        let mut seen = HashSet::from([root]);
        let mut parents = vec![root];
        while let Some(parent) = parents.pop() {
            for child in self.0.get(&parent.pid).into_iter().flatten() {
                if seen.insert(*child)
                    && let Some(stat) = read(*child)
                {
                    sum = sum.saturating_add(stat.ticks);
                    parents.push(*child);
                }
            }
        }
        Some(sum)
    }
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
    let ticks = [14, 15, 16, 17].into_iter().map(field).sum::<Option<u64>>()?;
    Some(Stat {
        process: Process { pid, started: field(22)? },
        parent: u32::try_from(field(4)?).ok()?,
        ticks,
    })
}

#[cfg(test)]
mod tests;
