use super::Controller;
use crate::Timestamp;
use crate::adapt::{Adaptation, Load, Rule};

impl Controller {
    /// Whether the last interval called for lower limits, and the node is not silent since.
    pub(crate) fn is_pressed(&self, now: Timestamp, adaptation: &Adaptation) -> bool {
        self.last.is_some_and(|last| last.reason.is_cut()) && self.silent_steps(now, adaptation) == 0
    }

    /// Whether no limit can fall further: those of single accounts under the rule `blame`, where the node tells who uses
    /// what, else those of all kinds.
    pub(crate) fn is_at_min(&self, load: Option<&Load>, adaptation: &Adaptation) -> bool {
        match (&adaptation.rule, load) {
            (Rule::Blame(blame), Some(load)) => self.cuts.are_at_least(load, blame, &adaptation.ranges),
            _ => self.limits.iter().all(|(kind, limit)| *limit <= adaptation.ranges[kind].min),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{
        Account, Adaptation, Adaptations, Blame, Ipv6Prefix, Kind, NodeReport, NodeState, PerKind,
        PerResource, Range, Ratio, Resource, Rule, Timestamp, WindowLength,
    };

    const SECOND: u64 = 1_000_000;
    const SOFT_LIMIT: Ratio = Ratio::from_millionths(900_000);
    const HALF: Ratio = Ratio::from_millionths(500_000);
    const HOT: Ratio = Ratio::ONE;

    /// Two cores, with ten active users.
    struct Node {
        adaptations: Adaptations,
        state: Option<NodeState>,
        second: u64,
    }

    impl Node {
        fn new(rule: Rule) -> Self {
            let range = Range { min: SECOND, initial: 100 * SECOND, max: 100 * SECOND };
            let adaptation = Adaptation {
                rule,
                interval: Duration::from_secs(5),
                step: Ratio::from_millionths(50_000),
                ranges: PerKind::from_fn(|_| range),
            };
            Self { adaptations: PerResource::new(Some(adaptation), None, None), state: None, second: 0 }
        }

        fn blame() -> Self {
            let window = WindowLength::default();
            Self::new(Rule::Blame(Blame { soft_limit: SOFT_LIMIT, backoff_factor: HALF, window }))
        }

        /// Tells the same for so many seconds; `alice` is what the heaviest user used within the window, in seconds.
        fn hold(&mut self, seconds: u64, pressure: Ratio, alice: u64) {
            let alice = (
                Account::new(Kind::User, "alice", Ipv6Prefix::default()).unwrap(),
                PerResource::new(Some(alice * SECOND), None, None),
            );
            let report = NodeReport {
                pressure: PerResource::new(Some(pressure), None, None),
                capacity: PerResource::new(Some(2000), None, None),
                active: PerKind::new(None, Some(10), None),
                heaviest: [alice].into(),
                ..NodeReport::default()
            };
            for _ in 0..seconds {
                self.second += 1;
                let state =
                    NodeState::observe(self.state.take(), self.now(), report.clone(), &self.adaptations);
                self.state = Some(state.0);
            }
        }

        fn now(&self) -> Timestamp {
            Timestamp::from_micros((1_000_000 + self.second) * SECOND)
        }

        fn is_at_min(&self) -> bool {
            self.state.as_ref().unwrap().is_at_min(Resource::Cpu, self.now(), &self.adaptations)
        }
    }

    #[test]
    fn limits_of_kinds_are_at_their_least_while_pressure_calls_for_less() {
        let mut node = Node::new(Rule::Aimd { soft_limit: SOFT_LIMIT, backoff_factor: HALF });
        node.hold(30, HOT, 90);
        assert!(!node.is_at_min(), "100 s are halved six times at the most");
        node.hold(10, HOT, 90);
        assert!(node.is_at_min());
        node.second += 19;
        assert!(node.is_at_min(), "not silent yet");
        node.second += 1;
        assert!(!node.is_at_min(), "silent: its limits return");
        node.hold(40, HOT, 90);
        assert!(node.is_at_min());
        node.hold(6, HALF, 0);
        assert!(!node.is_at_min(), "calm");
    }

    #[test]
    fn who_is_cut_has_come_to_the_fair_share() {
        let mut node = Node::blame();
        node.hold(60, HOT, 100);
        assert!(!node.is_at_min(), "she can give more");
        node.hold(240, HOT, 100);
        assert!(node.is_at_min());
        node.hold(6, HALF, 100);
        assert!(!node.is_at_min(), "calm");
    }

    #[test]
    fn nobody_stands_out_who_could_be_cut() {
        let mut node = Node::blame();
        node.hold(4, HOT, 10);
        assert!(!node.is_at_min(), "no interval is over");
        node.hold(4, HOT, 10);
        assert!(node.is_at_min());
    }
}
