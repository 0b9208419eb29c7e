//! F13: one account on a node of 100 CPU-seconds a minute, second by second, under the default settings.

use std::time::Duration;

use super::*;
use crate::{
    Account, Cost, Ipv6Prefix, Limit, NodeReport, NodeState, Resource, Timestamp, Window, WindowLength,
};

const SECOND: u64 = 1_000_000;
const START: u64 = 1_000_000 * SECOND;
const CAPACITY: u64 = 100 * SECOND / 60;

/// Limits from 1 s to 200 s, the default rule in all else.
fn adaptations(initial: u64) -> Adaptations {
    let ratio = Ratio::from_millionths;
    let range = Range { min: SECOND, initial: initial * SECOND, max: 200 * SECOND };
    let adaptation = Adaptation {
        rule: Rule::Aimd { soft_limit: ratio(900_000), backoff_factor: ratio(900_000) },
        interval: Duration::from_secs(60),
        step: ratio(50_000),
        ranges: PerKind::from_fn(|_| range),
    };
    PerResource::new(Some(adaptation), None, None)
}

struct Node {
    adaptations: Adaptations,
    state: Option<NodeState>,
    window: Window,
    second: u64,
}

impl Node {
    fn new(initial: u64) -> Self {
        Self { adaptations: adaptations(initial), state: None, window: Window::default(), second: 0 }
    }

    /// Lets an account ask for so many CPU-seconds a minute, for so many seconds. Returns the limit after each, in seconds.
    fn run(&mut self, seconds: u64, demand: u64) -> Vec<u64> {
        let user = Account::new(Kind::User, "u", Ipv6Prefix::default()).unwrap();
        let after = (0..seconds).map(|_| {
            self.second += 1;
            let now = Timestamp::from_micros(START + self.second * SECOND);
            let tick = WindowLength::default().tick(now);
            self.window.advance(tick);
            let below = !Limit::At(self.limit()).reached_by(self.window.usage()[Resource::Cpu]);
            let spent = if below { (demand * SECOND / 60).min(CAPACITY) } else { 0 };
            self.window.add(tick, Cost::ZERO.with_cpu_micros(spent).unwrap());
            let report = NodeReport {
                pressure: PerResource::new(
                    Some(Ratio::from_millionths(spent * 1_000_000 / CAPACITY)),
                    None,
                    None,
                ),
                heaviest: [(user.clone(), self.window.usage().map(Some))].into(),
                ..NodeReport::default()
            };
            self.state = Some(NodeState::observe(self.state.take(), now, report, &self.adaptations).0);
            self.limit() / SECOND
        });
        after.collect()
    }

    fn limit(&self) -> u64 {
        let controller = self.state.as_ref().and_then(|state| state.controllers[Resource::Cpu].as_ref());
        controller.map_or(self.adaptations[Resource::Cpu].unwrap().ranges[Kind::User].initial, |controller| {
            controller.limits[Kind::User]
        })
    }
}

#[test]
fn f13_under_steady_overload_the_limit_settles_near_the_capacity() {
    let mut node = Node::new(200);
    node.run(300, 150);
    let limits = node.run(3600, 150);
    let (least, most) = (limits.iter().min(), limits.iter().max());
    assert!(least >= Some(&70) && most <= Some(&130), "{least:?} to {most:?}");
}

#[test]
fn f13_a_limit_does_not_grow_while_nobody_comes_near_it() {
    let mut node = Node::new(100);
    assert!(node.run(3600, 5).iter().all(|limit| *limit == 100));
    assert!(node.run(3600, 150).iter().all(|limit| *limit <= 200));
}

#[test]
fn f13_from_the_least_it_grows_to_what_is_needed_within_six_minutes() {
    let mut node = Node::new(100);
    node.run(1, 150);
    node.state.as_mut().unwrap().controllers[Resource::Cpu].as_mut().unwrap().limits =
        PerKind::from_fn(|_| SECOND);
    let limits = node.run(600, 60);
    let reached = limits.iter().position(|limit| *limit >= 54).unwrap();
    assert!(reached <= 360, "after {reached} s: {limits:?}");
    assert!(limits[reached..].iter().all(|limit| *limit >= 54));
}

/// As where eight fileservers have one name, or one tells eight servers.
#[test]
fn f13_however_many_tell_of_one_overload_limits_fall_once_an_interval() {
    let mut node = Node::new(200);
    let mut limits = vec![node.limit() / SECOND];
    for second in 0..=120 {
        for _ in 0..8 {
            let now = Timestamp::from_micros(START + second * SECOND);
            let pressure = PerResource::new(Some(Ratio::ONE), None, None);
            let report = NodeReport { pressure, ..NodeReport::default() };
            node.state = Some(NodeState::observe(node.state.take(), now, report, &node.adaptations).0);
            limits.push(node.limit() / SECOND);
        }
    }
    limits.dedup();
    assert_eq!(limits, [200, 180, 162], "by a tenth each");
}
