use std::path::{Path, PathBuf};

use super::Version;
use crate::pressure::files::Files;

/// A mount that shows a hierarchy, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) version: Version,
    /// The cgroup that is shown at the mount point, as the namespace of this process calls it.
    pub(super) root: String,
    pub(super) point: PathBuf,
    /// Of v1.
    controllers: Vec<String>,
}

/// The mounts of cgroups in `/proc/PID/mountinfo`.
pub(super) fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

/// `id parent device root point options [optional fields] - type source options`
fn mount(line: &str) -> Option<Mount> {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let mut rest = fields.skip_while(|field| *field != "-").skip(1);
    let (kind, _source, options) = (rest.next()?, rest.next()?, rest.next()?);
    let version = match kind {
        "cgroup" => Version::V1,
        "cgroup2" => Version::V2,
        _ => return None,
    };
    Some(Mount {
        version,
        root: unescape(root),
        point: PathBuf::from(unescape(point)),
        controllers: options.split(',').map(str::to_owned).collect(),
    })
}

/// A space, tab, newline or backslash is written as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code.filter(u8::is_ascii) {
            Some(code) => {
                whole.push(char::from(code));
                whole.push_str(&part[3..]);
            }
            None => {
                whole.push('\\');
                whole.push_str(part);
            }
        }
    }
    whole
}

impl Mount {
    pub(super) fn has(&self, controller: &str) -> bool {
        self.version == Version::V2 || self.controllers.iter().any(|name| name == controller)
    }

    /// Where a cgroup is shown, whether it is there or not; none where it is not below this mount's root.
    pub(super) fn directory(&self, path: &str) -> Option<PathBuf> {
        let below = path.strip_prefix(self.root.trim_end_matches('/'))?;
        let is_below = below.is_empty() || below.starts_with('/');
        let leads_out = below.split('/').any(|part| part == "..");
        (is_below && !leads_out).then(|| {
            let parts = below.split('/').filter(|part| !part.is_empty());
            parts.fold(self.point.clone(), |directory, part| directory.join(part))
        })
    }

    /// The directory of the cgroup, and whether it is there. Else that of its nearest ancestor which is: a removed
    /// cgroup is called `… (deleted)`, and a bind mount or namespace may show less than the path says.
    pub(super) fn nearest(&self, files: &impl Files, path: &str) -> (PathBuf, bool) {
        let is_there = |directory: &Path| files.directories(directory).is_ok();
        let Some(named) = self.directory(path) else { return (self.point.clone(), false) };
        if is_there(&named) {
            return (named, true);
        }
        let mut above = named.ancestors().skip(1).take_while(|level| level.starts_with(&self.point));
        (above.find(|level| is_there(level)).unwrap_or(&self.point).to_owned(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_the_mounts_of_cgroups_with_their_names_unescaped() {
        let text = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                    32 31 0:29 /docker\\040a /mnt/a\\040b\\134c rw shared:1 master:2 - cgroup none rw,cpu,cpuacct\n\
                    40 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n\
                    41 31 0:39 / /half rw - cgroup2\n41 31\n\n";
        let mounts = parse(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!((mounts[0].root.as_str(), mounts[0].point.to_str()), ("/docker a", Some("/mnt/a b\\c")));
        assert!(mounts[0].has("cpuacct") && !mounts[0].has("memory"));
        assert_eq!(mounts[1].version, Version::V2);
    }

    #[test]
    fn what_is_no_escape_stays_as_it_is() {
        for text in ["a\\", "a\\04", "a\\9zz", "\\777", "\\0é0"] {
            assert_eq!(unescape(text), text);
        }
        assert_eq!(unescape("\\040\\011x"), " \tx");
    }

    #[test]
    fn f16_a_path_is_below_its_mount_or_nowhere() {
        let directory = |root: &str, path| {
            let (point, controllers) = (PathBuf::from("/cg"), Vec::new());
            let mount = Mount { version: Version::V2, root: root.to_owned(), point, controllers };
            mount.directory(path).map(|directory| directory.to_str().unwrap().to_owned())
        };
        assert_eq!(directory("/", "/").as_deref(), Some("/cg"));
        assert_eq!(directory("/", "/a/b").as_deref(), Some("/cg/a/b"));
        assert_eq!(directory("/docker/abc", "/docker/abc").as_deref(), Some("/cg"));
        assert_eq!(directory("/docker/abc", "/docker/abc/git").as_deref(), Some("/cg/git"));
        assert_eq!(directory("/docker/abc", "/docker/abcd"), None);
        assert_eq!(directory("/docker/abc", "/"), None);
        assert_eq!(directory("/", "/../other"), None);
        assert_eq!(directory("/..", "/../other").as_deref(), Some("/cg/other"));
    }
}
