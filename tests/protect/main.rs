//! An experiment: light users fetch every second from a fileserver in a small cgroup, while others clone large repositories
//! from it without end: on an idle machine, without protection, and with it, by each rule. `scripts/protect` builds and runs
//! it; docs/fileserver.md tells what it found.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement that fails is none"
)]

mod clients;
mod crowd;
mod fetch;
mod figures;
mod plot;
mod protection;
mod site;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use quota_tests::repositories;
use tempfile::tempdir;

use self::crowd::Crowd;
use self::figures::{Compared, Run};
use self::protection::{Protection, Rule};
use self::site::Site;

/// Compares what light users feel with and without protection, in some minutes.
#[derive(Parser)]
struct Args {
    /// A smoke run of some seconds, too short for its figures to mean anything.
    #[arg(long)]
    quick: bool,
    /// Write the figures as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a plot of all runs, in SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// The fileserver's program.
    #[arg(long, value_name = "FILE")]
    fileserver: PathBuf,
    /// The fileserver's settings with protection.
    #[arg(long, value_name = "FILE")]
    settings: PathBuf,
}

#[tokio::main]
async fn main() {
    let args = Args::parse();
    let (seconds, commits) = if args.quick { (3, 3) } else { (60, 60) };
    let lasts = Duration::from_secs(seconds);
    let folder = tempdir().expect("a temporary folder");
    eprintln!("makes the repositories");
    let repositories = repositories::make(folder.path(), commits).await;

    let rules = Rule::ALL.map(|rule| (rule.name(), Protection::By(rule), false));
    let cases = [("idle", Protection::By(Rule::Blame), true), ("unprotected", Protection::Off, false)];
    let mut all = Vec::new();
    for crowd in Crowd::ALL {
        let mut runs = Vec::new();
        for (name, protection, is_idle) in cases.into_iter().chain(rules) {
            eprintln!("{}: {name}, for {lasts:?}", crowd.name());
            let site = Site::start(folder.path(), &args.fileserver, &args.settings, protection).await;
            runs.push(Run { name, ..site.measure(&repositories, crowd, is_idle, lasts).await });
        }
        let compared = Compared { crowd, runs };
        println!("{}", figures::table(&compared));
        all.push(compared);
    }
    let write = |file: PathBuf, text: String| {
        std::fs::write(&file, text)
            .unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
    };
    if let Some(file) = args.json {
        write(file, figures::json(&all));
    }
    if let Some(file) = args.plot {
        write(file, plot::svg(&all));
    }
}
