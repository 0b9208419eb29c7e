//! What a recorder gets: the catalogue of docs/fileserver.md, and no name of an account.

use std::collections::{BTreeMap, BTreeSet};

use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use super::machine::{Machine, calm, hot};
use super::*;
use crate::classes::ClassFigures;
use crate::concurrency::calibrator::LATENCY;
use crate::local::cuts::tests::cut;
use crate::{NoSlotReason, PressureSignal, Reason};

const PAGE: &str = include_str!("../../../docs/fileserver.md");

const SETTINGS: &str = r#"
    [[concurrency]]
    rpc = "/gitaly.SSHService/SSHUploadPack"
    per = "repo"
    adaptive = { min = 1, initial = 2, max = 2 }
    max_queue = 0
    max_wait = "1s"
    unauthenticated = { limit = 1 }
"#;

/// By the name, and `label=value` in order.
type Values = BTreeMap<(String, Vec<String>), DebugValue>;

fn values(snapshotter: &Snapshotter) -> Values {
    let metrics = snapshotter.snapshot().into_vec().into_iter();
    let with_name = metrics.map(|(key, _, _, value)| {
        let mut labels: Vec<_> =
            key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        labels.sort();
        ((key.key().name().to_owned(), labels), value)
    });
    with_name.collect()
}

fn value<'a>(values: &'a Values, name: &str, labels: &[&str]) -> &'a DebugValue {
    let key = (name.to_owned(), labels.iter().map(|label| (*label).to_owned()).collect());
    values.get(&key).unwrap_or_else(|| panic!("{key:?} is not among {:?}", values.keys()))
}

/// The rows of the catalogue: name, kind, and the names of its labels.
fn documented() -> BTreeSet<(String, String, Vec<String>)> {
    let rows = PAGE.lines().filter(|row| row.starts_with("| `quota_client_"));
    let row = |row: &str| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ["", name, kind, labels, _meaning, ""] = cells[..] else { panic!("another shape: {row}") };
        let mut labels: Vec<_> = labels.split(", ").filter(|label| *label != "none").collect();
        labels.sort_unstable();
        let plain = |text: &str| text.trim_matches('`').to_owned();
        (plain(name), kind.to_owned(), labels.into_iter().map(plain).collect())
    };
    rows.map(row).collect()
}

#[tokio::test(start_paused = true)]
async fn the_catalogue_is_as_documented_and_labels_are_of_closed_sets() {
    let recorder = DebuggingRecorder::new();
    let _recording = ::metrics::set_default_local_recorder(&recorder);
    let machine = Machine::new(SETTINGS);
    let request = fetch().ip("192.0.2.1".parse().unwrap());
    let _held = [
        machine.client.acquire(&request, None).await.unwrap(),
        machine.client.acquire(&request, None).await.unwrap(),
    ];
    machine.client.acquire(&request, None).await.unwrap_err();
    machine.is_for(&hot(), 1).await;

    let figures =
        ClassFigures { waited: vec![Duration::ZERO], took: vec![Duration::ZERO], ..ClassFigures::default() };
    crate::metrics::show_classes([("ci".into(), figures)].into());

    let snapshot = recorder.snapshotter().snapshot().into_vec();
    let mut catalogue = BTreeSet::new();
    let rpcs = [FETCH];
    for (key, _, help, _) in &snapshot {
        let kind = match key.kind() {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let mut labels = Vec::new();
        for label in key.key().labels() {
            let is_known = match label.key() {
                "rpc" => rpcs.contains(&label.value()),
                "authenticated" => ["true", "false"].contains(&label.value()),
                "class" => label.value() == "ci",
                "reason" if key.key().name() == "quota_client_class_refused_total" => {
                    NoSlotReason::ALL.iter().any(|reason| reason.as_str() == label.value())
                }
                "reason" => Reason::ALL.iter().any(|reason| reason.as_str() == label.value()),
                "signal" if label.value() == LATENCY => true,
                "signal" => PressureSignal::ALL.iter().any(|signal| signal.as_str() == label.value()),
                "outcome" => PAGE.contains(&format!("`{}`", label.value())),
                _ => false,
            };
            assert!(is_known, "{} {label:?}", key.key().name());
            labels.push(label.key().to_owned());
        }
        labels.sort();
        assert!(help.is_some(), "{} is not described", key.key().name());
        catalogue.insert((key.key().name().to_owned(), kind.to_owned(), labels));
    }
    assert_eq!(catalogue, documented());
}

#[tokio::test(start_paused = true)]
async fn f22_figures_are_what_happened() {
    let recorder = DebuggingRecorder::new();
    let _recording = ::metrics::set_default_local_recorder(&recorder);
    let machine = Machine::new(SETTINGS);
    let held = [
        machine.client.acquire(&fetch(), None).await.unwrap(),
        machine.client.acquire(&fetch(), None).await.unwrap(),
    ];
    machine.client.acquire(&fetch(), None).await.unwrap_err();
    machine.is_for(&hot(), 1).await;
    machine.client.meter(&fetch()).cpu(Duration::from_secs(1));
    machine.client.shared().collect(Duration::from_secs(1)).await;
    machine.client.shared().local.lock().learn_cuts(&[cut("alice", 1), cut("bob", 1)]);
    machine.is(&calm(), 7).await;

    let values = values(&recorder.snapshotter());
    let gauge = |value: f64| DebugValue::Gauge(value.into());
    let of_users =
        |name: &str| value(&values, name, &["authenticated=true", "rpc=/gitaly.SSHService/SSHUploadPack"]);
    assert_eq!(of_users("quota_client_requests_in_progress"), &gauge(2.0));
    assert_eq!(of_users("quota_client_requests_queued"), &gauge(0.0));
    assert_eq!(of_users("quota_client_concurrency_limit"), &gauge(1.0), "2 were cut to 1");
    assert_eq!(of_users("quota_client_acquire_seconds"), &DebugValue::Histogram(vec![0.0.into(); 2]));
    let dropped = ["authenticated=true", "reason=queue_full", "rpc=/gitaly.SSHService/SSHUploadPack"];
    assert_eq!(value(&values, "quota_client_requests_dropped_total", &dropped), &DebugValue::Counter(1));
    let backoffs = value(&values, "quota_client_backoff_events_total", &["signal=cpu"]);
    assert_eq!(backoffs, &DebugValue::Counter(1));
    for (signal, is_there) in [("signal=cpu", 1.0), ("signal=network", 0.0)] {
        assert_eq!(value(&values, "quota_client_signal_available", &[signal]), &gauge(is_there), "{signal}");
    }
    assert_eq!(value(&values, "quota_client_unsent_entries", &[]), &gauge(1.0));
    assert_eq!(value(&values, "quota_client_accounts_cut", &[]), &gauge(2.0));
    let DebugValue::Gauge(lag) = value(&values, "quota_client_report_lag_seconds", &[]) else {
        panic!("none")
    };
    assert!((6.0..=7.0).contains(&lag.0), "{lag}");
    drop(held);
}

/// As absent, and not as healthy, while the others go on.
#[tokio::test(start_paused = true)]
async fn f18_a_signal_that_cannot_be_read_is_shown_as_absent_until_it_can() {
    let recorder = DebuggingRecorder::new();
    let _recording = ::metrics::set_default_local_recorder(&recorder);
    let machine = Machine::new(SETTINGS);
    for (sample, is_there) in [(calm().losing(PressureSignal::Memory, 1), 0.0), (calm(), 1.0)] {
        machine.is(&sample, 1).await;
        let values = values(&recorder.snapshotter());
        for (signal, expected) in [("signal=memory", is_there), ("signal=cpu", 1.0)] {
            let shown = value(&values, "quota_client_signal_available", &[signal]);
            assert_eq!(shown, &DebugValue::Gauge(expected.into()), "{signal}");
        }
    }
}
