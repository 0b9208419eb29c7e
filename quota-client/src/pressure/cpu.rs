//! The CPU that a process's cgroups use, and how long their quotas hold them back.

use std::path::Path;

use super::cgroup::{Cgroups, Version, levels};
use super::counters::Counters;
use super::files::Files;
use super::machine::Processors;
use super::measured::{Absent, Measured, nearer, read, read_if_there, share};
use super::value;

/// Nanoseconds in a second.
const NANOS: f64 = 1e9;

/// What all levels together say.
pub(super) struct Cpu {
    pub(super) used: Measured,
    pub(super) throttled: Measured,
    /// The smallest quota, in CPUs, or the machine's.
    pub(super) capacity: Option<f64>,
}

/// Of all levels with a quota the nearest to its own, with the use of the same level; without any the machine.
pub(super) fn measure(
    files: &impl Files,
    cgroups: &Cgroups,
    machine: &Result<Processors, Absent>,
    counters: &mut Counters,
) -> Cpu {
    let count = machine.as_ref().ok().map(|processors| processors.count as f64);
    let mut cpu = Cpu { used: Err(Absent::Unset), throttled: Err(Absent::Unset), capacity: count };
    let mut is_limited = false;
    for (hierarchy, level) in levels(cgroups.cpu.as_ref()) {
        let version = hierarchy.version;
        let (used_there, throttled_there) = match quota(files, version, level) {
            Ok(None) => continue,
            // A quota of more than there is binds nobody.
            Ok(Some(quota)) if count.is_some_and(|count| quota >= count) => continue,
            Ok(Some(quota)) => {
                cpu.capacity = Some(cpu.capacity.map_or(quota, |smallest| smallest.min(quota)));
                let counted = cgroups.cpuacct.as_ref().and_then(|all| all.same_level(hierarchy, level));
                (
                    used(files, version, counted.map(AsRef::as_ref), quota, counters),
                    throttled(files, version, level, quota, counters),
                )
            }
            Err(absent) => (Err(absent.clone()), Err(absent)),
        };
        is_limited = true;
        cpu.used = nearer(cpu.used, used_there);
        cpu.throttled = nearer(cpu.throttled, throttled_there);
    }
    if !is_limited {
        cpu.used = machine.as_ref().map_err(Clone::clone).and_then(|machine| machine.used(counters));
    }
    cpu
}

/// How many CPUs a cgroup may use at once; none where it has no quota of its own.
pub(super) fn quota(files: &impl Files, version: Version, level: &Path) -> Result<Option<f64>, Absent> {
    let file = level.join(match version {
        Version::V1 => "cpu.cfs_quota_us",
        Version::V2 => "cpu.max",
    });
    let Some(text) = read_if_there(files, &file)? else { return Ok(None) };
    match version {
        Version::V1 => {
            let period = level.join("cpu.cfs_period_us");
            value::cpus(&period, value::limit(&file, &text)?, value::number(&period, &read(files, &period)?)?)
        }
        Version::V2 => value::cpu_max(&file, &text),
    }
}

/// What a cgroup with all that is below it used of its quota, from the directory where that is counted.
pub(super) fn used(
    files: &impl Files,
    version: Version,
    counted: Option<&Path>,
    quota: f64,
    counters: &mut Counters,
) -> Measured {
    let Some(level) = counted else {
        return Err(Absent::Missing("no cgroup of cpuacct is called like the one with the quota".to_owned()));
    };
    let nanos = match version {
        Version::V1 => {
            let file = level.join("cpuacct.usage");
            value::number(&file, &read(files, &file)?)?
        }
        Version::V2 => stat(files, level, "usage_usec")?.saturating_mul(1000),
    };
    let rate = counters.rate(level, "usage", nanos).ok_or(Absent::Unset)?;
    Ok(share(rate / NANOS, quota, level))
}

/// Throttled time adds up over the CPUs that threads are held back on, so that it is a share of what the quota allows:
/// of threads that could run on 3 CPUs, a quota of 2 holds back one second a second, which is one half. With a quota of
/// less than one CPU it is the share of the time in which a single thread is held back.
fn throttled(
    files: &impl Files,
    version: Version,
    level: &Path,
    quota: f64,
    counters: &mut Counters,
) -> Measured {
    let nanos = match version {
        Version::V1 => stat(files, level, "throttled_time")?,
        Version::V2 => stat(files, level, "throttled_usec")?.saturating_mul(1000),
    };
    let rate = counters.rate(level, "throttled", nanos).ok_or(Absent::Unset)?;
    Ok(share(rate / NANOS, quota.max(1.0), level))
}

/// In microseconds in v2, and in nanoseconds in v1.
fn stat(files: &impl Files, level: &Path, name: &str) -> Result<u64, Absent> {
    let file = level.join("cpu.stat");
    value::field(&file, &read(files, &file)?, name)
}
