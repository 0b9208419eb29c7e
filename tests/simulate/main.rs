//! Simulates every scenario under every rule, with many seeds, and compares what light requests feel. `scripts/simulate`
//! builds and runs it; docs/adaptation.md tells what it found.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a simulation that fails is none")]

mod docs;
mod job;
mod outage;
mod plot;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use quota_tests::simulate::{Contender, Scenario};

/// Compares how rules adapt limits, in some minutes.
#[derive(Parser)]
struct Args {
    /// How often each scenario is run under each rule; the worst is told.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// One scenario alone, by its name.
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Write the figures as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a plot of each scenario into this directory, in SVG.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Instead: an outage with traffic classes and without, whose plot is written into this file, in SVG.
    #[arg(long, value_name = "FILE")]
    outage: Option<PathBuf>,
    /// Write the table into the page that explains it.
    #[arg(long)]
    write_docs: bool,
    /// The scenarios, a file each.
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/simulate/scenarios"))]
    scenarios: PathBuf,
    /// The page.
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/adaptation.md"))]
    docs: PathBuf,
}

fn main() {
    let args = Args::parse();
    if let Some(file) = &args.outage {
        outage::simulate(file, args.seeds);
        return;
    }
    let scenarios = read(&args.scenarios, args.scenario.as_deref());
    let all = job::compare(&scenarios, &Contender::all(), args.seeds);
    for compared in &all {
        println!("{}", table::of_scenario(compared));
    }
    if let Some(file) = &args.json {
        write(file, &table::json(&all));
    }
    if let Some(directory) = &args.plots {
        fs::create_dir_all(directory).expect("a directory for plots");
        for compared in &all {
            write(&directory.join(format!("{}.svg", compared.name)), &plot::svg(compared));
        }
    }
    if args.write_docs {
        let page = fs::read_to_string(&args.docs).expect("the page");
        write(&args.docs, &docs::with_table(&page, &all, args.seeds));
    }
}

/// By name, in alphabetical order.
fn read(directory: &Path, only: Option<&str>) -> Vec<(String, Scenario)> {
    let files = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut scenarios = Vec::new();
    for file in files {
        let path = file.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if only.is_none_or(|only| only == name) {
            scenarios.push((name, Scenario::read(&path).unwrap_or_else(|error| panic!("{error}"))));
        }
    }
    assert!(!scenarios.is_empty(), "no such scenario in {}", directory.display());
    scenarios.sort_by(|(a, _), (b, _)| a.cmp(b));
    scenarios
}

fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
}
