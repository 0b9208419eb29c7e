use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quota_tests::cgroup::Cgroup;
use quota_tests::process::{Process, Program};
use quota_tests::repositories::Repositories;
use quota_tests::server::ServerProcess;
use reqwest::Client;
use tokio::task::JoinSet;

use crate::clients::{light, noisy};
use crate::crowd::{Crowd, Visitor};
use crate::fetch::Fetch;
use crate::figures::Run;
use crate::protection::Protection;

/// What the fileserver and its git processes may use: one CPU, and memory in bytes.
const CPU_MILLIS: u64 = 1000;
const MEMORY: u64 = 1 << 30;

/// After so long without an answer a fetch has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A quota server, and a fileserver in its cgroup.
pub(crate) struct Site {
    /// Stopped first: a cgroup that is empty can be removed.
    fileserver: Process,
    cgroup: Cgroup,
    _quota: ServerProcess,
    url: String,
}

impl Site {
    pub(crate) async fn start(root: &Path, program: &Path, settings: &Path, protection: Protection) -> Self {
        let cgroup = Cgroup::new("quota-protect", CPU_MILLIS, MEMORY);
        let quota = ServerProcess::start(&protection.environment()).await;
        let endpoint = format!("http://{}", quota.grpc_address());
        let mut fileserver = Program::new("sh")
            .arg("-c")
            .arg(cgroup.entering())
            .arg("sh")
            .arg(program)
            .args(["--listen", "127.0.0.1:0", "--node", "gitaly-01", "--quota-server", &endpoint, "--root"])
            .arg(root);
        if protection != Protection::Off {
            let file = root.join("settings.toml");
            fs::write(&file, with_request_cgroups(settings, &cgroup)).expect("a file of settings");
            fileserver = fileserver.arg("--config").arg(file);
        }
        let mut fileserver = fileserver.start();
        let line = fileserver.wait_for_line("listening on ").await;
        let url = line.split("listening on ").nth(1).expect("an address").trim().to_owned();
        Self { fileserver, cgroup, _quota: quota, url }
    }

    /// Lets a crowd at it; without the heavy ones where it is idle.
    pub(crate) async fn measure(
        mut self,
        repositories: &Repositories,
        crowd: Crowd,
        is_idle: bool,
        lasts: Duration,
    ) -> Run {
        let fetch = |Visitor { user, repository }: Visitor| Fetch {
            // Each has connections of its own.
            http: Client::builder().timeout(PATIENCE).build().expect("a client"),
            url: format!("{}/{repository}.git", self.url),
            user,
            commit: repositories.head(repository).to_owned(),
        };
        let refused = Arc::new(AtomicU64::new(0));
        let mut clients = JoinSet::new();
        for visitor in if is_idle { Vec::new() } else { crowd.heavy() } {
            let (fetch, refused) = (fetch(visitor), Arc::clone(&refused));
            clients.spawn(async move { noisy(fetch, &refused).await });
        }
        let before = self.cgroup.cpu();
        let light = crowd.light().into_iter().map(|visitor| light(fetch(visitor), lasts));
        let mut samples = light.collect::<JoinSet<_>>().join_all().await.concat();
        samples.sort_by_key(|sample| sample.at);
        let after = self.cgroup.cpu();
        clients.shutdown().await;
        self.fileserver.kill();
        Run {
            name: "",
            samples,
            refused: refused.load(Ordering::Relaxed),
            used: after.used - before.used,
            periods: after.periods - before.periods,
            throttled: after.throttled - before.throttled,
        }
    }
}

/// The settings, and where to make a cgroup for each request.
fn with_request_cgroups(settings: &Path, cgroup: &Cgroup) -> String {
    let settings = fs::read_to_string(settings).expect("the settings");
    let folders: Vec<String> =
        cgroup.requests().map(|folder| format!("{:?}", folder.display().to_string())).collect();
    // Before the first table.
    format!("request_cgroups = [{}]\n{settings}", folders.join(", "))
}
