use super::Version;

/// `/proc/PID/cgroup`: a line `id:controllers:path` for each hierarchy that the process is in. v2's has no controllers.
/// Of these lines nothing is escaped, and a path may hold colons.
pub(super) struct Membership<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Membership<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let line = |line: &'a str| {
            let (_, rest) = line.split_once(':')?;
            rest.split_once(':').filter(|(_, path)| path.starts_with('/'))
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// What the process's cgroup is called in the hierarchy that has the controller.
    pub(super) fn path(&self, version: Version, controller: &str) -> Option<&'a str> {
        let has = |names: &str| match version {
            Version::V1 => names.split(',').any(|name| name == controller),
            Version::V2 => names.is_empty(),
        };
        self.0.iter().find(|(names, _)| has(names)).map(|(_, path)| *path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_in_one_hierarchy() {
        let text =
            "9:name=systemd:/\n4:cpu,cpuacct:/docker/a:b\n2:memory:/x (deleted)\n0::/user.slice\nhalf:a\n\n";
        let membership = Membership::parse(text);
        assert_eq!(membership.path(Version::V1, "cpuacct"), Some("/docker/a:b"));
        assert_eq!(membership.path(Version::V1, "memory"), Some("/x (deleted)"));
        assert_eq!(membership.path(Version::V1, "systemd"), None);
        assert_eq!(membership.path(Version::V1, "cpuset"), None);
        assert_eq!(membership.path(Version::V2, ""), Some("/user.slice"));
        assert_eq!(Membership::parse("").path(Version::V2, ""), None);
    }
}
