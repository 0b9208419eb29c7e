use super::*;
use crate::{Limit, Mode, Resource};

const START: Timestamp = Timestamp::from_micros(1_700_000_000_400_000);

fn length() -> WindowLength {
    WindowLength::default()
}

fn cpu(micros: u64) -> Cost {
    Cost::ZERO.with_cpu_micros(micros).unwrap()
}

fn mark(name: &str, sequence: u64) -> Option<Mark> {
    Some(Mark { source: crate::Source::new("", name), sequence })
}

fn charge(micros: u64) -> [Charge; 1] {
    [Charge { age: Duration::ZERO, cost: cpu(micros) }]
}

fn used(ledger: &Ledger) -> u64 {
    ledger.window.usage()[Resource::Cpu]
}

fn advanced() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.advance(length().tick(START));
    ledger
}

fn enforced(limit: u64) -> PerResource<Bound> {
    PerResource::from_fn(|resource| Bound {
        limit: if resource == Resource::Cpu { Limit::At(limit) } else { Limit::Unlimited },
        mode: Mode::Enforce,
    })
}

#[test]
fn f03_a_report_counts_once() {
    let mut ledger = advanced();
    let mut settle = |mark, micros| ledger.settle(mark, &charge(micros), &[], START, length());
    assert_eq!(settle(mark("a", 1), 10), Settled::Applied { excess_releases: 0 });
    assert_eq!(settle(mark("a", 1), 10), Settled::Duplicate);
    assert_eq!(settle(mark("a", 1), 999), Settled::Duplicate);
    assert_eq!(settle(mark("a", 0), 10), Settled::Duplicate);
    assert_eq!(settle(mark("b", 1), 10), Settled::Applied { excess_releases: 0 });
    assert_eq!(settle(mark("a", 2), 10), Settled::Applied { excess_releases: 0 });
    assert_eq!(settle(None, 1), Settled::Applied { excess_releases: 0 });
    assert_eq!(settle(None, 1), Settled::Applied { excess_releases: 0 });
    assert_eq!(used(&ledger), 32);
}

#[test]
fn f03_a_mark_lives_two_windows_and_so_does_its_ledger() {
    let mut ledger = advanced();
    let start = length().tick(START);
    ledger.settle(mark("a", 1), &charge(10), &[], START, length());
    ledger.advance(start + 119);
    assert!(!ledger.is_idle(), "its cost has left, its mark has not");
    assert_eq!(ledger.settle(mark("a", 1), &charge(10), &[], START, length()), Settled::Duplicate);
    ledger.advance(start + 120);
    assert!(ledger.is_idle());
}

#[test]
fn sources_are_bounded_and_age_out() {
    let mut ledger = advanced();
    for source in 0..1024 {
        let settled = ledger.settle(mark(&source.to_string(), 1), &charge(1), &[], START, length());
        assert_eq!(settled, Settled::Applied { excess_releases: 0 });
    }
    assert_eq!(ledger.settle(mark("one more", 1), &charge(1), &[], START, length()), Settled::TooManySources);
    assert_eq!(
        ledger.settle(mark("7", 2), &charge(1), &[], START, length()),
        Settled::Applied { excess_releases: 0 }
    );
    assert_eq!(used(&ledger), 1025);
    ledger.advance(length().tick(START) + 120);
    let settled = ledger.settle(mark("one more", 1), &charge(1), &[], START, length());
    assert_eq!(settled, Settled::Applied { excess_releases: 0 });
}

#[test]
fn a_price_is_reserved_on_all_or_none_and_settled() {
    let (mut light, mut heavy) = (advanced(), advanced());
    heavy.settle(None, &charge(100), &[], START, length());
    let price = cpu(30);
    assert!(!admit(&mut [(&mut light, enforced(100)), (&mut heavy, enforced(100))], price));
    assert_eq!((used(&light), used(&heavy)), (0, 100));
    assert!(admit(&mut [(&mut light, enforced(100)), (&mut heavy, enforced(101))], price));
    assert_eq!((used(&light), used(&heavy)), (30, 130));

    let release = Release { tick: light.window.mark(), amounts: price };
    light.settle(None, &charge(8), &[release], START, length());
    assert_eq!(used(&light), 8);
    // The bucket still holds what was charged: a second release takes that, and is told.
    let again = light.settle(None, &[], &[release], START, length());
    assert_eq!((again, used(&light)), (Settled::Applied { excess_releases: 1 }, 0));
}

#[test]
fn a_charge_lands_by_its_age() {
    let mut ledger = advanced();
    let start = length().tick(START);
    let aged = |millis, micros| Charge { age: Duration::from_millis(millis), cost: cpu(micros) };
    // 0.4 s into its bucket: 400 ms ago is this bucket still, 401 ms the one before.
    let charges = [aged(400, 1), aged(401, 2), aged(59_999, 4)];
    ledger.settle(None, &charges, &[], START, length());
    ledger.advance(start + 1);
    assert_eq!(used(&ledger), 3);
    ledger.advance(start + 59);
    assert_eq!(used(&ledger), 1);
}

#[test]
fn now_is_the_newest_mark_within_the_tolerance() {
    let tick = length().tick(START);
    let at = |mark| {
        let mut ledger = Ledger::default();
        ledger.advance(mark);
        ledger
    };
    assert_eq!(Ledger::now(START, length(), []), tick);
    assert_eq!(Ledger::now(START, length(), [&at(tick - 3), &at(tick + 2)]), tick + 2);
    assert_eq!(Ledger::now(START, length(), [&at(tick + 5)]), tick + 5);
    assert_eq!(Ledger::now(START, length(), [&at(tick + 6)]), tick);
    assert!(at(tick + 6).advance(tick));
}
