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
    let off = Bound { limit: Limit::Unlimited, mode: Mode::Off };
    Subject {
        account: Account::new(Kind::User, name, Ipv6Prefix::default()).unwrap(),
        bounds: PerResource::new(Bound { limit, mode }, off, off),
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
fn shadow_is_told_and_refuses_nothing_and_off_is_not_compared() {
    let subjects =
        [user("off", 0, 10, Limit::At(10), Mode::Off), user("shadow", 0, 10, Limit::At(10), Mode::Shadow)];
    let verdict = verdict(&subjects);
    assert_eq!(verdict.denied_by, None);
    assert_eq!(verdict.shadowed.unwrap().account.id(), "shadow");
}
