//! Random faults under load for as long as you have time, storm after storm, each of which the bookkeeper compares: `scripts/soak` builds
//! and runs it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "it reports by panicking")]

use std::time::{Duration, Instant};

use clap::Parser;
use quota_tests::faults::{Scale, storm};

/// 240 checks a second, with the default deadlines.
const SCALE: Scale = Scale {
    api_callers: 8,
    client_callers: 4,
    pace: Duration::from_millis(50),
    checks: 0,
    store_deadline: Duration::from_millis(50),
    client_deadline: Duration::from_millis(100),
};

/// Breaks Redis, servers and the ways between them at random under load, and compares what was acknowledged with what counts.
#[derive(Parser)]
struct Args {
    /// How long, in seconds; the last storm is ended.
    #[arg(long, default_value_t = 3600)]
    seconds: u64,
    /// Of the first storm; each further one has the next. Without one, a new one, which is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Faults in a storm.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    faults: u16,
}

#[tokio::main]
async fn main() {
    let args = Args::parse();
    let (began, length) = (Instant::now(), Duration::from_secs(args.seconds));
    let first = args.seed.unwrap_or_else(|| fastrand::u64(..u64::from(u32::MAX)));
    let (mut storms, mut checks, mut unchecked, mut stray) = (0, 0, 0, 0);
    while storms == 0 || began.elapsed() < length {
        let seed = first.wrapping_add(storms);
        let outcome = storm(seed, usize::from(args.faults), &SCALE).await;
        println!(
            "seed {seed}: {} checks, {} without the store, longest wait {} ms (HTTP) and {} ms (client), back within {} ms, stray {}",
            outcome.checks,
            outcome.unchecked,
            outcome.api_wait.as_millis(),
            outcome.client_wait.as_millis(),
            outcome.back_after.as_millis(),
            outcome.balance.stray,
        );
        outcome.assert_balanced();
        storms += 1;
        checks += outcome.checks;
        unchecked += outcome.unchecked;
        stray += outcome.balance.stray;
    }
    println!(
        "{storms} storms of {} faults in {} s: {checks} checks, {unchecked} without the store, {stray} stray, nothing lost, nothing twice",
        args.faults,
        began.elapsed().as_secs(),
    );
}
