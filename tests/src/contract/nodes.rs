//! How the limits of nodes follow their pressure, whichever server it is told to.

use std::time::Duration;

use quota_core::{
    Adaptation, Adaptations, Kind, NodeReport, PerKind, PerResource, Range, Ratio, Reason, Resource, Rule,
};
use quota_server::store::{Calibrated, MAX_NODES, Nodes, Store, StoreError};

use super::{Fixture, SECOND};
use crate::values::user;

/// Every behaviour of this topic.
pub async fn all(fixture: &Fixture) {
    a_hundred_reports_a_second_to_two_servers_cut_once_an_interval(fixture).await;
    double_halve_moves_each_second(fixture).await;
    what_is_known_of_a_node_is_the_same_for_every_server(fixture).await;
    a_silent_node_returns_to_its_initial_limits(fixture).await;
    a_clock_that_steps_back_is_counted_and_cuts_no_more_often(fixture).await;
    a_resource_that_is_fixed_has_no_limit_of_the_node(fixture).await;
    a_rule_that_is_changed_begins_from_the_limits_that_are(fixture).await;
    // The last: no further node finds room.
    nodes_are_bounded_and_those_that_are_known_go_on(fixture).await;
}

fn ratio(value: f64) -> Ratio {
    Ratio::try_from(value).expect("a share")
}

fn of_cpu(rule: Rule, interval: Duration) -> Adaptations {
    let ranges = PerKind::from_fn(|_| Range { min: 20, initial: 100, max: 200 });
    PerResource::new(Some(Adaptation { rule, interval, step: ratio(0.1), ranges }), None, None)
}

/// Limits from 20 to 200, beginning at 100; a hot interval of 10 s halves them, a calm one adds 20.
fn aimd() -> Adaptations {
    of_cpu(Rule::Aimd { soft_limit: ratio(0.9), backoff_factor: ratio(0.5) }, 10 * SECOND)
}

fn double_halve() -> Adaptations {
    of_cpu(Rule::DoubleHalve, SECOND)
}

fn under(pressure: f64) -> NodeReport {
    NodeReport { pressure: PerResource::new(Some(ratio(pressure)), None, None), ..NodeReport::default() }
}

impl Fixture {
    async fn tell(&self, node: &str, report: &NodeReport, adaptations: &Adaptations) -> Calibrated {
        self.store.calibrate(node, report, adaptations).await.expect("a report that is taken in")
    }

    /// Tells the same pressure for so many seconds, ten times in each, by turns to both servers. Returns how often limits
    /// were calibrated, and what they are.
    async fn hold(&self, node: &str, seconds: u32, pressure: f64, adaptations: &Adaptations) -> (usize, u64) {
        self.hold_at(10, node, seconds, pressure, adaptations).await
    }

    async fn hold_at(
        &self,
        per_second: u32,
        node: &str,
        seconds: u32,
        pressure: f64,
        adaptations: &Adaptations,
    ) -> (usize, u64) {
        let (mut calibrated, mut limit) = (0, 0);
        for number in 0..seconds * per_second {
            let store = if number % 2 == 0 { &self.store } else { &self.other };
            self.clock.advance(SECOND / per_second).await;
            let told = store.calibrate(node, &under(pressure), adaptations).await.expect("a report taken in");
            calibrated += usize::from(told.calibrated[Resource::Cpu]);
            limit = limit_of(&told);
        }
        (calibrated, limit)
    }

    /// Which both servers know alike, but for who made the last steps.
    async fn nodes(&self) -> Nodes {
        let known = async |store: &dyn Store| {
            let mut nodes = store.nodes().await.expect("the nodes");
            nodes.nodes.iter_mut().for_each(|node| node.ours = PerResource::default());
            nodes
        };
        let nodes = known(&*self.store).await;
        assert_eq!(known(&*self.other).await, nodes);
        assert_eq!((nodes.now, nodes.unreadable), (self.clock.now(), 0));
        nodes
    }
}

fn limit_of(told: &Calibrated) -> u64 {
    told.state.controllers[Resource::Cpu].as_ref().expect("a limit of the node").limits[Kind::User]
}

async fn a_hundred_reports_a_second_to_two_servers_cut_once_an_interval(fixture: &Fixture) {
    let aimd = aimd();
    fixture.tell("aimd", &under(0.95), &aimd).await;
    assert_eq!(fixture.hold_at(100, "aimd", 10, 0.95, &aimd).await, (1, 50));
    assert_eq!(fixture.hold("aimd", 20, 0.95, &aimd).await, (2, 20), "to the least and not below");
    assert_eq!(fixture.hold("aimd", 10, 0.95, &aimd).await, (1, 20));
    assert_eq!(fixture.hold("aimd", 30, 0.5, &aimd).await, (3, 80));
    assert_eq!(fixture.hold("aimd", 70, 0.5, &aimd).await, (7, 200), "to the most and not above");
}

async fn double_halve_moves_each_second(fixture: &Fixture) {
    let rule = double_halve();
    fixture.tell("dh", &under(0.81), &rule).await;
    assert_eq!(fixture.hold("dh", 2, 0.81, &rule).await, (2, 25));
    assert_eq!(fixture.hold("dh", 2, 0.81, &rule).await, (2, 20));
    assert_eq!(fixture.hold("dh", 2, 0.65, &rule).await, (2, 20));
    assert_eq!(fixture.hold("dh", 2, 0.49, &rule).await, (2, 80));
    assert_eq!(fixture.hold("dh", 2, 0.49, &rule).await, (2, 200));
}

async fn what_is_known_of_a_node_is_the_same_for_every_server(fixture: &Fixture) {
    // Names need not be fit for a key.
    for name in ["}{", "a node whose name is held as a digest in its key", "ü"] {
        let report = NodeReport {
            pressure: PerResource::new(Some(ratio(0.3)), Some(Ratio::ONE), None),
            oom_kill: true,
            capacity: PerResource::new(Some(16_000), None, Some(1 << 30)),
            active: PerKind::new(Some(3), None, Some(0)),
            heaviest: [
                (user("alice"), PerResource::new(Some(310_200_000), None, Some(0))),
                (user("bob"), PerResource::default()),
            ]
            .into(),
            recent: [(user("alice"), PerResource::new(Some(51_700_000), None, None))].into(),
        };
        fixture.tell(name, &under(0.1), &aimd()).await;
        let told = fixture.tell(name, &report, &aimd()).await;
        assert_eq!(told.now, fixture.clock.now());
        let nodes = fixture.nodes().await.nodes;
        assert!(nodes.is_sorted_by(|a, b| a.name < b.name));
        let node = nodes.into_iter().find(|node| *node.name == *name).expect("the node");
        assert_eq!(node.state, told.state);
        assert_eq!((&node.state.report, node.state.seen), (&report, fixture.clock.now()));
    }
}

async fn a_silent_node_returns_to_its_initial_limits(fixture: &Fixture) {
    let aimd = aimd();
    fixture.tell("silent", &under(1.0), &aimd).await;
    assert_eq!(fixture.hold("silent", 30, 1.0, &aimd).await, (3, 20));
    fixture.clock.advance(55 * SECOND).await;
    let nodes = fixture.nodes().await;
    let node = nodes.nodes.iter().find(|node| &*node.name == "silent").expect("a node that is remembered");
    let controller = node.state.controllers[Resource::Cpu].as_ref().expect("its limits");
    let adaptation = aimd[Resource::Cpu].as_ref().expect("a rule");
    assert_eq!(controller.limits_at(nodes.now, adaptation)[Kind::User], 60);
    let told = fixture.tell("silent", &under(1.0), &aimd).await;
    assert_eq!(limit_of(&told), 60);
    let last = told.state.controllers[Resource::Cpu].as_ref().and_then(|controller| controller.last);
    assert_eq!(last.map(|last| (last.reason, last.old[Kind::User])), Some((Reason::Silent, 20)));
}

async fn a_clock_that_steps_back_is_counted_and_cuts_no_more_often(fixture: &Fixture) {
    let aimd = aimd();
    fixture.tell("clock", &under(1.0), &aimd).await;
    assert_eq!(fixture.hold("clock", 9, 1.0, &aimd).await, (0, 100));
    fixture.clock.step_back(6 * SECOND).await;
    assert_eq!(fixture.tell("clock", &under(1.0), &aimd).await.rebased, 1);
    assert_eq!(fixture.hold("clock", 9, 1.0, &aimd).await, (0, 100));
    fixture.clock.step_back(3 * SECOND).await;
    assert_eq!(fixture.tell("clock", &under(1.0), &aimd).await.rebased, 0, "a little is now");
    assert_eq!(fixture.hold("clock", 4, 1.0, &aimd).await, (1, 50));
    fixture.clock.advance(10 * SECOND).await;
}

async fn a_resource_that_is_fixed_has_no_limit_of_the_node(fixture: &Fixture) {
    let fixed = Adaptations::default();
    let told = fixture.tell("fixed", &under(1.0), &fixed).await;
    assert_eq!((told.state.controllers, told.calibrated), (PerResource::default(), PerResource::default()));
    assert_eq!(fixture.hold("fixed", 10, 1.0, &aimd()).await, (0, 100));
    // A server with other settings leaves alone what it does not adapt.
    let told = fixture.tell("fixed", &under(1.0), &fixed).await;
    assert_eq!((limit_of(&told), told.calibrated), (100, PerResource::default()));
    assert_eq!(fixture.hold("fixed", 1, 1.0, &aimd()).await, (1, 50));
}

async fn a_rule_that_is_changed_begins_from_the_limits_that_are(fixture: &Fixture) {
    fixture.tell("changed", &under(1.0), &aimd()).await;
    assert_eq!(fixture.hold("changed", 10, 1.0, &aimd()).await, (1, 50));
    let told = fixture.hold("changed", 2, 0.1, &double_halve()).await;
    assert_eq!(told, (2, 200));
}

async fn nodes_are_bounded_and_those_that_are_known_go_on(fixture: &Fixture) {
    let known = fixture.nodes().await.nodes.len();
    for number in known..MAX_NODES {
        fixture.tell(&format!("node-{number}"), &under(0.1), &aimd()).await;
    }
    let one_more = fixture.store.calibrate("one more", &under(0.1), &aimd()).await;
    assert!(matches!(one_more, Err(StoreError::TooManyNodes)), "{one_more:?}");
    fixture.tell(&format!("node-{known}"), &under(0.2), &aimd()).await;
    assert_eq!(fixture.nodes().await.nodes.len(), MAX_NODES);
}
