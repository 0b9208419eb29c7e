//! The measurements of `scripts/bench` run, and docs/performance.md names what they give.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use quota_tests::process::Program;
use serde_json::{Map, Value};

const DOCS: &str = include_str!("../../docs/performance.md");

/// What stands for several words in a key.
const WORDS: [(&str, &[&str]); 4] = [
    ("<n>", &["1", "8", "64"]),
    ("<store>", &["memory", "redis"]),
    ("<mode>", &["strict", "local"]),
    ("<counters>", &["memory", "redis", "redis_cached"]),
];

/// The keys in the page's tables, whose rows begin with a key in backticks.
fn documented() -> BTreeSet<String> {
    let rows = DOCS.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut keys = BTreeSet::new();
    for (key, _) in rows {
        let expanded = WORDS.iter().fold(vec![key.to_owned()], |keys, (word, values)| {
            let replaced = keys.iter().flat_map(|key| values.iter().map(|value| key.replace(word, value)));
            replaced.collect()
        });
        for key in expanded.into_iter().collect::<BTreeSet<_>>() {
            assert!(keys.insert(key.clone()), "{key} is documented twice");
        }
    }
    keys
}

/// Far more than the slowest machine needs.
const LONG: Duration = Duration::from_secs(150);

/// Without limitador, which is not there as a rule.
async fn quick_run() -> Map<String, Value> {
    let folder = tempfile::tempdir().unwrap();
    let [file, plots] = ["figures.json", "plots"].map(|name| folder.path().join(name));
    let bench = Program::of_workspace("quota-bench").args(["--quick", "--plots"]).arg(&plots);
    let mut bench = bench.arg("--json").arg(&file).start();
    let status = bench.wait_for_exit_within(LONG).await;
    assert!(status.success(), "{status}\n{}", bench.stderr());
    assert!(bench.stdout().contains("Not compared with limitador"), "{}", bench.stdout());
    for plot in ["latency.svg", "staleness.svg"] {
        assert!(fs::read_to_string(plots.join(plot)).unwrap().ends_with("</svg>\n"), "{plot}");
    }
    serde_json::from_slice(&fs::read(&file).unwrap()).unwrap()
}

#[tokio::test]
async fn the_page_tells_every_figure_and_no_other() {
    let figures = quick_run().await;
    let mut expected = documented();
    expected.retain(|key| !key.contains("limitador"));
    assert_eq!(figures.keys().cloned().collect::<BTreeSet<_>>(), expected);
    assert_eq!(figures["run.mode"], "quick");
    for (key, figure) in figures.iter().filter(|(_, figure)| figure.is_object()) {
        let [min, median, max] = ["min", "median", "max"].map(|name| figure[name].as_f64().unwrap());
        assert!(0.0 <= min && min <= median && median <= max, "{key}: {figure}");
    }
}
