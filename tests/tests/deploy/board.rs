//! The board for Grafana, which draws what its queries name and nothing where a name is wrong.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{metrics_in, text};

/// What Grafana puts in for its variables.
const VARIABLES: [(&str, &str); 2] = [("$__rate_interval", "1m"), ("$node", ".*")];

fn board() -> Value {
    serde_json::from_str(&text("deploy/grafana/quota.json")).expect("JSON")
}

fn panels(board: &Value) -> impl Iterator<Item = &Value> {
    board["panels"].as_array().expect("panels").iter().filter(|panel| panel["type"] != "row")
}

/// Every query, as Prometheus gets it.
pub(crate) fn queries() -> Vec<String> {
    let board = board();
    let targets = panels(&board).flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let queries = targets.map(|target| {
        let query = target["expr"].as_str().expect("a query").to_owned();
        VARIABLES.iter().fold(query, |query, (variable, value)| query.replace(variable, value))
    });
    queries.collect()
}

#[test]
fn every_metric_on_it_is_in_the_catalogues() {
    let catalogues = [text("docs/metrics.md"), text("docs/fileserver.md")].concat();
    let board = text("deploy/grafana/quota.json");
    let names = metrics_in(&board);
    assert!(names.len() >= 20, "{names:?}");
    for name in names {
        assert!(catalogues.contains(&format!("| `{name}` |")), "{name} is in no catalogue");
    }
}

#[test]
fn panels_say_what_they_are_of_and_lie_beside_each_other() {
    let board = board();
    let mut cells = BTreeSet::new();
    for panel in panels(&board) {
        let title = panel["title"].as_str().expect("a title");
        assert!(!panel["fieldConfig"]["defaults"]["unit"].is_null(), "{title}: no unit");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        let of = |name: &str| panel["gridPos"][name].as_u64().expect("a place");
        assert!(of("x") + of("w") <= 24, "{title}: beyond the edge");
        for cell in
            (of("x")..of("x") + of("w")).flat_map(|x| (of("y")..of("y") + of("h")).map(move |y| (x, y)))
        {
            assert!(cells.insert(cell), "{title} lies on another");
        }
    }
    for query in queries() {
        assert!(!query.contains('$'), "a variable that nobody defines: {query}");
    }
}
