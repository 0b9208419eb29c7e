//! Where a process's cgroups are: for each controller by itself, since a hybrid machine has some in v1's hierarchies
//! and others in v2's. Hierarchies: cgroups(7); the files with their mounts and paths: proc(5).

mod membership;
mod mounts;

use std::fmt;
use std::path::{Path, PathBuf};

use self::membership::Membership;
use self::mounts::Mount;
use super::files::Files;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

/// The cgroups of a process; a controller without one has no limit that can be seen.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    pub(super) cpu: Option<Hierarchy>,
    /// Who counts the CPU that was used: in v1 a controller by itself.
    pub(super) cpuacct: Option<Hierarchy>,
    pub(super) memory: Option<Hierarchy>,
    /// v2's, which has pressure stalls even where all controllers are in v1's.
    pub(super) unified: Option<Hierarchy>,
    /// Controllers in whose hierarchy the process is, and that no mount shows.
    hidden: Vec<&'static str>,
}

/// A process's place in a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) version: Version,
    mount: Mount,
    /// The process's cgroup, its parent, and so on to what the mount shows last. The limit of each counts.
    pub(super) levels: Vec<PathBuf>,
    /// What the process's cgroup is called, where the mount does not show it: it was removed, or is outside of what
    /// this namespace or bind mount shows. The nearest ancestor that is shown stands for it.
    unseen: Option<String>,
}

impl Cgroups {
    /// From `/proc/PID/mountinfo` and `/proc/PID/cgroup`.
    pub(super) fn find(files: &impl Files, mountinfo: &str, membership: &str) -> Self {
        let (mounts, membership) = (mounts::parse(mountinfo), Membership::parse(membership));
        let path_in_v2 = membership.path(Version::V2, "");
        let locate = |version, name, path| Hierarchy::locate(files, &mounts, version, name, path);
        let unified = path_in_v2.and_then(|path| locate(Version::V2, "", path));
        let mut hidden = Vec::new();
        let mut controller = |name| {
            // One that is in a hierarchy of v1 is not in v2's, even where no mount shows it.
            let path_in_v1 = membership.path(Version::V1, name);
            let found = match path_in_v1 {
                Some(path) => locate(Version::V1, name, path),
                None => unified.clone(),
            };
            if found.is_none() && path_in_v1.or(path_in_v2).is_some() {
                hidden.push(name);
            }
            found
        };
        let (cpu, cpuacct, memory) = (controller("cpu"), controller("cpuacct"), controller("memory"));
        Self { cpu, cpuacct, memory, unified, hidden }
    }

    /// What is not where it should be, in words; none where all is.
    pub(super) fn faults(&self) -> Option<String> {
        let all = [("cpu", &self.cpu), ("cpuacct", &self.cpuacct), ("memory", &self.memory)];
        let unseen = all.into_iter().filter_map(|(name, hierarchy)| {
            let hierarchy = hierarchy.as_ref()?;
            let instead = hierarchy.levels.first()?.display();
            Some(format!("{name}: {} is not shown, {instead} is read instead", hierarchy.unseen.as_ref()?))
        });
        let hidden = self.hidden.iter().map(|name| format!("{name}: no mount shows the hierarchy"));
        let faults: Vec<_> = unseen.chain(hidden).collect();
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

impl Hierarchy {
    /// Of several mounts the one that shows most ancestors of the process's cgroup.
    fn locate(
        files: &impl Files,
        mounts: &[Mount],
        version: Version,
        controller: &str,
        path: &str,
    ) -> Option<Self> {
        let mounts = || mounts.iter().filter(|mount| mount.version == version && mount.has(controller));
        let showing = mounts().filter(|mount| mount.directory(path).is_some());
        let mount = showing.min_by_key(|mount| mount.root.len()).or_else(|| mounts().next())?.clone();
        let (directory, is_seen) = mount.nearest(files, path);
        let levels = directory.ancestors().take_while(|level| level.starts_with(&mount.point));
        let levels = levels.map(Path::to_owned).collect();
        Some(Self { version, mount, levels, unseen: (!is_seen).then(|| path.to_owned()) })
    }

    /// Where a cgroup with this path is, whether there is one or not; none where the mount cannot show it.
    pub(super) fn directory(&self, path: &Path) -> Option<PathBuf> {
        self.mount.directory(path.to_str()?)
    }

    /// The level here that is called the same as one of another hierarchy.
    pub(super) fn same_level(&self, other: &Self, level: &Path) -> Option<&PathBuf> {
        let below = level.strip_prefix(&other.mount.point).ok()?;
        let is_same = |own: &&PathBuf| own.strip_prefix(&self.mount.point) == Ok(below);
        self.levels.iter().find(is_same).filter(|_| self.mount.root == other.mount.root)
    }
}

/// A controller's levels; none where it is in no hierarchy.
pub(super) fn levels(hierarchy: Option<&Hierarchy>) -> impl Iterator<Item = (&Hierarchy, &Path)> {
    hierarchy.into_iter().flat_map(|found| found.levels.iter().map(move |level| (found, level.as_path())))
}

/// For the log: version and path of each controller.
impl fmt::Display for Cgroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("cpu", &self.cpu),
            ("cpuacct", &self.cpuacct),
            ("memory", &self.memory),
            ("stalls", &self.unified),
        ];
        for (at, (name, hierarchy)) in all.into_iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            match hierarchy.as_ref().and_then(|found| Some((found.version, found.levels.first()?))) {
                Some((version, level)) => write!(f, "{separator}{name}: {version} {}", level.display())?,
                None => write!(f, "{separator}{name}: none")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        })
    }
}
