use std::process::Command;

use quota_client::{ChildMeter, Client, Meter, Permit, RequestCgroup};

/// Leave to run git, and what meters it: a cgroup of its own where the settings name a place for some, else what `/proc`
/// tells of the process.
pub(crate) struct Git {
    meter: Meter,
    cgroup: Option<RequestCgroup>,
    /// Released when git has ended.
    _permit: Option<Permit>,
}

/// Of a process that runs.
pub(super) enum Running {
    Sampled(ChildMeter),
    /// Counts by itself, until nobody is in it.
    InCgroup,
}

impl Git {
    pub(crate) async fn new(quota: &Client, meter: Meter, permit: Option<Permit>) -> Self {
        let cgroup = match quota.request_cgroups() {
            Some(cgroups) => match meter.cgroup(cgroups).await {
                Ok(cgroup) => Some(cgroup),
                Err(error) => {
                    tracing::warn!(%error, "no cgroup for a request: its processes are sampled");
                    None
                }
            },
            None => None,
        };
        Self { meter, cgroup, _permit: permit }
    }

    /// Runs git, with arguments that are still to be given.
    pub(crate) fn command(&self) -> Command {
        self.cgroup.as_ref().map_or_else(|| Command::new("git"), |cgroup| cgroup.command("git"))
    }

    pub(super) fn meter(&self) -> Meter {
        self.meter.clone()
    }

    pub(super) fn running(&self, pid: u32) -> Running {
        match self.cgroup {
            Some(_) => Running::InCgroup,
            None => Running::Sampled(self.meter.child(pid)),
        }
    }
}
