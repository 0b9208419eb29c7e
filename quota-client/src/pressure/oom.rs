//! Processes that the kernel killed for want of memory.

use std::path::{Path, PathBuf};

use super::cgroup::{Cgroups, Hierarchy, Version};
use super::counters::Counters;
use super::files::Files;
use super::measured::{Absent, Figure, Measured, read, read_if_there};
use super::{repositories, value};

/// Since the sample before: in the process's cgroup and those of repositories, or on the machine where the process is
/// in no cgroup of its own.
pub(super) fn measure(
    files: &impl Files,
    cgroups: &Cgroups,
    parent_of_repositories: Option<&Path>,
    counters: &mut Counters,
) -> Measured {
    let hierarchy = cgroups.memory.as_ref();
    let Some((hierarchy, own)) = hierarchy.and_then(|found| Some((found, own(files, found)?))) else {
        return kills(files, Path::new("/proc/vmstat"), counters);
    };
    let total = kills(files, &events(hierarchy.version, own), counters);
    let parent = parent_of_repositories.and_then(|path| hierarchy.directory(path));
    let mut others = 0.0;
    for directory in uncounted(files, hierarchy.version, own, parent) {
        match kills(files, &events(hierarchy.version, &directory), counters) {
            Ok(more) => others += more.value,
            // One that has just been made, or removed.
            Err(Absent::Unset | Absent::Missing(_)) => {}
            Err(absent) => return Err(absent),
        }
    }
    total.map(|own| Figure { value: own.value + others, ..own })
}

/// The process's cgroup, where it is not the root.
fn own<'a>(files: &impl Files, hierarchy: &'a Hierarchy) -> Option<&'a Path> {
    let own = hierarchy.levels.first()?;
    let is_root = match hierarchy.version {
        // Only the root has it.
        Version::V1 => files.read(&own.join("release_agent")).is_ok(),
        // All have it but the root.
        Version::V2 => matches!(read_if_there(files, &events(Version::V2, own)), Ok(None)),
    };
    (!is_root).then_some(own)
}

/// The cgroups of repositories that the process's own does not count: v2's count what is below them.
fn uncounted(files: &impl Files, version: Version, own: &Path, parent: Option<PathBuf>) -> Vec<PathBuf> {
    match (version, parent) {
        (_, None) => Vec::new(),
        (Version::V2, Some(parent)) if parent.starts_with(own) => Vec::new(),
        (Version::V2, Some(parent)) => vec![parent],
        (Version::V1, Some(parent)) => repositories::children(files, &parent).unwrap_or_default(),
    }
}

fn events(version: Version, directory: &Path) -> PathBuf {
    directory.join(match version {
        Version::V1 => "memory.oom_control",
        Version::V2 => "memory.events",
    })
}

fn kills(files: &impl Files, file: &Path, counters: &mut Counters) -> Measured {
    let count = value::field(file, &read(files, file)?, "oom_kill")?;
    let gained = counters.gained(file, "oom_kill", count).ok_or(Absent::Unset)?;
    Ok(Figure { value: gained as f64, source: file.to_owned() })
}
