use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::parents::Directories;
use crate::work::{Held, Work};

/// How often it is tried to end with a cgroup that is over: for a minute, as a rule.
const TRIES: u32 = 60;

/// A cgroup whose usage counts as a piece of work's, until the request is over and nobody is in it.
pub(crate) struct Metered {
    work: Arc<Work>,
    directories: Directories,
    /// When the request's [`RequestCgroup`](super::RequestCgroup) was dropped.
    over: Arc<OnceLock<Instant>>,
    cpu: Micros,
    held: Held,
    tries: u32,
    /// Whether it has a tenth of the weight; held for those who count.
    yields: Option<Arc<()>>,
}

impl Metered {
    pub(crate) fn new(work: Arc<Work>, directories: Directories) -> Self {
        Self {
            work,
            directories,
            over: Arc::default(),
            cpu: Micros::default(),
            held: Held::new(Instant::now()),
            tries: 0,
            yields: None,
        }
    }

    pub(crate) fn handle(&self) -> super::RequestCgroup {
        super::RequestCgroup::new(self.directories.paths().to_vec(), Arc::clone(&self.over))
    }

    /// Yields the CPU to others while an account that pays for it is cut for CPU. On a thread that may block.
    pub(crate) fn weigh(&mut self) {
        if !self.directories.has_weight() {
            return;
        }
        let shared = self.work.shared();
        let yields = self.work.is_cut_for_cpu();
        if yields == self.yields.is_some() {
            return;
        }
        match self.directories.weigh(yields) {
            Ok(()) => self.yields = yields.then(|| Arc::clone(&shared.yielding)),
            Err(error) => shared.cannot_yield(&error),
        }
    }

    /// Counts what is new, on a thread that may block. Returns whether it goes on.
    pub(crate) fn sample(&mut self) -> bool {
        // In this order: who finds a request over that is empty reads the last of it.
        let over = self.over.get().copied();
        let processes = match self.directories.processes() {
            Ok(processes) => processes,
            Err(error) => return over.is_none() || !self.give_up(&error),
        };
        let (cpu, memory) = (self.directories.cpu(), self.directories.memory(&processes));
        let now = Instant::now();
        if let Some(cpu) = cpu {
            self.work.add_measured_cpu(self.cpu.new_of(cpu), now);
        }
        let Some(over) = over.filter(|_| processes.is_empty()) else {
            if let Some(memory) = memory {
                let before = self.held.bytes();
                self.work.add_memory(self.held.sampled(memory, now));
                self.work.cgroup_holds(memory, before);
            }
            return true;
        };
        self.work.add_memory(self.held.until(over));
        let before = self.held.bytes();
        self.held.sampled(0, over);
        self.work.cgroup_holds(0, before);
        self.directories.remove().is_err_and(|error| !self.give_up(&error))
    }

    /// Whether it has failed too often.
    fn give_up(&mut self, error: &io::Error) -> bool {
        self.tries += 1;
        if self.tries < TRIES {
            return false;
        }
        tracing::warn!(%error, "the cgroup of a request cannot be removed, and is left behind");
        self.work.shared().count(|stats| stats.cgroups_left += 1);
        true
    }
}

/// A counter in microseconds, from 0. One that steps back has begun anew somewhere, so that nothing is known of the time
/// between.
#[derive(Clone, Copy, Debug, Default)]
struct Micros(u64);

impl Micros {
    fn new_of(&mut self, now: u64) -> Duration {
        let new = now.saturating_sub(self.0);
        self.0 = now;
        Duration::from_micros(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f19_a_counter_that_steps_back_costs_nothing_and_goes_on_from_there() {
        let mut counter = Micros::default();
        let mut micros = |now| counter.new_of(now).as_micros();
        let samples = [16_405_214, 781_274, 900_000, 900_000];
        assert_eq!(samples.map(&mut micros), [16_405_214, 0, 118_726, 0]);
        assert_eq!([u64::MAX, 0].map(&mut micros), [u128::from(u64::MAX) - 900_000, 0]);
    }
}
