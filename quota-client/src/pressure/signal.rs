use std::fmt;

use super::settings::Settings;

/// What pressure is seen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// CPU in use, of what may be used.
    Cpu,
    /// Time for which threads were held back by a CPU quota, of the time of the CPUs that it allows.
    CpuThrottled,
    /// Memory that cannot be reclaimed, of what may be held.
    Memory,
    /// Time in which some thread waited for a CPU.
    CpuStalled,
    /// Time in which some thread waited for memory.
    MemoryStalled,
    /// Time in which some thread waited for a disk.
    IoStalled,
    /// Processes that the kernel killed for want of memory since the last sample: a count.
    OomKill,
    /// Network in use, of the configured line rate.
    Network,
    /// CPU in use by a repository's cgroup, of its quota: of the one that is nearest to its own.
    RepositoryCpu,
    /// Memory that cannot be reclaimed of a repository's cgroup, of its limit: of the one that is nearest to its own.
    RepositoryMemory,
}

impl Signal {
    /// Each once.
    pub const ALL: [Self; 10] = [
        Self::Cpu,
        Self::CpuThrottled,
        Self::Memory,
        Self::CpuStalled,
        Self::MemoryStalled,
        Self::IoStalled,
        Self::OomKill,
        Self::Network,
        Self::RepositoryCpu,
        Self::RepositoryMemory,
    ];

    /// For logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::CpuThrottled => "cpu_throttled",
            Self::Memory => "memory",
            Self::CpuStalled => "cpu_stalled",
            Self::MemoryStalled => "memory_stalled",
            Self::IoStalled => "io_stalled",
            Self::OomKill => "oom_kill",
            Self::Network => "network",
            Self::RepositoryCpu => "repository_cpu",
            Self::RepositoryMemory => "repository_memory",
        }
    }

    /// From where on it is an event: a share, and for kills a count.
    pub(super) fn threshold(self, settings: &Settings) -> f64 {
        match self {
            Self::Cpu | Self::RepositoryCpu => settings.cpu,
            Self::CpuThrottled => settings.cpu_throttled,
            Self::Memory | Self::RepositoryMemory => settings.memory,
            Self::CpuStalled => settings.cpu_stalled,
            Self::MemoryStalled => settings.memory_stalled,
            Self::IoStalled => settings.io_stalled,
            Self::OomKill => 1.0,
            Self::Network => settings.network,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
