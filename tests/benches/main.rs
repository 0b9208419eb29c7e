//! Measures the service on one machine and prints a table; `scripts/bench` builds and runs it. docs/performance.md
//! tells what each figure is, and what it was when last measured.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement that fails is none"
)]

mod charges;
mod checks;
mod closed_loop;
mod local;
mod machine;
mod open_loop;
mod plan;
mod redis_cpu;
mod redis_memory;
mod report;
mod start;
mod workload;

use std::path::PathBuf;

use clap::Parser;
use quota_tests::redis::RedisServer;

use self::plan::Plan;
use self::report::Report;

/// Measures the quota service, in some minutes: Redis' CPU and memory, checks over gRPC, and the start.
#[derive(Parser)]
struct Args {
    /// A smoke run of some seconds, too short for its figures to mean anything.
    #[arg(long)]
    quick: bool,
    /// Write the figures as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() {
    let args = Args::parse();
    let plan = if args.quick { Plan::QUICK } else { Plan::FULL };
    let redis = RedisServer::start().await;

    let mut report = Report::default();
    machine::describe(&mut report, &redis, &plan).await;
    redis_cpu::measure(&mut report, &redis, &plan).await;
    redis_memory::measure(&mut report, &redis).await;
    closed_loop::measure(&mut report, &redis, &plan).await;
    charges::measure(&mut report, &redis, &plan).await;
    local::measure(&mut report, &redis, &plan).await;
    open_loop::measure(&mut report, &plan).await;
    start::measure(&mut report, &redis, &plan).await;
    machine::describe_end(&mut report);

    print!("{report}");
    if let Some(file) = args.json {
        std::fs::write(&file, report.json())
            .unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
    }
}
