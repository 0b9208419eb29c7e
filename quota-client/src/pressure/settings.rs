use std::path::PathBuf;

use serde::Deserialize;

/// From where on a signal of pressure is an event, and what is looked at.
///
/// Thresholds are shares, above 0 and at most 1.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// CPU in use, of what may be used. 0.90 unless set.
    pub cpu: f64,
    /// Time for which runnable threads were held back by a CPU quota, of the time of the CPUs that the quota allows.
    /// 0.50 unless set.
    pub cpu_throttled: f64,
    /// Memory that cannot be reclaimed, of what may be held. 0.75 unless set.
    pub memory: f64,
    /// Of the last 10 s, the time in which some thread waited for a CPU (PSI). 0.25 unless set.
    pub cpu_stalled: f64,
    /// Of the last 10 s, the time in which some thread waited for memory (PSI). 0.20 unless set.
    pub memory_stalled: f64,
    /// Of the last 10 s, the time in which some thread waited for a disk (PSI). 0.20 unless set.
    pub io_stalled: f64,
    /// Network in use, of the line rate. 0.90 unless set.
    pub network: f64,
    /// What the network carries in each direction, in bytes a second. Unless set, there is no signal of the network.
    ///
    /// All interfaces but the loopback are added up, so that a bond counts with its members.
    pub network_bytes_per_second: Option<u64>,
    /// The cgroup whose children are the cgroups of repositories, written as in `/proc/self/cgroup`: `/gitaly/repos`.
    /// Each is compared with its own limits, by the thresholds of `cpu` and `memory`; at most 1,024 are looked at.
    pub repositories: Option<PathBuf>,
}

/// A setting that could not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSettings {
    /// A threshold that is reached always or never.
    #[error("pressure.{0} must be more than 0, and at most 1")]
    Threshold(&'static str),
    /// Of which every use would be too much.
    #[error("pressure.network_bytes_per_second must be more than 0, and at most 2^53")]
    LineRate,
    /// A path that is not one within a hierarchy.
    #[error("pressure.repositories must begin with a slash, and have no .. and no NUL")]
    Repositories,
}

/// The most that the service takes as a capacity.
const MAX_LINE_RATE: u64 = quota_core::Cost::MAX;

impl Default for Settings {
    fn default() -> Self {
        Self {
            cpu: 0.90,
            cpu_throttled: 0.50,
            memory: 0.75,
            cpu_stalled: 0.25,
            memory_stalled: 0.20,
            io_stalled: 0.20,
            network: 0.90,
            network_bytes_per_second: None,
            repositories: None,
        }
    }
}

impl Settings {
    /// Whether they could work.
    ///
    /// # Errors
    /// The first that could not.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        let thresholds = [
            ("cpu", self.cpu),
            ("cpu_throttled", self.cpu_throttled),
            ("memory", self.memory),
            ("cpu_stalled", self.cpu_stalled),
            ("memory_stalled", self.memory_stalled),
            ("io_stalled", self.io_stalled),
            ("network", self.network),
        ];
        // What is no number is in no range.
        if let Some((name, _)) = thresholds.iter().find(|(_, share)| !(*share > 0.0 && *share <= 1.0)) {
            return Err(InvalidSettings::Threshold(name));
        }
        if self.network_bytes_per_second.is_some_and(|rate| !(1..=MAX_LINE_RATE).contains(&rate)) {
            return Err(InvalidSettings::LineRate);
        }
        let escapes = |path: &PathBuf| {
            let has_nul = path.as_os_str().as_encoded_bytes().contains(&0);
            has_nul || !path.is_absolute() || path.iter().any(|part| part == "..")
        };
        if self.repositories.as_ref().is_some_and(escapes) {
            return Err(InvalidSettings::Repositories);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_work_is_refused_by_name() {
        assert_eq!(Settings::default().check(), Ok(()));
        for share in [f64::NAN, f64::INFINITY, 0.0, -0.1, 1.01] {
            let cpu = Settings { cpu: share, ..Settings::default() };
            assert_eq!(cpu.check(), Err(InvalidSettings::Threshold("cpu")), "{share}");
            let io = Settings { io_stalled: share, ..Settings::default() };
            assert_eq!(io.check(), Err(InvalidSettings::Threshold("io_stalled")), "{share}");
        }
        for rate in [0, u64::MAX] {
            let network = Settings { network_bytes_per_second: Some(rate), ..Settings::default() };
            assert_eq!(network.check(), Err(InvalidSettings::LineRate));
        }
        for (path, checked) in [
            ("/gitaly/repos", Ok(())),
            ("gitaly", Err(InvalidSettings::Repositories)),
            ("/gitaly/../..", Err(InvalidSettings::Repositories)),
            ("/gitaly\0", Err(InvalidSettings::Repositories)),
        ] {
            let repositories = Settings { repositories: Some(path.into()), ..Settings::default() };
            assert_eq!(repositories.check(), checked, "{path}");
        }
    }
}
