use futures::future::join_all;
use redis::Client;
use tempfile::TempDir;

use super::RedisServer;
use crate::ports::Port;
use crate::process::{Process, Program};
use crate::wait::{PATIENCE, until};

/// What the Sentinels call the primary.
const NAME: &str = "main";

const SENTINELS: usize = 3;

/// A primary and its replica, and Sentinels that watch them, as local processes.
#[derive(Debug)]
pub struct RedisSentinel {
    primary: RedisServer,
    _replica: RedisServer,
    sentinels: Vec<Watcher>,
}

#[derive(Debug)]
struct Watcher {
    process: Process,
    _folder: TempDir,
    port: Port,
}

impl RedisSentinel {
    /// Starts them in such a way that no server is so slow that another takes its place.
    pub async fn start() -> Self {
        Self::down_after("60000").await
    }

    /// The same, but a primary that does not answer for a second and a half is replaced.
    pub async fn quick_to_fail_over() -> Self {
        Self::down_after("1500").await
    }

    async fn down_after(milliseconds: &str) -> Self {
        let options = RedisServer::options().local().args(&["--repl-diskless-sync-delay", "0"]);
        let (primary, replica) = tokio::join!(options.clone().start(), options.start());
        replica.follow(&primary).await;
        let sentinels = (0..SENTINELS).map(|_| Watcher::start(primary.port(), milliseconds));
        let started = Self { sentinels: sentinels.collect(), primary, _replica: replica };
        join_all(started.sentinels.iter().map(Watcher::is_ready)).await;
        started
    }

    /// The address for a client.
    pub fn url(&self) -> String {
        let sentinels: Vec<String> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port.number())).collect();
        format!("redis+sentinel://{}/{NAME}", sentinels.join(","))
    }

    /// The server that is the primary at first.
    pub fn primary(&self) -> &RedisServer {
        &self.primary
    }

    /// Freezes the Sentinel that the address names first.
    pub fn pause_first(&mut self) {
        self.sentinels[0].process.pause();
    }

    /// Ends the primary as a crash would.
    pub async fn kill_primary(&mut self) {
        self.primary.kill().await;
    }
}

impl Watcher {
    fn start(primary: u16, down_after: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = Port::free();
        let file = folder.path().join("sentinel.conf");
        // Sentinel writes into this file what it learns.
        let settings = format!(
            "port {}\nbind 127.0.0.1\ndir {}\nsentinel monitor {NAME} 127.0.0.1 {primary} 2\n\
             sentinel down-after-milliseconds {NAME} {down_after}\nsentinel failover-timeout {NAME} 10000\n",
            port.number(),
            folder.path().display()
        );
        std::fs::write(&file, settings).expect("a file in a temporary folder");
        let process = Program::new("redis-server").arg(file).arg("--sentinel").start();
        Self { process, _folder: folder, port }
    }

    /// Waits until it knows the replica and enough other Sentinels for a failover.
    async fn is_ready(&self) {
        until(PATIENCE, "a Sentinel knows the others", async || {
            let client = Client::open(format!("redis://127.0.0.1:{}", self.port.number())).ok()?;
            let mut connection = client.get_multiplexed_async_connection().await.ok()?;
            let told: std::collections::HashMap<String, String> =
                redis::cmd("SENTINEL").arg("MASTER").arg(NAME).query_async(&mut connection).await.ok()?;
            let is = |field: &str, count: &str| told.get(field).is_some_and(|value| value == count);
            (is("num-slaves", "1") && is("num-other-sentinels", "2")).then_some(())
        })
        .await;
    }
}
