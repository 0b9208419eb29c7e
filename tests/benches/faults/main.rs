//! What each fault costs: `scripts/faults` runs this. Arguments choose scenarios by a part of their names; `--write-docs` writes
//! the table into docs/reliability.md, too.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement reports by panicking"
)]

mod peers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use quota_tests::faults::{Outcome, Scale, Scenario};
use quota_tests::limitador::Limitador;

/// Ten seconds of load before each fault, while it lasts and after it: 240 checks a second, with the default deadlines.
const SCALE: Scale = Scale {
    api_callers: 8,
    client_callers: 4,
    pace: Duration::from_millis(50),
    checks: 200,
    store_deadline: Duration::from_millis(50),
    client_deadline: Duration::from_millis(100),
};

/// How much later than its deadline a decision may come, beside the machine's own lateness.
const TOLERANCE: Duration = Duration::from_millis(20);

/// How long after the fault the store may be without a decision.
const BACK: Duration = Duration::from_secs(5);

/// How often the machine's own lateness is sampled.
const TICK: Duration = Duration::from_millis(2);

/// Breaks things under load, and tells what it cost.
#[derive(Parser)]
struct Args {
    /// Scenarios, by a part of their names; all, where there is none.
    names: Vec<String>,
    /// Write the table into docs/reliability.md.
    #[arg(long)]
    write_docs: bool,
    /// Beside a built `limitador-server`, too, or that of the source tree in which it was built for release.
    #[arg(long, value_name = "PATH")]
    limitador: Option<PathBuf>,
    /// What cargo says to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Args { names, write_docs, limitador, bench: _ } = Args::parse();
    let is_chosen = |scenario: &Scenario| {
        names.is_empty() || names.iter().any(|name| scenario.name().contains(name.as_str()))
    };
    let chosen: Vec<_> = Scenario::ALL.into_iter().filter(is_chosen).collect();
    assert!(!chosen.is_empty(), "no scenario has one of {names:?} in its name");
    let header =
        ["checks", "unchecked", "wait API", "wait client", "back after", "lost", "wrong", "stray", "machine"];
    println!("{}", line("scenario", header.map(str::to_owned)));
    let (mut missed, mut rows) = (Vec::new(), String::new());
    for scenario in chosen {
        if !scenario.is_possible().await {
            continue;
        }
        let (outcome, machine) = measure(scenario).await;
        println!("{}", line(scenario.name(), cells(&outcome, machine)));
        rows.push_str(&row(scenario, &outcome));
        missed.extend(misses(scenario, &outcome, machine));
        // After its line, which says how much.
        outcome.assert_balanced();
    }
    let peers = match limitador {
        None => String::new(),
        Some(path) => peers::rows(&Limitador::program(&path)).await,
    };
    if write_docs {
        let text = std::fs::read_to_string(PAGE).expect("the page");
        let text = with_table(&text, "faults", OURS, &rows);
        let text = if peers.is_empty() { text } else { with_table(&text, "peers", PEERS, &peers) };
        std::fs::write(PAGE, text).expect("a page that can be written");
    }
    missed.iter().for_each(|miss| println!("missed: {miss}"));
    if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a scenario, and tells by how much the machine was late at most to run a thread that was due: every wait may be
/// longer by as much, whatever the service does.
async fn measure(scenario: Scenario) -> (Outcome, Duration) {
    let is_over = Arc::new(AtomicBool::new(false));
    let machine = thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let due = Instant::now() + TICK;
                thread::sleep(TICK);
                longest = longest.max(due.elapsed());
            }
            longest
        }
    });
    let outcome = scenario.run(&SCALE).await;
    is_over.store(true, Ordering::Relaxed);
    (outcome, machine.join().unwrap())
}

fn cells(outcome: &Outcome, machine: Duration) -> [String; 9] {
    let millis = |time: Duration| format!("{} ms", time.as_millis());
    let balance = &outcome.balance;
    [
        outcome.checks.to_string(),
        outcome.unchecked.to_string(),
        millis(outcome.api_wait),
        millis(outcome.client_wait),
        millis(outcome.back_after),
        balance.lost.len().to_string(),
        (balance.wrong.len() + balance.torn.len()).to_string(),
        balance.stray.to_string(),
        millis(machine),
    ]
}

fn line(name: &str, cells: [String; 9]) -> String {
    cells.iter().fold(format!("{name:28}"), |line, cell| format!("{line} {cell:>11}"))
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reliability.md");

/// Columns of the page's tables.
const OURS: &str = "| fault | how it is brought about | promise | checks | without the store | longest wait, HTTP | client crate \
                    | decisions back after | lost | counted twice |\n|---|---|---|---|---|---|---|---|---|---|\n";
const PEERS: &str = "| fault | | answers | errors | longest wait | answers back after | counts again |\n|---|---|---|---|---|---|---|\n";

/// The page, with a table of this run between its marks.
fn with_table(page: &str, name: &str, heading: &str, rows: &str) -> String {
    let begin = format!("<!-- scripts/faults --write-docs writes {name} from here -->\n");
    let end = format!("<!-- to here: {name} -->\n");
    let (before, rest) = page.split_once(&begin).expect("the mark at which the table begins");
    let (_, after) = rest.split_once(&end).expect("the mark at which the table ends");
    format!("{before}{begin}\n{heading}{rows}\n{end}{after}")
}

fn row(scenario: Scenario, outcome: &Outcome) -> String {
    // Where all callers are of the other sort, or a frozen server has them wait for their own patience.
    let wait = |wait: Duration| match wait.as_millis() {
        0 => String::new(),
        millis => format!("{millis} ms"),
    };
    let balance = &outcome.balance;
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} ms | {} | {} |\n",
        scenario.name(),
        scenario.injected(),
        scenario.promise(),
        outcome.checks,
        outcome.unchecked,
        wait(outcome.api_wait),
        wait(outcome.client_wait),
        outcome.back_after.as_millis(),
        balance.lost.len(),
        balance.wrong.len() + balance.torn.len(),
    )
}

/// What is later than it is to be.
fn misses(scenario: Scenario, outcome: &Outcome, machine: Duration) -> Vec<String> {
    let mut misses = Vec::new();
    let mut aim = |what: &str, time: Duration, bound: Duration| {
        if time > bound {
            misses.push(format!("{}: {what} {time:?} > {bound:?}", scenario.name()));
        }
    };
    // A frozen server answers nobody: its callers have their own deadline.
    if scenario != Scenario::ServerFrozen {
        aim("wait at the API", outcome.api_wait, SCALE.store_deadline + TOLERANCE + machine);
    }
    aim("wait through the client", outcome.client_wait, SCALE.client_deadline + TOLERANCE + machine);
    aim("back after", outcome.back_after, BACK);
    let unnoticed = matches!(scenario, Scenario::ScriptsFlushed | Scenario::CertificateReplaced);
    if unnoticed && outcome.unchecked > 0 {
        misses.push(format!("{}: {} unchecked, and nobody is to notice", scenario.name(), outcome.unchecked));
    }
    misses
}
