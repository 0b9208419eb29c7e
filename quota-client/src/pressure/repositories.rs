//! The cgroups of repositories: of each resource, the one that is nearest to its own limit.

use std::path::{Path, PathBuf};

use super::cgroup::{Cgroups, Hierarchy, Version};
use super::counters::Counters;
use super::files::Files;
use super::measured::{Absent, Measured, nearer, share};
use super::{cpu, memory};

/// A thousand that have both limits cost 80 ms of CPU a second (Linux 6.18, v1, in a virtual machine).
const MOST: usize = 1024;

/// The directories right below one, at most 1,024.
pub(super) fn children(files: &impl Files, parent: &Path) -> Result<Vec<PathBuf>, Absent> {
    let mut all = files.directories(parent).map_err(|error| Absent::unread(parent, &error))?;
    all.truncate(MOST);
    Ok(all)
}

/// Those in a hierarchy, each with its name below the parent.
fn all(
    files: &impl Files,
    hierarchy: Option<&Hierarchy>,
    parent: &Path,
) -> Result<(Version, Vec<PathBuf>), Absent> {
    let unseen = || Absent::Missing(format!("no hierarchy shows the cgroup {}", parent.display()));
    let hierarchy = hierarchy.ok_or_else(unseen)?;
    let directory = hierarchy.directory(parent).ok_or_else(unseen)?;
    Ok((hierarchy.version, children(files, &directory)?))
}

pub(super) fn cpu(files: &impl Files, cgroups: &Cgroups, parent: &Path, counters: &mut Counters) -> Measured {
    let (version, all) = all(files, cgroups.cpu.as_ref(), parent)?;
    let counted = cgroups.cpuacct.as_ref().and_then(|hierarchy| hierarchy.directory(parent));
    let mut nearest = Err(Absent::Unset);
    for level in all {
        let one = match cpu::quota(files, version, &level) {
            Ok(None) => continue,
            Ok(Some(quota)) => {
                let counted = counted.as_ref().zip(level.file_name()).map(|(parent, name)| parent.join(name));
                cpu::used(files, version, counted.as_deref(), quota, counters)
            }
            Err(absent) => Err(absent),
        };
        nearest = nearer(nearest, unless_removed(one));
    }
    nearest
}

pub(super) fn memory(files: &impl Files, cgroups: &Cgroups, parent: &Path) -> Measured {
    let (version, all) = all(files, cgroups.memory.as_ref(), parent)?;
    let mut nearest: Measured = Err(Absent::Unset);
    for level in all {
        let so_far = nearest.as_ref().ok().map(|figure| figure.value);
        nearest = nearer(nearest, unless_removed(held(files, version, &level, so_far)));
    }
    nearest
}

/// What the cgroup holds of its limit, where that can be more than `so_far`: it is never more than its usage, and the
/// rest is dear to read.
fn held(files: &impl Files, version: Version, level: &Path, so_far: Option<f64>) -> Measured {
    let limit = memory::limit(files, version, level)?.filter(|limit| *limit < memory::MOST);
    let limit = limit.ok_or(Absent::Unset)? as f64;
    let at_most = share(memory::usage(files, version, level)? as f64, limit, level);
    if so_far.is_some_and(|so_far| at_most.value <= so_far) {
        return Err(Absent::Unset);
    }
    Ok(share(memory::held(files, version, level)? as f64, limit, level))
}

/// One may be removed between being listed and being read, which is no failure.
fn unless_removed(measured: Measured) -> Measured {
    measured.map_err(|absent| if let Absent::Missing(_) = absent { Absent::Unset } else { absent })
}
