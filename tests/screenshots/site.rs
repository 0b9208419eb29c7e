use std::path::Path;

use quota_tests::cgroup::Cgroup;
use quota_tests::process::{Process, Program};
use quota_tests::repositories;
use quota_tests::server::ServerProcess;
use serde_json::{Value, json};

/// What each fileserver and its git processes may use: so little CPU that a few clones fill it, and memory in bytes.
const CPU_MILLIS: u64 = 200;
const MEMORY: u64 = 1 << 30;

/// Commits in a large repository.
const COMMITS: usize = 40;

/// Half of the CPU stays free for who fetches something light. Everybody comes from one address here. What moves over the
/// network is told, and refuses nobody.
const SETTINGS: [(&str, &str); 7] = [
    ("QUOTA__ADAPT__CPU__RULE", "blame"),
    ("QUOTA__ADAPT__MEMORY__RULE", "blame"),
    ("QUOTA__ADAPT__NETWORK__RULE", "blame"),
    ("QUOTA__ADAPT__CPU__SOFT_LIMIT", "0.5"),
    ("QUOTA__LIMITS__IP__CPU__MODE", "off"),
    ("QUOTA__LIMITS__USER__NETWORK__INITIAL", "400MiB"),
    ("QUOTA__LIMITS__USER__NETWORK__MAX", "400MiB"),
];

/// A quota server, and two fileservers, each in its cgroup.
pub(crate) struct Site {
    pub(crate) quota: ServerProcess,
    /// Stopped before their cgroups, which can then be removed.
    fileservers: Vec<(String, Process, Cgroup)>,
}

impl Site {
    pub(crate) async fn start(root: &Path, program: &Path) -> Self {
        repositories::make(root, COMMITS).await;
        let quota = ServerProcess::start(&SETTINGS).await;
        let mut fileservers = Vec::new();
        for node in ["gitaly-01", "gitaly-02"] {
            let cgroup = Cgroup::new(&format!("quota-{node}"), CPU_MILLIS, MEMORY);
            let mut process = Program::new("sh")
                .args(["-c", &cgroup.entering(), "sh"])
                .arg(program)
                .args(["--listen", "127.0.0.1:0", "--node", node, "--quota-server"])
                .args([&format!("http://{}", quota.grpc_address()), "--root"])
                .arg(root)
                .start();
            let line = process.wait_for_line("listening on http://").await;
            let address = line.rsplit("http://").next().expect("an address").trim().to_owned();
            fileservers.push((address, process, cgroup));
        }
        Self { quota, fileservers }
    }

    /// Where the fileservers are reached.
    pub(crate) fn address(&self, fileserver: usize) -> &str {
        &self.fileservers[fileserver].0
    }

    /// What an operator says, before anybody comes.
    pub(crate) async fn say_things(&self) {
        let say = async |path: &str, body: Value| {
            let answer = self.quota.http.request(reqwest::Method::PUT, path, body.to_string()).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        };
        let blocked =
            json!({ "blocked": true, "reason": "runs wild, ticket 17", "expires_in_seconds": 14_400 });
        say("/v1/overrides/user/eve", blocked).await;
        say("/v1/overrides/user/ci-runner", json!({ "weight": 3, "reason": "builds releases" })).await;
        let limits = json!({ "limits": { "cpu": "10m", "network": "4GiB" }, "reason": "mirrored by night",
            "expires_in_seconds": 604_800 });
        say("/v1/overrides/repo/light", limits).await;
        let mode = json!({ "node": "gitaly-02", "mode": "shadow", "reason": "new disks, until Friday" });
        say("/v1/modes", mode).await;
    }
}
