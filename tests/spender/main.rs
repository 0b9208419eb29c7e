//! Spends CPU in the name of a user as fast as time passes, as the crate `quota-client` meters it: a process that a test can
//! kill. It writes a line to its standard output for each step that it has spent, `spent MILLISECONDS` so far.
#![allow(clippy::expect_used, reason = "a spender that fails is none")]

use std::io::Write as _;
use std::time::Duration;

use clap::Parser;
use quota_client::{Client, Request};
use tokio::time::{MissedTickBehavior, interval};

/// Spent at once, and how long it takes.
const STEP: Duration = Duration::from_millis(10);

/// Spends, and reports it, until it is killed.
#[derive(Parser)]
struct Args {
    /// The service, over gRPC.
    #[arg(long)]
    endpoint: String,
    /// Who spends.
    #[arg(long)]
    user: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args = Args::parse();
    let client = Client::builder().endpoints([args.endpoint]).node("gitaly-01").build().expect("a client");
    let request = Request::rpc("/gitaly.SSHService/SSHUploadPack").user(args.user);
    let mut pace = interval(STEP);
    // What was missed is not spent: never more than time has passed.
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut spent = Duration::ZERO;
    loop {
        pace.tick().await;
        client.meter(&request).cpu(STEP);
        spent += STEP;
        writeln!(std::io::stdout(), "spent {}", spent.as_millis()).expect("somebody who reads");
    }
}
