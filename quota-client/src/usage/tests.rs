use std::collections::HashSet;
use std::time::Duration;

use super::*;
use crate::payers::tests::{payers, user};

fn cpu(micros: u64) -> Cost {
    Cost::ZERO.with_cpu_micros(micros).unwrap()
}

fn used(usage: &mut Usage, name: &str, now: Instant) -> Option<u64> {
    usage.here(&user(name), now).user.and_then(|amounts| amounts.cpu_micros)
}

#[test]
fn what_was_used_leaves_after_a_minute() {
    let start = Instant::now();
    let mut usage = Usage::new(start);
    usage.spend(&user("alice"), cpu(5), start);
    usage.spend(&user("alice"), cpu(7), start + Duration::from_secs(30));
    let at = |usage: &mut Usage, seconds| used(usage, "alice", start + Duration::from_secs(seconds));
    assert_eq!([at(&mut usage, 31), at(&mut usage, 60), at(&mut usage, 90)], [Some(12), Some(7), Some(0)]);
    let (active, heaviest) = usage.heaviest(start + Duration::from_secs(91));
    assert_eq!((active.user, heaviest.len()), (Some(0), 0));
}

#[test]
fn the_heaviest_of_each_kind_are_told_and_all_are_counted() {
    let now = Instant::now();
    let mut usage = Usage::new(now);
    for number in 1..=60 {
        let accounts = payers([(Kind::Repo, "r"), (Kind::User, &number.to_string())]);
        usage.spend(&accounts, cpu(number), now);
    }
    let (active, heaviest) = usage.heaviest(now);
    assert_eq!((active.repo, active.user, active.ip), (Some(1), Some(60), Some(0)));
    let told: Vec<_> =
        heaviest.iter().map(|heavy| (heavy.id.as_str(), heavy.used.unwrap().cpu_micros.unwrap())).collect();
    assert_eq!((told.len(), told[0], told[1], told[50]), (51, ("r", 1830), ("60", 60), ("11", 11)));
}

#[test]
fn the_heaviest_of_one_resource_crowd_out_none_of_another() {
    let now = Instant::now();
    let mut usage = Usage::new(now);
    for number in 1..=100 {
        usage.spend(&user(&format!("cpu-{number}")), cpu(1000 + number), now);
        let network = cpu(1).with_network_bytes(number).unwrap();
        usage.spend(&user(&format!("network-{number}")), network, now);
    }
    let all = cpu(5000).with_memory_byte_seconds(1 << 20).unwrap().with_network_bytes(5).unwrap();
    usage.spend(&user("all"), all, now);
    let memory = Cost::ZERO.with_memory_byte_seconds(2048).unwrap();
    usage.spend(&user("memory"), memory, now);
    let (_, heaviest) = usage.heaviest(now);
    let told: Vec<_> = heaviest.iter().map(|heavy| heavy.id.as_str()).collect();
    let first = ["all", "memory", "network-100", "cpu-100", "network-99", "cpu-99"];
    assert_eq!((told.len(), &told[..6]), (50, &first[..]));
    let memory = heaviest[1].used.unwrap();
    assert_eq!((memory.cpu_micros, memory.memory_byte_seconds), (Some(0), Some(2048)));
    let distinct: HashSet<_> = told.iter().collect();
    assert_eq!(distinct.len(), 50, "each is named once");
}

#[test]
fn what_was_spent_in_the_last_ten_seconds_is_told_apart_and_what_is_reserved_is_not_spent() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut usage = Usage::new(start);
    let told = |usage: &mut Usage, seconds| {
        let (_, heaviest) = usage.heaviest(at(seconds));
        let amounts = |told: Option<v1::Amounts>| told.unwrap().cpu_micros.unwrap();
        (amounts(heaviest[0].used), amounts(heaviest[0].recent))
    };
    let alice = user("alice");
    usage.spend(&alice, cpu(1), start);
    usage.spend(&alice, cpu(10), at(1));
    assert_eq!(
        [told(&mut usage, 9), told(&mut usage, 10), told(&mut usage, 11)],
        [(11, 11), (11, 10), (11, 0)]
    );
    let tick = usage.reserve(&alice, cpu(100), at(12));
    usage.spend(&alice, cpu(40), at(13));
    assert_eq!(told(&mut usage, 13), (151, 40));
    usage.release(&alice, Release { tick, amounts: cpu(40) }, at(14));
    assert_eq!(told(&mut usage, 14), (111, 40));
    usage.release(&alice, Release { tick, amounts: cpu(60) }, at(15));
    assert_eq!(told(&mut usage, 15), (51, 40));
}

#[test]
fn the_dearest_is_told_of_each_resource_that_is_asked_about() {
    let now = Instant::now();
    let mut usage = Usage::new(now);
    for (name, micros, bytes) in [("alice", 100, 7), ("bob", 30, 9)] {
        for _ in 0..3 {
            usage.spend(&user(name), cpu(micros), now);
            usage.ended(&user(name), Cost::ZERO.with_network_bytes(bytes).unwrap(), now);
        }
    }
    let [alice, bob, nobody] = ["alice", "bob", "nobody"].map(|name| user(name).accounts()[0].clone());
    let mut dearest = |of: &[(&Account, Resource)]| {
        let of: Vec<_> = of.iter().map(|(account, resource)| ((*account).clone(), *resource)).collect();
        usage.dearest(&of, now)
    };
    let both = [(&alice, Resource::Cpu), (&bob, Resource::Cpu), (&bob, Resource::Network)];
    assert_eq!(dearest(&both), cpu(100).with_network_bytes(9).unwrap());
    assert_eq!(dearest(&[(&bob, Resource::Cpu), (&nobody, Resource::Network)]), cpu(30));
    assert_eq!(dearest(&[]), Cost::ZERO);
}

#[test]
fn who_has_just_begun_is_told_beside_those_that_used_more_in_the_minute() {
    let start = Instant::now();
    let mut usage = Usage::new(start);
    for number in 0..100 {
        usage.spend(&user(&format!("old-{number}")), cpu(1000 + number), start);
    }
    let later = start + Duration::from_secs(30);
    for number in 1..=100 {
        usage.spend(&user(&format!("new-{number}")), cpu(number), later);
    }
    let (_, heaviest) = usage.heaviest(later);
    let told: Vec<_> = heaviest.iter().map(|heavy| heavy.id.as_str()).collect();
    assert_eq!((told.len(), &told[..4]), (50, &["old-99", "new-100", "old-98", "new-99"][..]));
}

#[test]
fn accounts_are_bounded_and_what_is_not_kept_is_not_known() {
    let now = Instant::now();
    let mut usage = Usage::new(now);
    for number in 0..MAX_ACCOUNTS + 10 {
        usage.spend(&user(&number.to_string()), cpu(1), now);
    }
    assert_eq!(usage.accounts.len(), MAX_ACCOUNTS);
    assert_eq!(used(&mut usage, "3", now), Some(1));
    assert_eq!(used(&mut usage, "somebody else", now), None);
    let later = now + Duration::from_secs(61);
    usage.spend(&user("newcomer"), cpu(3), later);
    assert_eq!((usage.accounts.len(), used(&mut usage, "newcomer", later)), (1, Some(3)));
}

#[test]
fn a_moment_that_comes_late_takes_no_window_back() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut usage = Usage::new(start);
    let alice = user("alice");
    let tick = usage.reserve(&alice, cpu(100), at(5));
    // Read before the second ended, and had its turn after it.
    usage.spend(&alice, cpu(1), at(4));
    usage.release(&alice, Release { tick, amounts: cpu(100) }, at(4));
    assert_eq!(used(&mut usage, "alice", at(5)), Some(1));
}

#[test]
fn spellings_of_one_account_are_one() {
    let now = Instant::now();
    let mut usage = Usage::new(now);
    let repo = |id| payers([(Kind::Repo, id)]);
    usage.spend(&repo("group//project.git"), cpu(5), now);
    assert_eq!(usage.here(&repo("/group/project"), now).repo.unwrap().cpu_micros, Some(5));
    let (_, heaviest) = usage.heaviest(now);
    assert_eq!(heaviest[0].id, "group//project.git", "as it was named");
}
