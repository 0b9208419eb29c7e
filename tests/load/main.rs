//! Loads a quota service as a fleet of fileservers would: requests of millions of accounts, of which a few are popular, whose
//! costs differ widely, by a schedule that waits for no answer. `scripts/load` builds and runs it; docs/performance.md tells
//! what its figures mean.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement that fails is none"
)]

mod fileserver;
mod outcome;
mod population;
mod schedule;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use quota_tests::latency;

use self::outcome::Outcome;

/// Sends checks and reports to a quota service, by a schedule that waits for no answer.
#[derive(Clone, Parser)]
struct Args {
    /// Where gRPC is answered; several are taken in turn.
    #[arg(long = "endpoint", value_name = "URL", default_value = "http://127.0.0.1:8081")]
    endpoints: Vec<String>,
    /// What a fileserver shows where the service wants tokens.
    #[arg(long, env = "QUOTA_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Fileservers, with a connection each.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    fileservers: u32,
    /// Users, and as many repositories and addresses.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    accounts: u64,
    /// How popular some are: the n-th has 1/n^this of the requests of the first. 0: all the same.
    #[arg(long, default_value_t = 1.0, value_parser = exponent)]
    zipf: f64,
    /// Checks a second, of all fileservers together, at random moments.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// How long, in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Checks that a fileserver has in flight at most. What is due while there are as many is not sent, and counted.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    in_flight: u32,
    /// What everything random comes from; without one, a new one, which is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Write the figures as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write how long calls took, as a picture.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// A smoke run of two seconds, to see that it runs: 3 fileservers, 1,000 accounts, 100 checks a second.
    #[arg(long)]
    quick: bool,
}

#[tokio::main]
async fn main() {
    let mut args = Args::parse();
    if args.quick {
        args = Args { fileservers: 3, accounts: 1_000, rate: 100, seconds: 2, ..args };
    }
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}");
    let outcome = schedule::run(&args, seed).await;
    print!("{outcome}");
    if let Some(file) = &args.json {
        write(file, &outcome.json(seed));
    }
    if let Some(file) = &args.svg {
        write(file, &picture(&outcome, &args));
    }
}

fn picture(outcome: &Outcome, args: &Args) -> String {
    let title = format!("{} checks a second for {} s, from their scheduled moments", args.rate, args.seconds);
    let micros = 1e3;
    let histograms = [
        ("checks", &outcome.checks, micros),
        ("reports", &outcome.reports, micros),
        ("sent late", &outcome.late, micros),
    ];
    latency::chart(&title, &histograms).svg()
}

fn exponent(text: &str) -> Result<f64, String> {
    let exponent: f64 = text.parse().map_err(|_| "a number".to_owned())?;
    if (0.0..=10.0).contains(&exponent) { Ok(exponent) } else { Err("0 to 10".to_owned()) }
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text)
        .unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
}

/// A second of the schedule.
const SECOND: Duration = Duration::from_secs(1);
