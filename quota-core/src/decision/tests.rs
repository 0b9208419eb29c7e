use super::*;
use crate::{BUCKETS, Cost, Ipv6Prefix, Kind};

const LENGTH: Duration = Duration::from_secs(60);
/// Half a second into bucket 1,000,000.
const NOW: Timestamp = Timestamp::from_micros(1_000_000_500_000);

/// A user who spent `cpu` microseconds `age` buckets ago, under a limit on CPU alone.
fn user(name: &str, age: Tick, cpu: u64, limit: Limit, mode: Mode) -> Subject {
    let mut window = Window::default();
    window.advance(1_000_000);
    window.add(1_000_000 - age, Cost::ZERO.with_cpu_micros(cpu).unwrap());
    let only = |limit, mode| Comparison { ceiling: Bound { limit, mode }, here: None };
    let off = only(Limit::Unlimited, Mode::Off);
    Subject {
        account: Account::new(Kind::User, name, Ipv6Prefix::default()).unwrap(),
        comparisons: PerResource::new(only(limit, mode), off, off),
        until: None,
        snapshot: Snapshot::Full(window),
    }
}

fn verdict(subjects: &[Subject]) -> Verdict {
    decide(subjects, NOW, WindowLength::new(LENGTH).unwrap())
}

#[test]
fn below_every_limit_is_no_breach() {
    let below = user("a", 0, 9, Limit::At(10), Mode::Enforce);
    assert_eq!(verdict(&[below]), Verdict::default());
}

#[test]
fn the_limit_reached_for_longest_decides() {
    let subjects = [
        user("soon", 50, 10, Limit::At(10), Mode::Enforce),
        user("late", 10, 10, Limit::At(10), Mode::Enforce),
        user("sooner", 59, 10, Limit::At(10), Mode::Enforce),
    ];
    let breach = verdict(&subjects).denied_by.unwrap();
    assert_eq!((breach.account.id(), breach.used, breach.limit), ("late", 10, Limit::At(10)));
    assert_eq!(breach.retry_after, Duration::from_millis((BUCKETS - 10) * 1000 - 500));
    assert!(!breach.permanent);
}

#[test]
fn a_limit_of_zero_is_permanent_and_stands_before_all() {
    let subjects = [
        user("late", 0, 10, Limit::At(10), Mode::Enforce),
        user("never", 0, 0, Limit::At(0), Mode::Enforce),
        user("late too", 0, 10, Limit::At(10), Mode::Enforce),
    ];
    let breach = verdict(&subjects).denied_by.unwrap();
    assert_eq!((breach.account.id(), breach.permanent, breach.retry_after), ("never", true, LENGTH));
}

#[test]
fn what_an_operator_s_word_makes_permanent_ends_with_it() {
    let until = |seconds: u64| {
        let blocked = user("blocked", 0, 0, Limit::At(0), Mode::Enforce);
        Subject { until: Some(NOW.after_micros(seconds * 1_000_000)), ..blocked }
    };
    for seconds in [0, 5, 7200] {
        let breach = verdict(&[until(seconds)]).denied_by.unwrap();
        assert_eq!((breach.permanent, breach.retry_after), (true, Duration::from_secs(seconds)));
    }
    let breach = verdict(&[until(90), until(7200), until(3600)]).denied_by.unwrap();
    assert_eq!(breach.retry_after, Duration::from_secs(7200), "the one that ends last");
    let raised = user("raised", 10, 10, Limit::At(10), Mode::Enforce);
    let breach = verdict(&[Subject { until: Some(NOW), ..raised }]).denied_by.unwrap();
    assert_eq!(breach.retry_after, Duration::from_millis(49_500), "when usage is below the limit");
}

#[test]
fn shadow_is_told_and_refuses_nothing_and_off_is_not_compared() {
    let subjects =
        [user("off", 0, 10, Limit::At(10), Mode::Off), user("shadow", 0, 10, Limit::At(10), Mode::Shadow)];
    let verdict = verdict(&subjects);
    assert_eq!(verdict.denied_by, None);
    assert_eq!(verdict.shadowed.unwrap().account.id(), "shadow");
}

/// The user with a limit of 50 on the node.
fn on_a_node(everywhere: u64, ceiling: Limit, used: HereUsed) -> Subject {
    let mut subject = user("u", 10, everywhere, ceiling, Mode::Enforce);
    subject.comparisons[Resource::Cpu].here = Some(Here { limit: Limit::At(50), used });
    subject
}

fn refused(subject: &Subject) -> Option<(Scope, u64, Limit)> {
    let breach = verdict(std::slice::from_ref(subject)).denied_by;
    // A store that compares usage everywhere with the one bound comes to the same.
    let bound = subject.comparisons[Resource::Cpu].bound();
    assert_eq!(bound.refuses(subject.snapshot.usage()[Resource::Cpu]), breach.is_some());
    breach.map(|breach| (breach.scope, breach.used, breach.limit))
}

#[test]
fn a_node_s_limit_is_for_what_was_used_there_and_the_ceiling_for_all() {
    use HereUsed::{Reported, Told, Unknown};
    let node = |used| Some((Scope::Node, used, Limit::At(50)));
    for known in [Told, Reported] {
        assert_eq!(refused(&on_a_node(210, Limit::Unlimited, known(10))), None, "heavy elsewhere");
        assert_eq!(refused(&on_a_node(210, Limit::Unlimited, known(50))), node(50));
        let everywhere = Some((Scope::Cluster, 210, Limit::At(200)));
        assert_eq!(refused(&on_a_node(210, Limit::At(200), known(10))), everywhere);
    }
    assert_eq!(refused(&on_a_node(210, Limit::Unlimited, Unknown)), node(210), "nobody knows where");
    assert_eq!(refused(&on_a_node(49, Limit::Unlimited, Unknown)), None);
    assert_eq!(refused(&on_a_node(40, Limit::Unlimited, Told(60))), node(60), "not reported yet");
    assert_eq!(refused(&on_a_node(40, Limit::Unlimited, Reported(60))), None, "it has left since");
    assert_eq!(refused(&on_a_node(55, Limit::Unlimited, Reported(60))), node(55));
}

#[test]
fn the_wait_for_a_node_s_limit_is_when_usage_there_must_be_below_it() {
    // 60 microseconds 30 buckets ago and 60 before, of which 70 on the node: at most 0 are left when all have gone.
    let mut subject = user("u", 30, 60, Limit::Unlimited, Mode::Enforce);
    let Snapshot::Full(window) = &mut subject.snapshot else { unreachable!() };
    window.add(1_000_000 - 40, Cost::ZERO.with_cpu_micros(60).unwrap());
    let mut wait = |used| {
        subject.comparisons[Resource::Cpu].here = Some(Here { limit: Limit::At(50), used });
        let breach = verdict(std::slice::from_ref(&subject)).denied_by.unwrap();
        assert!(!breach.permanent);
        breach.retry_after
    };
    let left = Duration::from_millis((BUCKETS - 30) * 1000 - 500);
    assert_eq!(wait(HereUsed::Reported(70)), left);
    assert_eq!(wait(HereUsed::Unknown), left);
    // The node's buckets end at other moments.
    assert_eq!(wait(HereUsed::Told(70)), left + Duration::from_secs(1));
    // What only the node counts is about to be reported, or has just left the store.
    let soon = on_a_node(40, Limit::Unlimited, HereUsed::Told(60));
    let breach = verdict(std::slice::from_ref(&soon)).denied_by.unwrap();
    assert_eq!(breach.retry_after, Duration::from_secs(1));
}
