//! Ten times as much as a server on Redis is rated for, for minutes, and what it is rated for before and after: what becomes of the
//! calls, how long they take, and what it has in memory. `scripts/overload` builds and runs it; docs/reliability.md tells what came of it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement that fails is none"
)]

use std::fs;
use std::path::Path;

use clap::Parser;
use quota_tests::process::Program;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use serde_json::Value;

/// How much is too much.
const TIMES: u32 = 10;

/// What it is rated for lasts so long, before and after, in seconds.
const RATED_SECONDS: u64 = 30;

/// After so long it is to be as before, in seconds.
const RECOVERY_SECONDS: u64 = 5;

/// What the load comes from.
const SEED: u64 = 1;

/// Loads a server as it is rated, then ten times as much, then as before.
#[derive(Parser)]
struct Args {
    /// Checks a second that it is rated for.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// How long it is too much, in seconds.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// A smoke run of some seconds, to see that it runs.
    #[arg(long)]
    quick: bool,
}

/// What became of a load.
struct Loaded(Value);

#[tokio::main]
async fn main() {
    let Args { mut rate, mut seconds, quick } = Args::parse();
    let (mut rated, mut recovery) = (RATED_SECONDS, RECOVERY_SECONDS);
    if quick {
        (rate, seconds, rated, recovery) = (100, 2, 2, 1);
    }
    let redis = RedisServer::start().await;
    let server = ServerProcess::start(&[("QUOTA__STORE__URL", redis.url().as_str())]).await;
    let folder = tempfile::tempdir().unwrap();
    let load = |rate, seconds| load(&server, folder.path(), rate, seconds);

    println!("{:32} {}  peak MiB", "", Loaded::HEAD);
    let tell = |what: &str, loaded: &Loaded| {
        println!("{what:32} {}  {:8}", loaded.row(), server.process.peak() / 1024);
    };
    let before = load(rate, rated);
    tell(&format!("{rate} a second"), &before);
    tell(&format!("{} a second, {seconds} s", TIMES * rate), &load(TIMES * rate, seconds));
    tell(&format!("{rate} a second, {recovery} s"), &load(rate, recovery));
    let after = load(rate, rated);
    tell(&format!("{rate} a second, after that"), &after);
    println!("p99 after / before: {:.2}", after.micros("p99") as f64 / before.micros("p99") as f64);
    for (cause, count) in refused(&server).await {
        println!("decisions without the store, {cause}: {count}");
    }
}

fn load(server: &ServerProcess, folder: &Path, rate: u32, seconds: u64) -> Loaded {
    let file = folder.join("figures");
    let endpoint = format!("http://{}", server.grpc_address());
    let program = Program::of_workspace("quota-load")
        .args(["--endpoint", &endpoint, "--rate", &rate.to_string(), "--seconds", &seconds.to_string()])
        .args(["--seed", &SEED.to_string(), "--json"])
        .arg(&file);
    let mut process = program.start();
    let status = process.wait();
    assert!(status.success(), "{}", process.stderr());
    Loaded(serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap())
}

/// Checks that the store did not decide, by the cause.
async fn refused(server: &ServerProcess) -> Vec<(String, String)> {
    let metrics = server.http.get("/metrics").await;
    let of_checks = metrics.text().lines().filter_map(|line| {
        let labels = line.strip_prefix("quota_store_errors_total{")?;
        let (labels, count) = labels.split_once("} ")?;
        let cause = labels.split(',').find_map(|label| label.strip_prefix("cause="))?;
        (labels.contains("operation=\"admit\"") && count != "0").then(|| (cause.to_owned(), count.to_owned()))
    });
    of_checks.collect()
}

impl Loaded {
    const HEAD: &'static str = "    decided  unchecked     failed   not sent    p50 us    p99 us    max us";

    fn row(&self) -> String {
        let decided = self.checks("allowed") + self.checks("denied") - self.checks("unchecked");
        let others = ["unchecked", "failed", "unsent"].map(|what| self.checks(what));
        let counts = [[decided].as_slice(), &others].concat().into_iter().map(|count| format!("{count:11}"));
        let times = ["p50", "p99", "max"].map(|quantile| format!("{:10}", self.micros(quantile)));
        counts.chain(times).collect()
    }

    fn checks(&self, what: &str) -> u64 {
        self.0["checks"][what].as_u64().unwrap()
    }

    fn micros(&self, quantile: &str) -> u64 {
        self.0["checks"]["us"][quantile].as_u64().unwrap()
    }
}
