//! An experiment: a light user fetches every second from a fileserver in a small cgroup, while noisy clients clone a large
//! repository from it: on an idle machine, without protection, and with it. `scripts/protect` builds and runs it;
//! docs/fileserver.md tells what it found.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement that fails is none"
)]

mod clients;
mod fetch;
mod figures;
mod plot;
mod repositories;
mod site;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use tempfile::tempdir;

use self::figures::Run;
use self::site::{Protection, Site};

/// Compares what a light user feels with and without protection, in some minutes.
#[derive(Parser)]
struct Args {
    /// A smoke run of some seconds, too short for its figures to mean anything.
    #[arg(long)]
    quick: bool,
    /// Write the figures as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a plot of both runs, in SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// The fileserver's program.
    #[arg(long, value_name = "FILE")]
    fileserver: PathBuf,
    /// The fileserver's settings with protection.
    #[arg(long, value_name = "FILE")]
    settings: PathBuf,
}

/// Clients that clone without end.
const NOISY: usize = 20;

#[tokio::main]
async fn main() {
    let args = Args::parse();
    let (seconds, commits) = if args.quick { (3, 3) } else { (60, 60) };
    let lasts = Duration::from_secs(seconds);
    let folder = tempdir().expect("a temporary folder");
    eprintln!("makes the repositories");
    let repositories = repositories::make(folder.path(), commits).await;

    let mut runs = Vec::new();
    for (name, protection, noisy) in [
        ("idle", Protection::On, 0),
        ("unprotected", Protection::Off, NOISY),
        ("protected", Protection::On, NOISY),
    ] {
        eprintln!("{name}: {noisy} noisy clients and a light one, for {lasts:?}");
        let site = Site::start(folder.path(), &args.fileserver, &args.settings, protection).await;
        runs.push(Run { name, ..site.measure(&repositories, noisy, lasts).await });
    }
    let [idle, unprotected, protected] = &runs[..] else { unreachable!("three runs") };

    print!("{}", figures::table(&runs));
    let write = |file: PathBuf, text: String| {
        std::fs::write(&file, text)
            .unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
    };
    if let Some(file) = args.json {
        write(file, figures::json(idle, unprotected, protected));
    }
    if let Some(file) = args.plot {
        write(file, plot::svg(idle, unprotected, protected));
    }
}
