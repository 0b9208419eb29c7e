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
mod classes;
mod client_memory;
mod closed_loop;
mod echo;
mod exact;
mod growth;
mod local;
mod machine;
mod open_loop;
mod plan;
mod redis_benchmark;
mod redis_cpu;
mod redis_memory;
mod report;
mod staleness;
mod start;
mod warm;
mod workload;

use std::path::{Path, PathBuf};

use clap::Parser;
use hdrhistogram::Histogram;
use quota_tests::latency;
use quota_tests::limitador::Limitador;
use quota_tests::redis::RedisServer;

use self::closed_loop::Latencies;
use self::plan::Plan;
use self::report::Report;

/// Measures the quota service, in some minutes: Redis' CPU and memory, checks over gRPC and in a client, what is let in,
/// and the start.
#[derive(Parser)]
struct Args {
    /// A smoke run of some seconds, too short for its figures to mean anything.
    #[arg(long)]
    quick: bool,
    /// Write the figures as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write plots into this directory, in SVG: how long checks take, and what shares that lie idle cost.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// A built `limitador-server` to compare with, or the source tree in which it was built for release.
    #[arg(long, value_name = "PATH")]
    limitador: Option<PathBuf>,
    /// Measure this alone.
    #[arg(long, conflicts_with_all = ["plots", "limitador"])]
    only: Option<Only>,
    /// Answer every check with this answer instead of measuring; how this starts itself to compare with.
    #[arg(long, value_name = "BASE64", hide = true)]
    echo: Option<String>,
}

/// What can be measured alone.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Only {
    /// Checks and backoffs by a schedule.
    Schedule,
    /// What one class costs another.
    Classes,
}

#[tokio::main]
async fn main() {
    let args = Args::parse();
    if let Some(answer) = args.echo {
        return echo::serve(&answer).await;
    }
    let limitador = args.limitador.map(|path| Limitador::program(&path));
    let plan = if args.quick { Plan::QUICK } else { Plan::FULL };
    let redis = RedisServer::start().await;

    let mut report = Report::default();
    machine::describe(&mut report, &redis, &plan).await;
    if let Some(only) = args.only {
        match only {
            Only::Schedule => open_loop::measure(&mut report, &plan).await,
            Only::Classes => classes::measure(&mut report, &redis, &plan).await,
        }
        return tell(&report, args.json.as_deref());
    }
    redis_cpu::measure(&mut report, &redis, &plan).await;
    redis_memory::measure(&mut report, &redis).await;
    let checks = closed_loop::measure(&mut report, &redis, limitador.as_deref(), &plan).await;
    charges::measure(&mut report, &redis, &plan).await;
    warm::measure(&mut report, &plan).await;
    client_memory::measure(&mut report, &plan).await;
    growth::measure(&mut report, &plan).await;
    exact::measure(&mut report, &redis, limitador.as_deref(), &plan).await;
    let by_share = local::measure(&mut report, &redis, &plan).await;
    open_loop::measure(&mut report, &plan).await;
    classes::measure(&mut report, &redis, &plan).await;
    start::measure(&mut report, &redis, &plan).await;
    machine::describe_end(&mut report);

    tell(&report, args.json.as_deref());
    if limitador.is_none() {
        println!("\nNot compared with limitador: name a built limitador-server by --limitador");
    }
    if let Some(directory) = args.plots {
        std::fs::create_dir_all(&directory).expect("a directory for plots");
        write(&directory.join("latency.svg"), &latencies(&checks, &by_share));
        write(&directory.join("staleness.svg"), &staleness::measure(&plan).await.svg());
    }
}

/// How long a check takes, by what is asked.
fn latencies(checks: &Latencies, by_share: &Histogram<u64>) -> String {
    let micros = 1e3;
    let histograms = [
        ("on Redis", &checks.redis, micros),
        ("on memory", &checks.memory, micros),
        ("echo, nothing decided", &checks.echo, micros),
        ("by shares (quota-client)", by_share, 1.0),
    ];
    latency::chart("A check, one caller that asks again when it is answered", &histograms).svg()
}

fn tell(report: &Report, json: Option<&Path>) {
    print!("{report}");
    if let Some(file) = json {
        write(file, &report.json());
    }
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text)
        .unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
}
