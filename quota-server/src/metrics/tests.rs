//! The catalogue is what docs/metrics.md says, name by name, with kind, labels and unit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use prometheus::proto::MetricType;
use quota_core::{Cost, PerKind, PerResource, Ratio, Reason, SlotStanding};

use super::*;
use crate::config::Config;

const PAGE: &str = include_str!("../../../docs/metrics.md");

/// Where the names of metrics are.
const SOURCES: [&str; 5] = [
    include_str!("../metrics.rs"),
    include_str!("classes.rs"),
    include_str!("config.rs"),
    include_str!("nodes.rs"),
    include_str!("requests.rs"),
];

/// What a metric is: its kind, and the names of its labels in order.
type Shape = (String, Vec<String>);

/// The rows of the page: what each metric is, and its unit.
fn documented() -> BTreeMap<String, (Shape, String)> {
    let mut catalogue = BTreeMap::new();
    for row in PAGE.lines().filter(|row| row.starts_with("| `quota_")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ["", name, kind, labels, unit, _meaning, ""] = cells[..] else { panic!("another shape: {row}") };
        let plain = |text: &str| text.trim_matches('`').to_owned();
        let mut labels: Vec<_> = labels.split(", ").filter(|label| *label != "none").map(plain).collect();
        labels.sort();
        let before = catalogue.insert(plain(name), ((kind.to_owned(), labels), unit.to_owned()));
        assert!(before.is_none(), "{name} is there twice");
    }
    catalogue
}

/// What a server shows to which something of every kind has happened.
fn shown() -> BTreeMap<String, Shape> {
    let metrics = Metrics::new(&Config::from_toml("").unwrap()).unwrap();
    metrics.decision(Outcome::Allow, None);
    metrics.show_risk(Risk::Eviction, Danger::No);
    metrics.store_latency(Operation::Admit);
    metrics.requests.finished("other", Cost::ZERO, Some(Duration::ZERO));
    metrics.classes.slots("ci", SlotOutcome::Leased, SlotStanding::default());
    metrics.classes.overrun("ci", 1);
    metrics.overrides.with_label_values(&["api"]);
    metrics.modes.with_label_values(&["off"]);
    let cuts = CutFigures { lowest: PerKind::from_fn(|_| Some(1)), ..CutFigures::default() };
    metrics.nodes.show(
        "n",
        &PerKind::from_fn(|_| PerResource::from_fn(|_| Limit::Unlimited)),
        &PerResource::from_fn(|_| Some(Ratio::ONE)),
        &PerResource::from_fn(|_| cuts),
        &PerResource::default(),
    );
    metrics.nodes.calibrated("n", Resource::Cpu, Reason::Hot, Duration::ZERO);
    let families = metrics.registry.gather().into_iter().map(|family| {
        let kind = match family.get_field_type() {
            MetricType::COUNTER => "counter",
            MetricType::GAUGE => "gauge",
            MetricType::HISTOGRAM => "histogram",
            other => panic!("{other:?}"),
        };
        let mut labels: Vec<_> =
            family.get_metric()[0].get_label().iter().map(|label| label.name().to_owned()).collect();
        labels.sort();
        assert!(!family.help().is_empty(), "{}", family.name());
        (family.name().to_owned(), (kind.to_owned(), labels))
    });
    families.collect()
}

#[test]
fn the_page_tells_every_metric_and_no_other() {
    let shown = shown();
    let written: BTreeMap<_, _> = documented().into_iter().map(|(name, (shape, _))| (name, shape)).collect();
    assert_eq!(shown, written);
    // One that nothing above has moved would be missing on both sides.
    let quoted = SOURCES.iter().flat_map(|source| source.split('"'));
    let named: BTreeSet<_> = quoted.filter(|text| is_name(text)).map(str::to_owned).collect();
    assert_eq!(named, shown.into_keys().collect());
}

fn is_name(text: &str) -> bool {
    text.starts_with("quota_") && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

#[test]
fn units_are_those_of_the_names() {
    let suffixes = [("_byte_seconds", "byte-seconds"), ("_seconds", "seconds"), ("_bytes", "bytes")];
    for (name, (_, unit)) in documented() {
        let of_name = suffixes.iter().find(|(suffix, _)| name.trim_end_matches("_total").ends_with(suffix));
        match of_name {
            Some((_, expected)) => assert_eq!(unit, *expected, "{name}"),
            None => assert!(!unit.is_empty(), "{name}"),
        }
    }
}
