//! The measurements of `scripts/bench` run, and docs/performance.md names what they give.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::collections::BTreeSet;
use std::fs;

use quota_tests::process::Program;
use serde_json::{Map, Value};

const DOCS: &str = include_str!("../../docs/performance.md");

/// What stands for several words in a key.
const WORDS: [(&str, &[&str]); 3] =
    [("<n>", &["1", "8", "64"]), ("<store>", &["memory", "redis"]), ("<mode>", &["strict", "local"])];

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

async fn quick_run() -> Map<String, Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.json");
    let mut bench = Program::of_workspace("quota-bench").arg("--quick").arg("--json").arg(&file).start();
    let status = bench.wait_for_exit().await;
    assert!(status.success(), "{status}\n{}", bench.stderr());
    serde_json::from_slice(&fs::read(&file).unwrap()).unwrap()
}

#[tokio::test]
async fn the_page_tells_every_figure_and_no_other() {
    let figures = quick_run().await;
    assert_eq!(figures.keys().cloned().collect::<BTreeSet<_>>(), documented());
    assert_eq!(figures["run.mode"], "quick");
    for (key, figure) in figures.iter().filter(|(_, figure)| figure.is_object()) {
        let [min, median, max] = ["min", "median", "max"].map(|name| figure[name].as_f64().unwrap());
        assert!(0.0 <= min && min <= median && median <= max, "{key}: {figure}");
    }
}
