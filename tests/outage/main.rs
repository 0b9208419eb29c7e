//! An outage for real: CI calls and interactive requests to two web processes that share a hundred workers, with a quota service on
//! Redis, with traffic classes and without. `scripts/outage` builds and runs it; docs/classes.md tells what came of it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement that fails is none"
)]

mod callers;
mod web;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use quota_tests::outage::{CI_MAX_WAIT, CI_QUEUE, CI_SLOTS, CLASSES, Outcome, Times, chart, tell};
use quota_tests::process::Program;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;

use self::callers::Callers;
use self::web::{Web, WebArgs};

/// Web processes.
const PROCESSES: u32 = 2;

/// Sends CI calls and interactive requests to web workers that become slow, with traffic classes and without.
#[derive(Parser)]
struct Args {
    /// A smoke run of some seconds, to see that it runs.
    #[arg(long)]
    quick: bool,
    /// Write what was served over time into this file, in SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand)]
enum Part {
    /// Serve; how this starts itself as a web process.
    #[command(hide = true)]
    Web(WebArgs),
}

#[tokio::main]
async fn main() {
    let args = Args::parse();
    if let Some(Part::Web(args)) = args.part {
        return web::serve(args).await;
    }
    let times = if args.quick { Times { slow: 2..4, seconds: 6 } } else { Times::FULL };
    let with = run(&times, true).await;
    let without = run(&times, false).await;
    print!("{}", tell(std::slice::from_ref(&with), std::slice::from_ref(&without)));
    println!("The most CI calls in progress, with classes {}, without {}", with.most_ci, without.most_ci);
    if let Some(file) = args.plot {
        let written = std::fs::write(&file, chart(&with, &without).svg());
        written.unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
    }
}

async fn run(times: &Times, with_classes: bool) -> Outcome {
    let redis = RedisServer::start().await;
    let [slots, on_a_node, queue, wait] = [
        CI_SLOTS.to_string(),
        (CI_SLOTS / PROCESSES).to_string(),
        CI_QUEUE.to_string(),
        format!("{}s", CI_MAX_WAIT.as_secs()),
    ];
    let ci = [
        ("QUOTA__CLASSES__CI__SLOTS", slots.as_str()),
        ("QUOTA__CLASSES__CI__NODE_SLOTS", &on_a_node),
        ("QUOTA__CLASSES__CI__SERVICE", "patient"),
        ("QUOTA__CLASSES__CI__MAX_WAIT", &wait),
        ("QUOTA__CLASSES__CI__MAX_QUEUE", &queue),
    ];
    let url = redis.url();
    let store = [("QUOTA__STORE__URL", url.as_str())];
    let settings: Vec<_> =
        store.into_iter().chain(if with_classes { ci.to_vec() } else { Vec::new() }).collect();
    let server = ServerProcess::start(&settings).await;
    let mut processes = Vec::new();
    for number in 1..=PROCESSES {
        let program = Program::of_workspace("quota-outage")
            .args(["web", "--endpoint"])
            .arg(format!("http://{}", server.grpc_address()))
            .args(["--node", &format!("web-{number:02}")]);
        processes.push(Web::listening(program.start()).await);
    }
    if with_classes {
        // A store that was just started leases nothing for the time of a lease.
        for web in &processes {
            web.has_slots(CLASSES[1]).await;
        }
    }
    Callers::new(processes).call(times).await
}
