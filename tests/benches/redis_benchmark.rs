//! What Redis does for as many round trips as there are checks, by its own `redis-benchmark`: a script of three `INCRBY` and
//! `EXPIRE` in each.

use std::process::Command;

use quota_tests::redis::RedisServer;

use crate::redis_cpu::INCR;

/// What a run gave.
pub(crate) struct Measured {
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// Runs so many calls over so many connections.
pub(crate) async fn run(redis: &RedisServer, connections: usize, calls: usize) -> Measured {
    let sha: String = redis::cmd("SCRIPT")
        .arg("LOAD")
        .arg(INCR)
        .query_async(&mut redis.client().await)
        .await
        .expect("a script that is loaded");
    let mut command = Command::new("redis-benchmark");
    command.args(["--csv", "-p", &redis.port().to_string()]);
    command.args(["-c", &connections.to_string(), "-n", &calls.to_string(), "-r", "5000"]);
    command.args(["evalsha", &sha, "3"]);
    command.args(["repo", "user", "ip"].map(|kind| format!("incr:{{{kind}:__rand_int__}}"))).arg("1000");
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("no panic");
    let output = output.expect("redis-benchmark, which comes with redis-cli");
    let text = String::from_utf8_lossy(&output.stdout);
    // A line of names, and one of values; times in milliseconds.
    let line = text.lines().last().expect("a line of values");
    let column = |column: usize| -> f64 {
        let value = line.rsplit(',').nth(7 - column).map(|value| value.trim_matches('"'));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no figures in {text}"))
    };
    Measured { per_second: column(1), p50_us: 1e3 * column(4), p99_us: 1e3 * column(6) }
}
