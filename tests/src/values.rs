//! Values that tests of the stores are made of.

use std::time::Duration;

use quota_core::{
    Account, Bound, Bucket, Charge, Cost, Ipv6Prefix, Kind, Limit, Mark, Mode, PerResource, Release, Source,
    Tick, Window,
};
use quota_server::store::Entry;

/// A user's account.
pub fn user(name: &str) -> Account {
    Account::new(Kind::User, name, Ipv6Prefix::default()).expect("a name")
}

/// A cost, each amount at most [`Cost::MAX`].
pub fn cost(cpu_micros: u64, memory_kib_seconds: u64, network_bytes: u64) -> Cost {
    Cost::saturating(PerResource::new(cpu_micros, memory_kib_seconds, network_bytes))
}

/// A cost of CPU alone.
pub fn cpu(micros: u64) -> Cost {
    cost(micros, 0, 0)
}

/// A limit, and what happens when it is reached.
pub fn bound(limit: Limit, mode: Mode) -> Bound {
    Bound { limit, mode }
}

/// A limit for CPU in microseconds, and none for the others.
pub fn cpu_bound(limit: Limit, mode: Mode) -> PerResource<Bound> {
    let unlimited = bound(Limit::Unlimited, Mode::Enforce);
    PerResource::new(bound(limit, mode), unlimited, unlimited)
}

/// An enforced limit for CPU, and none for the others.
pub fn enforced(cpu_micros: u64) -> PerResource<Bound> {
    cpu_bound(Limit::At(cpu_micros), Mode::Enforce)
}

/// No limit.
pub fn unlimited() -> PerResource<Bound> {
    cpu_bound(Limit::Unlimited, Mode::Enforce)
}

/// An entry with charges of these ages in seconds and CPU microseconds.
pub fn spending(account: &Account, spent: &[(u64, u64)]) -> Entry {
    let charge = |&(age, micros)| Charge { age: Duration::from_secs(age), cost: cpu(micros) };
    Entry { account: account.clone(), charges: spent.iter().map(charge).collect(), releases: Vec::new() }
}

/// An entry that gives back CPU microseconds.
pub fn giving_back(account: &Account, tick: Tick, micros: u64) -> Entry {
    let releases = vec![Release { tick, amounts: cpu(micros) }];
    Entry { account: account.clone(), charges: Vec::new(), releases }
}

/// A report's mark.
pub fn mark(source: &str, sequence: u64) -> Option<Mark> {
    Some(Mark { source: Source::new("tests", source), sequence })
}

/// A window that holds these CPU microseconds by age in buckets, oldest first; the last has age 0.
pub fn window_of(now: Tick, spent: &[(u64, u64)]) -> Window {
    let bucket = |&(age, micros)| Bucket { tick: now - age, spent: PerResource::new(micros, 0, 0) };
    let (open, closed) = spent.split_last().expect("the open bucket");
    assert_eq!(open.0, 0, "the open bucket comes last");
    Window::from_buckets(bucket(open), closed.iter().map(bucket)).expect("a window")
}
