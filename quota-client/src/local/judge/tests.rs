use std::time::Duration;

use fastrand::Rng;
use quota_core::{
    Bound, Comparison, Here, HereUsed, Kind, Limit, Mode, PerResource, Release, Resource, Scope,
};

use super::*;
use crate::payers::tests::{payers, user};

fn alice() -> Payers {
    user("alice")
}

fn account() -> Account {
    Account::from_spelling(Kind::User, "alice").unwrap()
}

fn cpu(micros: u64) -> Cost {
    Cost::ZERO.with_cpu_micros(micros).unwrap()
}

/// A limit on CPU, and none on anything else.
fn limited(micros: u64, mode: Mode) -> Vec<(Account, Comparisons)> {
    let of = |limit| Comparison { ceiling: Bound { limit, mode }, here: None };
    vec![(account(), PerResource::new(of(Limit::At(micros)), of(Limit::Unlimited), of(Limit::Unlimited)))]
}

fn used(usage: &mut Usage, now: Instant) -> u64 {
    usage.window(&account(), now).usage()[Resource::Cpu]
}

#[test]
fn a_price_is_reserved_below_the_limit_and_nothing_at_it() {
    let now = Instant::now();
    let mut usage = Usage::new(now);
    let mut ask = |price| judge(&mut usage, &alice(), limited(100, Mode::Enforce), cpu(price), now);
    assert!(ask(60).is_ok());
    assert!(ask(60).is_ok(), "60 is below 100");
    let breach = ask(60).unwrap_err();
    assert_eq!((breach.used, breach.limit, breach.scope), (120, Limit::At(100), Scope::Cluster));
    assert_eq!((breach.retry_after, breach.permanent), (Duration::from_secs(60), false));
    assert_eq!(used(&mut usage, now), 120, "a refused request costs nothing");
}

#[test]
fn what_is_not_enforced_or_not_known_refuses_nothing_and_a_limit_of_nothing_everything() {
    let now = Instant::now();
    let mut usage = Usage::new(now);
    usage.spend(&alice(), cpu(1_000), now);
    for mode in [Mode::Off, Mode::Shadow] {
        assert!(judge(&mut usage, &alice(), limited(0, mode), cpu(1), now).is_ok(), "{mode:?}");
    }
    assert!(judge(&mut usage, &alice(), Vec::new(), cpu(1), now).is_ok());
    let breach = judge(&mut Usage::new(now), &alice(), limited(0, Mode::Enforce), cpu(1), now).unwrap_err();
    assert!(breach.permanent);
}

#[test]
fn the_lower_of_an_accounts_and_the_nodes_limit_counts() {
    let now = Instant::now();
    let mut usage = Usage::new(now);
    usage.spend(&alice(), cpu(50), now);
    let mut limits = limited(100, Mode::Enforce);
    limits[0].1[Resource::Cpu].here = Some(Here { limit: Limit::At(50), used: HereUsed::Unknown });
    let breach = judge(&mut usage, &alice(), limits, cpu(1), now).unwrap_err();
    assert_eq!((breach.scope, breach.used, breach.limit), (Scope::Node, 50, Limit::At(50)));
    assert_eq!(breach.retry_after, Duration::from_secs(60));
}

#[test]
fn of_several_accounts_one_that_is_over_reserves_on_none() {
    let now = Instant::now();
    let mut usage = Usage::new(now);
    let repo = (Kind::Repo, "project-42");
    usage.spend(&payers([repo]), cpu(100), now);
    let mut both = alice();
    both.set(repo.0, repo.1.to_owned()).unwrap();
    let mut limits = limited(100, Mode::Enforce);
    let comparisons = limits[0].1;
    limits.push((Account::from_spelling(Kind::Repo, "project-42").unwrap(), comparisons));
    let breach = judge(&mut usage, &both, limits, cpu(10), now).unwrap_err();
    assert_eq!(breach.account.kind(), Kind::Repo);
    assert_eq!(used(&mut usage, now), 0);
}

/// Whoever waits as long as the refusal says is admitted then, and not a microsecond before; and what is used in a window
/// stays below the limit and one price, whatever else is done.
#[test]
fn a_refusal_ends_when_it_says_and_usage_passes_the_limit_by_one_price_at_most() {
    const LIMIT: u64 = 1_000;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let start = Instant::now();
    for _ in 0..200 {
        let (mut usage, mut now, mut held) = (Usage::new(start), start, Vec::new());
        for _ in 0..100 {
            now += Duration::from_micros(random.u64(0..3_000_000));
            let price = random.u64(0..400);
            let ask = |usage: &mut Usage, now| {
                judge(usage, &alice(), limited(LIMIT, Mode::Enforce), cpu(price), now)
            };
            match ask(&mut usage, now) {
                Ok(hold) => held.extend(hold),
                Err(breach) => {
                    let until = now + breach.retry_after;
                    let refused = ask(&mut usage, until - Duration::from_micros(1)).is_err();
                    assert!(refused, "before {:?}", breach.retry_after);
                    now = until;
                    held.extend(ask(&mut usage, now).expect("after as long as it said"));
                }
            }
            assert!(used(&mut usage, now) < LIMIT + 400);
            if random.bool()
                && let Some(mut hold) = held.pop()
            {
                let before = used(&mut usage, now);
                let release: Release = hold.give_back(cpu(7), true).expect("something is held");
                usage.release(&alice(), release, now);
                let freed = before - used(&mut usage, now);
                let amount = release.amounts.amounts()[Resource::Cpu];
                assert!(freed == amount || freed == 0, "all of it, or nothing where it has left the window");
            }
        }
    }
}
