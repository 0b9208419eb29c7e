//! The memory that cannot be reclaimed. Page cache can: a fileserver fills whatever limit it has with it, and nothing
//! is wrong.

use std::path::Path;

use super::cgroup::{Cgroups, Version, levels};
use super::files::Files;
use super::machine::Memory;
use super::measured::{Absent, Measured, nearer, read, read_if_there, share};
use super::value;

/// Where the machine's memory is not known: no limit is above an EiB, but those that stand for none.
pub(super) const MOST: u64 = 1 << 60;

/// Of all levels with a limit the nearest to its own, with what the same level holds; without any the machine. And the
/// smallest limit.
pub(super) fn measure(
    files: &impl Files,
    cgroups: &Cgroups,
    machine: &Result<Memory, Absent>,
) -> (Measured, Option<u64>) {
    let total = machine.as_ref().ok().map(|memory| memory.total);
    let (mut held_of_limit, mut capacity, mut is_limited) = (Err(Absent::Unset), total, false);
    for (hierarchy, level) in levels(cgroups.memory.as_ref()) {
        let one = match limit(files, hierarchy.version, level) {
            Ok(None) => continue,
            Ok(Some(limit)) if limit >= total.unwrap_or(MOST) => continue,
            Ok(Some(limit)) => {
                capacity = Some(capacity.map_or(limit, |smallest| smallest.min(limit)));
                held(files, hierarchy.version, level).map(|held| share(held as f64, limit as f64, level))
            }
            Err(absent) => Err(absent),
        };
        is_limited = true;
        held_of_limit = nearer(held_of_limit, one);
    }
    if !is_limited {
        held_of_limit = machine.as_ref().map_err(Clone::clone).map(Memory::held);
    }
    (held_of_limit, capacity)
}

/// What a cgroup may hold, in bytes: where `memory.high` is less than the limit, its processes are slowed down from
/// there on. None where it has no limit of its own.
pub(super) fn limit(files: &impl Files, version: Version, level: &Path) -> Result<Option<u64>, Absent> {
    let read_limit = |name| {
        let file = level.join(name);
        let text = read_if_there(files, &file)?;
        text.map_or(Ok(None), |text| value::limit(&file, &text))
    };
    match version {
        Version::V1 => read_limit("memory.limit_in_bytes"),
        Version::V2 => Ok(read_limit("memory.max")?.into_iter().chain(read_limit("memory.high")?).min()),
    }
}

/// What a cgroup holds, with its page cache, in bytes.
pub(super) fn usage(files: &impl Files, version: Version, level: &Path) -> Result<u64, Absent> {
    let file = level.join(match version {
        Version::V1 => "memory.usage_in_bytes",
        Version::V2 => "memory.current",
    });
    value::number(&file, &read(files, &file)?)
}

/// What a cgroup and all that is below it cannot give back, in bytes.
///
/// In v2 that is all but the pages of files and the slabs that can be reclaimed; pages of `tmpfs` are on no list of
/// files. v1 does not tell which slabs can be reclaimed, and file nodes are most of them on a fileserver: there it is
/// anonymous memory and `tmpfs`.
pub(super) fn held(files: &impl Files, version: Version, level: &Path) -> Result<u64, Absent> {
    let file = level.join("memory.stat");
    let stat = read(files, &file)?;
    let field = |name| value::field(&file, &stat, name);
    // Kernels of before 4.19 have no such line of v1, and no cgroup that counts no slabs has one of v2.
    let or_nothing = |name| match field(name) {
        Err(Absent::Missing(_)) => Ok(0),
        read => read,
    };
    match version {
        Version::V1 => Ok(field("total_rss")?.saturating_add(or_nothing("total_shmem")?)),
        Version::V2 => Ok(usage(files, version, level)?
            .saturating_sub(field("inactive_file")?)
            .saturating_sub(field("active_file")?)
            .saturating_sub(or_nothing("slab_reclaimable")?)),
    }
}
