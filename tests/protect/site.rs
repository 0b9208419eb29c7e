use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quota_tests::cgroup::Cgroup;
use quota_tests::process::{Process, Program};
use quota_tests::server::ServerProcess;
use reqwest::Client;
use tokio::task::JoinSet;

use crate::clients::{light, noisy};
use crate::fetch::Fetch;
use crate::figures::Run;
use crate::repositories::Repositories;

/// What the fileserver and its git processes may use: one CPU, and memory in bytes.
const CPU_MILLIS: u64 = 1000;
const MEMORY: u64 = 1 << 30;

/// After so long without an answer a fetch has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the fileserver is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// By a quota server with limits that adapt, and by its own settings.
    On,
    /// Nothing is limited; all is metered, as with protection.
    Off,
}

/// Limits of CPU adapt to the pressure each 5 s: a minute's interval would outlast the experiment. They leave two fifths of
/// the CPU free, since who fetches something light needs it at once.
const LIMITS: [(&str, &str); 7] = [
    ("QUOTA__ADAPT__CPU__RULE", "aimd"),
    ("QUOTA__ADAPT__CPU__INTERVAL", "5s"),
    ("QUOTA__ADAPT__CPU__SOFT_LIMIT", "0.6"),
    ("QUOTA__ADAPT__CPU__BACKOFF_FACTOR", "0.9"),
    ("QUOTA__LIMITS__REPO__CPU__INITIAL", "20s"),
    ("QUOTA__LIMITS__USER__CPU__INITIAL", "20s"),
    ("QUOTA__LIMITS__IP__CPU__MODE", "off"),
];

const NO_LIMITS: [(&str, &str); 3] = [
    ("QUOTA__LIMITS__REPO__CPU__MODE", "off"),
    ("QUOTA__LIMITS__USER__CPU__MODE", "off"),
    ("QUOTA__LIMITS__IP__CPU__MODE", "off"),
];

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
        let quota = match protection {
            Protection::On => ServerProcess::start(&LIMITS).await,
            Protection::Off => ServerProcess::start(&NO_LIMITS).await,
        };
        let endpoint = format!("http://{}", quota.grpc_address());
        let mut fileserver = Program::new("sh")
            .arg("-c")
            .arg(cgroup.entering())
            .arg("sh")
            .arg(program)
            .args(["--listen", "127.0.0.1:0", "--node", "gitaly-01", "--quota-server", &endpoint, "--root"])
            .arg(root);
        if protection == Protection::On {
            fileserver = fileserver.arg("--config").arg(settings);
        }
        let mut fileserver = fileserver.start();
        let line = fileserver.wait_for_line("listening on ").await;
        let url = line.split("listening on ").nth(1).expect("an address").trim().to_owned();
        Self { fileserver, cgroup, _quota: quota, url }
    }

    /// Lets the light user and so many noisy ones at it.
    pub(crate) async fn measure(mut self, repositories: &Repositories, noise: usize, lasts: Duration) -> Run {
        let fetch = |user: String, repository: &str, commit: &str| Fetch {
            // Each has connections of its own.
            http: Client::builder().timeout(PATIENCE).build().expect("a client"),
            url: format!("{}/{repository}.git", self.url),
            user,
            commit: commit.to_owned(),
        };
        let refused = Arc::new(AtomicU64::new(0));
        let mut clients = JoinSet::new();
        for number in 0..noise {
            let (fetch, refused) =
                (fetch(format!("noisy-{number}"), "large", &repositories.large), Arc::clone(&refused));
            clients.spawn(async move { noisy(fetch, &refused).await });
        }
        let before = self.cgroup.cpu();
        let samples = light(fetch("light".to_owned(), "light", &repositories.light), lasts).await;
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
