use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::Kind;

const SECOND: u64 = 1_000_000;
const START: u64 = 1_000_000 * SECOND;

fn ratio(value: f64) -> Ratio {
    Ratio::try_from(value).unwrap()
}

fn aimd() -> Adaptation {
    let range = Range { min: 20, initial: 100, max: 200 };
    Adaptation {
        rule: Rule::Aimd { soft_limit: ratio(0.9), backoff_factor: ratio(0.5) },
        interval: Duration::from_secs(10),
        step: ratio(0.1),
        ranges: PerKind::from_fn(|_| range),
    }
}

fn double_halve() -> Adaptation {
    Adaptation { rule: Rule::DoubleHalve, interval: Duration::from_secs(1), ..aimd() }
}

/// A node and the seconds after it was first heard of.
struct Node {
    controller: Controller,
    adaptation: Adaptation,
}

impl Node {
    fn new(adaptation: Adaptation) -> Self {
        let mut node =
            Self { controller: Controller::new(Timestamp::from_micros(START), &adaptation), adaptation };
        assert!(!node.tell(0.0, 0.5), "the first report begins an interval");
        node
    }

    fn observe(&mut self, seconds: f64, observation: Observation) -> Observed {
        let now = Timestamp::from_micros(START + (seconds * 1e6) as u64);
        self.controller.observe(now, &observation, &self.adaptation)
    }

    fn tell(&mut self, seconds: f64, pressure: f64) -> bool {
        let pressure = Some(ratio(pressure));
        self.observe(seconds, Observation { pressure, ..Observation::default() }).calibrated
    }

    /// Tells the same pressure each tenth of a second; returns how often the limits were calibrated.
    fn hold(&mut self, seconds: std::ops::Range<u32>, pressure: f64) -> usize {
        (seconds.start * 10..seconds.end * 10)
            .filter(|&tenth| self.tell(f64::from(tenth) / 10.0, pressure))
            .count()
    }

    fn kill(&mut self, seconds: f64) -> bool {
        let observation =
            Observation { pressure: Some(ratio(0.1)), oom_kill: true, ..Observation::default() };
        self.observe(seconds, observation).calibrated
    }

    fn limit(&self) -> u64 {
        self.controller.limits[Kind::User]
    }

    fn reason(&self) -> Option<Reason> {
        self.controller.last.map(|last| last.reason)
    }
}

#[test]
fn aimd_halves_once_an_interval_to_the_least_and_steps_up_to_the_most() {
    let mut node = Node::new(aimd());
    assert_eq!(node.hold(0..10, 0.95), 0);
    assert_eq!((node.hold(10..20, 0.95), node.limit(), node.reason()), (1, 50, Some(Reason::Hot)));
    assert_eq!((node.hold(20..30, 0.95), node.limit()), (1, 25));
    assert_eq!((node.hold(30..60, 0.95), node.limit()), (3, 20));
    // What ended at 60 s was hot.
    assert_eq!((node.hold(60..70, 0.1), node.limit()), (1, 20));
    assert_eq!((node.hold(70..80, 0.1), node.limit(), node.reason()), (1, 40, Some(Reason::Calm)));
    assert_eq!((node.hold(80..200, 0.1), node.limit()), (12, 200));
}

#[test]
fn the_soft_limit_itself_is_hot_and_just_below_is_calm() {
    for (pressure, limit) in [(0.9, 50), (0.899_999, 120)] {
        let mut node = Node::new(aimd());
        node.hold(0..11, pressure);
        assert_eq!(node.limit(), limit, "{pressure}");
    }
}

#[test]
fn the_mean_counts_by_time_however_often_it_is_told() {
    let mut node = Node::new(aimd());
    node.hold(0..9, 0.2);
    // A thousand reports of one hot second.
    for milli in 0..1000 {
        node.tell(9.0 + f64::from(milli) / 1000.0, 1.0);
    }
    assert!(node.tell(10.0, 1.0));
    assert_eq!(node.reason(), Some(Reason::Calm));
    let mean = node.controller.last.unwrap().pressure;
    assert!((ratio(0.28)..ratio(0.3)).contains(&mean), "{mean:?}");
}

#[test]
fn double_halve_moves_each_second_and_rests_between() {
    let mut node = Node::new(double_halve());
    assert_eq!((node.hold(1..5, 0.81), node.limit()), (4, 20));
    // The second that ends at 5 s is told of at 5 s.
    assert_eq!((node.hold(5..7, 0.8), node.limit(), node.reason()), (2, 20, Some(Reason::Steady)));
    assert_eq!((node.hold(7..9, 0.5), node.limit(), node.reason()), (2, 20, Some(Reason::Steady)));
    assert_eq!((node.hold(9..15, 0.49), node.limit(), node.reason()), (6, 200, Some(Reason::Calm)));
}

#[test]
fn reports_that_come_a_little_late_or_early_do_not_lengthen_the_interval() {
    let mut node = Node::new(double_halve());
    let jittered = (1..=100).map(|second| f64::from(second) + if second % 2 == 0 { 0.03 } else { -0.03 });
    let calibrated = jittered.filter(|&seconds| node.tell(seconds, 0.6)).count();
    assert!((97..=100).contains(&calibrated), "{calibrated} of 100");
}

#[test]
fn an_interval_that_ended_late_is_not_followed_by_another_at_once() {
    let mut node = Node::new(aimd());
    node.hold(0..9, 0.95);
    assert!(node.tell(19.0, 0.95));
    assert_eq!(node.hold(20..27, 0.95), 0, "due since 20 s, and 8.75 s after the last");
    assert_eq!((node.hold(27..29, 0.95), node.limit()), (1, 25));
}

#[test]
fn an_oom_kill_cuts_at_once_and_once_an_interval() {
    let mut node = Node::new(aimd());
    assert!(node.kill(2.0));
    assert_eq!((node.limit(), node.reason()), (50, Some(Reason::OomKill)));
    let again = (0..99).filter(|tenth| node.kill(2.1 + f64::from(*tenth) / 10.0)).count();
    assert_eq!((again, node.limit()), (0, 50));
    // The kills since then are not forgotten.
    assert!(node.tell(12.0, 0.1));
    assert_eq!((node.limit(), node.reason()), (25, Some(Reason::OomKill)));
    // After a calm interval it does not wait for the end of the next.
    assert_eq!((node.hold(13..23, 0.1), node.limit()), (1, 45));
    assert!(node.kill(23.0));
    assert_eq!(node.limit(), 22);
}

#[test]
fn a_limit_that_nobody_comes_near_is_not_raised() {
    let mut node = Node::new(aimd());
    let heaviest = PerKind::new(Some(49), Some(50), None);
    for second in 1..=10 {
        let observation = Observation { pressure: Some(ratio(0.1)), heaviest, ..Observation::default() };
        node.observe(f64::from(second), observation);
    }
    let limits = node.controller.limits;
    assert_eq!((limits[Kind::Repo], limits[Kind::User], limits[Kind::Ip]), (100, 120, 120));
}

#[test]
fn what_is_not_told_is_neither_healthy_nor_a_sign_of_life() {
    let mut node = Node::new(aimd());
    let before = node.controller.clone();
    let nothing = Observation { heaviest: PerKind::new(Some(1), Some(1), Some(1)), ..Observation::default() };
    assert_eq!(node.observe(100.0, nothing), Observed::default());
    assert_eq!(node.controller, before);
}

#[test]
fn a_silent_node_keeps_its_limits_for_three_intervals_and_returns_by_steps() {
    let mut node = Node::new(aimd());
    node.hold(0..41, 1.0);
    assert_eq!(node.limit(), 20);
    let at = |seconds: u64| {
        let now = Timestamp::from_micros(START + 40_900_000 + seconds * SECOND);
        node.controller.limits_at(now, &node.adaptation)[Kind::User]
    };
    assert_eq!(
        [at(0), at(39), at(40), at(49), at(50), at(70), at(80), at(9999)],
        [20, 20, 40, 40, 60, 100, 100, 100]
    );
    // Its next report begins with what the silence has led to.
    assert!(node.tell(40.9 + 55.0, 1.0));
    assert_eq!((node.limit(), node.reason()), (60, Some(Reason::Silent)));
    assert_eq!(node.controller.last.unwrap().old[Kind::User], 20);
    assert_eq!((node.hold(96..105, 1.0), node.limit()), (0, 60));
    assert_eq!((node.hold(105..107, 1.0), node.limit()), (1, 30));
}

#[test]
fn a_silence_of_three_intervals_begins_an_interval_anew() {
    let mut node = Node::new(aimd());
    node.hold(0..9, 1.0);
    assert!(!node.tell(8.9 + 35.0, 1.0), "what was seen before is too old to cut for");
    assert_eq!((node.hold(44..53, 1.0), node.limit()), (0, 100));
    assert_eq!((node.hold(53..55, 1.0), node.limit()), (1, 50));
}

#[test]
fn a_limit_above_initial_comes_down_to_it() {
    let mut node = Node::new(aimd());
    node.hold(0..100, 0.0);
    assert_eq!(node.limit(), 200);
    let later = Timestamp::from_micros(START + 100 * SECOND + 45 * SECOND);
    assert_eq!(node.controller.limits_at(later, &node.adaptation)[Kind::User], 180);
}

#[test]
fn a_clock_that_stepped_back_begins_an_interval_anew_and_a_little_is_now() {
    let mut node = Node::new(aimd());
    node.hold(0..9, 1.0);
    let back = Timestamp::from_micros(START - 3600 * SECOND);
    let hot = Observation { pressure: Some(Ratio::ONE), ..Observation::default() };
    assert_eq!(
        node.controller.observe(back, &hot, &node.adaptation),
        Observed { calibrated: false, rebased: true }
    );
    let calibrated = |node: &mut Node, after: u64| {
        let now = Timestamp::from_micros(START - 3600 * SECOND + after * SECOND);
        let observed = node.controller.observe(now, &hot, &node.adaptation);
        assert!(!observed.rebased);
        observed.calibrated
    };
    assert!(!calibrated(&mut node, 9));
    assert!(!calibrated(&mut node, 5), "4 s back");
    assert!(calibrated(&mut node, 10));
}

#[test]
fn limits_outside_of_a_range_that_was_narrowed_come_into_it() {
    let mut node = Node::new(aimd());
    node.adaptation.ranges = PerKind::from_fn(|_| Range { min: 1, initial: 5, max: 10 });
    let now = node.controller.seen;
    assert_eq!(node.controller.limits_at(now, &node.adaptation)[Kind::User], 10);
    node.hold(0..11, 1.0);
    assert_eq!(node.limit(), 10, "half of 100, held down to 10");
}

fn blame() -> Adaptation {
    let rule =
        Blame { soft_limit: ratio(0.9), backoff_factor: ratio(0.5), window: crate::WindowLength::default() };
    let range = Range { min: 20, initial: 200, max: 200 };
    Adaptation { rule: Rule::Blame(rule), ranges: PerKind::from_fn(|_| range), ..aimd() }
}

#[test]
fn who_does_not_tell_who_uses_what_has_limits_of_kinds_cut_from_what_binds() {
    let mut node = Node::new(blame());
    let tell = |node: &mut Node, seconds: f64, pressure, user| {
        let heaviest = PerKind::new(None, user, Some(500));
        let pressure = Some(ratio(pressure));
        let told = Observation { pressure, heaviest, ..Observation::default() };
        assert!(node.observe(seconds, told).calibrated);
        let limits = &node.controller.limits;
        [limits[Kind::Repo], limits[Kind::User], limits[Kind::Ip]]
    };
    assert_eq!(
        tell(&mut node, 10.0, 0.95, Some(120)),
        [100, 60, 100],
        "half of the lower of limit and heaviest"
    );
    assert_eq!(tell(&mut node, 20.0, 0.95, Some(10)), [50, 20, 50], "not below the least");
    assert_eq!(tell(&mut node, 30.0, 0.5, None), [70, 40, 70]);
    assert!(node.controller.cuts.accounts.is_empty());
}

#[test]
fn limits_of_kinds_return_to_the_most_where_single_accounts_are_cut() {
    let mut node = Node::new(blame());
    node.hold(0..10, 0.95);
    assert!(node.tell(10.0, 0.95));
    assert_eq!(node.limit(), 100);
    let load = Some(Load { capacity: 1000, active: PerKind::new(None, Some(1), None), ..Load::default() });
    let hot = Observation { pressure: Some(Ratio::ONE), load, ..Observation::default() };
    for (seconds, limit) in [(20.0, 120), (30.0, 140), (40.0, 160), (50.0, 180), (60.0, 200), (70.0, 200)] {
        assert!(node.observe(seconds, hot.clone()).calibrated);
        assert_eq!(node.limit(), limit);
    }
}

/// A node of 1000 a window on which alice alone uses 600.
fn alice_cut() -> (Node, Account) {
    let alice = Account::new(Kind::User, "alice", crate::Ipv6Prefix::default()).unwrap();
    let mut node = Node::new(blame());
    let load = Load {
        capacity: 1000,
        active: PerKind::new(None, Some(10), None),
        accounts: BTreeMap::from([(alice.clone(), crate::Spending { used: 150, rate: 600 })]),
    };
    let hot = Observation { pressure: Some(Ratio::ONE), load: Some(load), ..Observation::default() };
    assert!(node.observe(10.0, hot).calibrated);
    assert_eq!(node.controller.cuts.accounts[&alice].limit, 150);
    (node, alice)
}

#[test]
fn the_limits_of_accounts_on_a_silent_node_rise_by_steps_and_are_forgotten() {
    let (mut node, alice) = alice_cut();
    let limit_at = |node: &Node, seconds: u64| {
        let cuts =
            node.controller.cuts_at(Timestamp::from_micros(START + seconds * SECOND), &node.adaptation);
        cuts.get(&alice).map(|cut| cut.limit)
    };
    assert_eq!([10, 49, 50, 60, 69].map(|at| limit_at(&node, at)), [150, 150, 170, 190, 190].map(Some));
    assert_eq!(limit_at(&node, 70), None);
    assert!(node.tell(65.0, 0.5), "the step after a silence");
    assert_eq!(limit_at(&node, 65), Some(190));
    assert!(node.tell(165.0, 0.5));
    assert_eq!(node.controller.cuts.accounts.len(), 0);
    assert_eq!(node.controller.cuts.levels, PerKind::default());
}

#[test]
fn a_cut_is_not_dated_after_a_clock_that_stepped_back() {
    let (mut node, alice) = alice_cut();
    let clock = Timestamp::from_micros(START - 100 * SECOND);
    let told = Observation { pressure: Some(ratio(0.5)), ..Observation::default() };
    assert!(node.controller.observe(clock, &told, &node.adaptation).rebased);
    assert_eq!(node.controller.cuts.accounts[&alice].since, clock);
}

proptest! {
    /// In whatever order things happen, limits stay in their range, and cuts are an interval apart, or nearly.
    #[test]
    fn f13_limits_stay_in_range_and_cuts_an_interval_apart(
        reports in prop::collection::vec((0u64..20 * SECOND, 0.0..1.2f64, prop::bool::weighted(0.1)), 1..200),
        halve in any::<bool>(),
    ) {
        let adaptation = if halve { double_halve() } else { aimd() };
        let mut now = START;
        let mut controller = Controller::new(Timestamp::from_micros(now), &adaptation);
        let mut cut: Option<u64> = None;
        for (passed, pressure, oom_kill) in reports {
            now += passed / if halve { 10 } else { 1 };
            let observation = Observation { pressure: Some(ratio(pressure)), oom_kill, ..Observation::default() };
            let before = controller.limits;
            let observed = controller.observe(Timestamp::from_micros(now), &observation, &adaptation);
            prop_assert!(!observed.rebased);
            prop_assert!(observed.calibrated || controller.limits == before);
            for (_, &limit) in controller.limits.iter() {
                prop_assert!((20..=200).contains(&limit));
            }
            if observed.calibrated && controller.last.is_some_and(|last| last.reason.is_cut()) {
                prop_assert!(cut.is_none_or(|cut| now - cut >= adaptation.interval_micros() / 8 * 7));
                cut = Some(now);
            }
        }
    }
}
