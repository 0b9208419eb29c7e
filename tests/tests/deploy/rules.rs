//! The alert rules in `deploy/`: Prometheus' own tool reads them and runs their tests, and operators find each in the docs.

use std::path::PathBuf;

use quota_tests::process::Program;

use super::{file, metrics_in, text};

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
    assert!(alerts.len() >= 13, "{alerts:?}");
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
    let (docs, rules) = (text("docs/metrics.md"), text("deploy/alerts.yml"));
    let names = metrics_in(&rules);
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        assert!(docs.contains(&format!("| `{name}` |")), "{name} is not in docs/metrics.md");
    }
}
