//! Reads all signals once, and compares them with what was read before.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::cgroup::Cgroups;
use super::counters::Counters;
use super::files::Files;
use super::machine::{Memory, Processors};
use super::measured::{Absent, Measurements, read_if_there};
use super::settings::Settings;
use super::signal::Signal;
use super::{cpu, memory, network, oom, repositories, stalled};

/// Reads the pressure on a process.
#[derive(Debug)]
pub(super) struct Reader<F> {
    files: F,
    /// The process's directory in `/proc`.
    process: PathBuf,
    settings: Settings,
    place: Place,
    counters: Counters,
}

/// Where the process was found to be.
#[derive(Debug, Default)]
struct Place {
    /// `/proc/PID/cgroup` as it was: a process may be moved.
    membership: Option<String>,
    cgroups: Cgroups,
}

impl<F: Files> Reader<F> {
    pub(super) fn new(files: F, process: impl Into<PathBuf>, settings: Settings) -> Self {
        let (place, counters) = (Place::default(), Counters::default());
        Self { files, process: process.into(), settings, place, counters }
    }

    /// Of what is a rate there is nothing at the first time: there is nothing to compare with.
    pub(super) fn read(&mut self, now: Instant) -> Measurements {
        let Self { files, process, settings, place, counters } = self;
        counters.step(now);
        let mut measured = match place.find(files, process) {
            Ok(cgroups) => of_cgroups(files, process, cgroups, settings, counters),
            Err(absent) => Measurements::all(&absent),
        };
        if settings.repositories.is_none() {
            measured.set(Signal::RepositoryCpu, Err(Absent::Unset));
            measured.set(Signal::RepositoryMemory, Err(Absent::Unset));
        }
        let network = match settings.network_bytes_per_second {
            Some(line_rate) => network::measure(files, process, line_rate, counters),
            None => Err(Absent::Unset),
        };
        measured.set(Signal::Network, network);
        measured
    }
}

impl Place {
    /// Finds the cgroups, at first and when the process has been moved, and says so in the log.
    fn find(&mut self, files: &impl Files, process: &Path) -> Result<&Cgroups, Absent> {
        // A kernel without cgroups has no such files: then the machine is the only limit.
        let text = |name| read_if_there(files, &process.join(name)).map(Option::unwrap_or_default);
        let membership = text("cgroup")?;
        if self.membership.as_ref() != Some(&membership) {
            let cgroups = Cgroups::find(files, &text("mountinfo")?, &membership);
            tracing::info!(%cgroups, "pressure is read here; without a limit the machine is the reference");
            if let Some(faults) = cgroups.faults() {
                tracing::warn!(faults, "not all cgroups of this process can be seen: a limit may be missed");
            }
            *self = Self { membership: Some(membership), cgroups };
        }
        Ok(&self.cgroups)
    }
}

fn of_cgroups(
    files: &impl Files,
    process: &Path,
    cgroups: &Cgroups,
    settings: &Settings,
    counters: &mut Counters,
) -> Measurements {
    let mut measured = Measurements::all(&Absent::Unset);

    let cpu = cpu::measure(files, cgroups, &Processors::read(files, process), counters);
    measured.set(Signal::Cpu, cpu.used);
    measured.set(Signal::CpuThrottled, cpu.throttled);
    measured.cpu_millicores = cpu.capacity.map(|cpus| (cpus * 1000.0) as u64);

    let (held, capacity) = memory::measure(files, cgroups, &Memory::read(files));
    measured.set(Signal::Memory, held);
    measured.memory_bytes = capacity;

    let parent = settings.repositories.as_deref();
    measured.set(Signal::OomKill, oom::measure(files, cgroups, parent, counters));
    if let Some(parent) = parent {
        measured.set(Signal::RepositoryCpu, repositories::cpu(files, cgroups, parent, counters));
        measured.set(Signal::RepositoryMemory, repositories::memory(files, cgroups, parent));
    }

    for (signal, resource) in
        [(Signal::CpuStalled, "cpu"), (Signal::MemoryStalled, "memory"), (Signal::IoStalled, "io")]
    {
        measured.set(signal, stalled::measure(files, cgroups, resource));
    }
    measured
}
