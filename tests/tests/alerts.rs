//! The alert rules in `deploy/`: Prometheus' own tool reads them and runs their tests, and operators find each in the docs.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use quota_tests::process::Program;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap()
}

/// `promtool` is installed by `scripts/test`.
async fn promtool(args: &[&str]) {
    let args = args
        .iter()
        .map(PathBuf::from)
        .map(|arg| if arg.extension().is_some() { file(arg.to_str().unwrap()) } else { arg });
    let mut promtool = Program::new("promtool").args(args).start();
    let status = promtool.wait_for_exit().await;
    assert!(status.success(), "{}{}", promtool.stdout(), promtool.stderr());
}

#[tokio::test]
async fn the_rules_fire_when_they_should_and_clear() {
    promtool(&["check", "rules", "deploy/alerts.yml"]).await;
    promtool(&["check", "config", "deploy/prometheus.yml"]).await;
    promtool(&["test", "rules", "deploy/alerts_test.yml"]).await;
}

#[test]
fn every_alert_is_tested_and_explained() {
    let (rules, tests, docs) =
        (text("deploy/alerts.yml"), text("deploy/alerts_test.yml"), text("docs/operations.md"));
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 9, "{alerts:?}");
    for alert in alerts {
        assert!(
            tests.contains(&format!("alertname: {alert}\n        exp_alerts:\n")),
            "{alert} is never seen to fire"
        );
        assert!(docs.contains(&format!("| `{alert}` |")), "{alert} is not in docs/operations.md");
    }
}

/// A metric that was renamed would leave an alert that never fires.
#[test]
fn every_metric_of_a_rule_is_in_the_catalogue() {
    let docs = text("docs/operations.md");
    let rules = text("deploy/alerts.yml");
    let words = rules.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names: BTreeSet<&str> = words.filter(|word| word.starts_with("quota_")).collect();
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        let name = name.trim_end_matches("_bucket");
        assert!(docs.contains(&format!("`{name}`")), "{name} is not in docs/operations.md");
    }
}
