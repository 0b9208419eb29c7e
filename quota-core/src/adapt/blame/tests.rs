use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{Account, Ipv6Prefix, PerKind, Timestamp};

/// A node that can spend 1,000 in a window: 900 are hot, and 870 are steered for.
const CAPACITY: u64 = 1000;
const INTERVALS: u64 = 12;

fn ratio(value: f64) -> Ratio {
    Ratio::try_from(value).unwrap()
}

fn settings() -> Blame {
    Blame { soft_limit: ratio(0.9), backoff_factor: ratio(0.75), window: WindowLength::default() }
}

fn account(kind: Kind, name: &str) -> Account {
    Account::new(kind, name, Ipv6Prefix::default()).unwrap()
}

fn user(name: &str) -> Account {
    account(Kind::User, name)
}

/// Accounts with what each used and its rate, among as many active ones of each kind.
fn load(active: u32, accounts: &[(Account, u64, u64)]) -> Load {
    let of = |(account, used, rate): &(Account, u64, u64)| {
        (account.clone(), Spending { used: *used, rate: *rate })
    };
    Load {
        capacity: CAPACITY,
        active: PerKind::from_fn(|_| Some(active)),
        accounts: accounts.iter().map(of).collect(),
    }
}

fn step<'a>(settings: &'a Blame, load: &'a Load, pressure: f64) -> Step<'a> {
    Step {
        blame: settings,
        load,
        min: PerKind::from_fn(|_| 5),
        max: PerKind::from_fn(|_| 800),
        step: PerKind::from_fn(|_| 40),
        intervals: INTERVALS,
        pressure: ratio(pressure),
        hot: ratio(pressure) >= settings.soft_limit,
        killed: false,
        now: Timestamp::from_micros(7),
    }
}

fn take(cuts: &mut Cuts, pressure: f64, load: &Load) {
    step(&settings(), load, pressure).take(cuts);
}

fn limits(cuts: &Cuts) -> Vec<(&str, u64)> {
    cuts.accounts.iter().map(|(account, cut)| (account.id(), cut.limit)).collect()
}

#[test]
fn who_loads_the_node_is_cut_and_others_are_spared() {
    let load = load(
        50,
        &[(user("whale"), 100, 700), (user("light"), 15, 30), (user("burst"), 8, 400), (user("idle"), 30, 0)],
    );
    let mut cuts = Cuts::default();
    take(&mut cuts, 1.0, &load);
    // 130 too much: the whale may go on from what it has used, at the pace of a level of 700 - 130.
    assert_eq!(limits(&cuts), [("whale", 100)], "one request of a light user is no flood");
    assert_eq!(cuts.levels, PerKind::new(0, 570, 0));
    let Blamed { share, tenths_of_fair_share, pressure } = cuts.accounts[&user("whale")].blamed;
    assert_eq!((share, tenths_of_fair_share, pressure), (ratio(0.7), 388, Ratio::ONE), "a fair share is 18");
}

#[test]
fn calm_leads_to_nothing() {
    let load = load(50, &[(user("whale"), 600, 700)]);
    let mut cuts = Cuts::default();
    for pressure in [0.0, 0.5, 0.899_999] {
        take(&mut cuts, pressure, &load);
        assert_eq!((limits(&cuts), &cuts.levels), (vec![], &PerKind::default()));
    }
}

#[test]
fn of_what_stands_out_the_kind_is_cut_whose_accounts_keep_the_most() {
    let many = |kind, count: u32, each: u64| {
        (0..count).map(move |at| match kind {
            Kind::Ip => (account(kind, &format!("10.0.0.{at}")), each, each),
            kind => (account(kind, &format!("{kind}-{at}")), each, each),
        })
    };
    let nat = || account(Kind::Ip, "192.0.2.1");
    let popular = || account(Kind::Repo, "popular");
    for (what, accounts, cut) in [
        (
            "one user beside a popular repository",
            [(user("whale"), 500, 500), (popular(), 250, 250)]
                .into_iter()
                .chain(many(Kind::Repo, 40, 12))
                .collect(),
            "whale",
        ),
        (
            "three users beside a popular repository",
            [(popular(), 250, 250)].into_iter().chain(many(Kind::User, 3, 200)).collect::<Vec<_>>(),
            "user-0",
        ),
        (
            "everybody pulls one repository",
            [(popular(), 600, 600)].into_iter().chain(many(Kind::User, 50, 12)).collect(),
            "popular",
        ),
        (
            "a fleet behind one address",
            [(nat(), 600, 600)]
                .into_iter()
                .chain(many(Kind::User, 50, 12))
                .chain(many(Kind::Repo, 50, 12))
                .collect(),
            "192.0.2.1",
        ),
        (
            "all kinds alike",
            [(user("u"), 500, 500), (nat(), 500, 500), (account(Kind::Repo, "r"), 500, 500)].into(),
            "u",
        ),
    ] {
        let mut cuts = Cuts::default();
        take(&mut cuts, 1.0, &load(100, &accounts));
        let first = limits(&cuts).first().map(|(name, _)| (*name).to_owned());
        assert_eq!(first.as_deref(), Some(cut), "{what}: {:?}", limits(&cuts));
    }
}

#[test]
fn a_kind_of_which_nothing_is_told_is_not_blamed() {
    let accounts = [(account(Kind::Repo, "hot"), 900, 900), (user("u"), 500, 500)];
    let load = Load { active: PerKind::new(None, Some(10), None), ..load(10, &accounts) };
    let mut cuts = Cuts::default();
    take(&mut cuts, 1.0, &load);
    assert_eq!(limits(&cuts), [("u", 370)]);
}

#[test]
fn a_kind_whose_limits_cannot_move_is_not_blamed() {
    let load = load(10, &[(account(Kind::Repo, "hot"), 900, 900), (user("u"), 500, 500)]);
    let (settings, mut cuts) = (settings(), Cuts::default());
    let min = PerKind::new(800, 5, 5);
    Step { min, ..step(&settings, &load, 1.0) }.take(&mut cuts);
    assert_eq!(limits(&cuts), [("u", 370)]);
}

#[test]
fn an_account_stands_out_that_used_more_than_a_fair_share_and_a_half() {
    // A fair share is 90.
    for (used, is_cut) in [(143, false), (144, true)] {
        let mut cuts = Cuts::default();
        take(&mut cuts, 1.0, &load(10, &[(user("medium"), used, 300)]));
        assert_eq!(!cuts.accounts.is_empty(), is_cut, "{used}");
    }
}

#[test]
fn of_kinds_that_can_bear_it_users_are_cut_first() {
    // The repository keeps 290, of a fair share of 30, and the user 270: of 45, and of 90, which is too little.
    for (users, first) in [(20, "u"), (10, "popular")] {
        let load = Load {
            active: PerKind::new(Some(30), Some(users), None),
            ..load(0, &[(user("u"), 400, 400), (account(Kind::Repo, "popular"), 420, 420)])
        };
        let mut cuts = Cuts::default();
        take(&mut cuts, 1.0, &load);
        assert_eq!(limits(&cuts).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), [first]);
    }
}

#[test]
fn no_other_kind_is_blamed_while_one_that_is_cut_can_give_more() {
    let all = |rate| load(50, &[(user("whale"), 300, rate), (account(Kind::Repo, "popular"), 700, 700)]);
    let mut cuts = Cuts { mean: 950, ..Cuts::default() };
    take(&mut cuts, 1.0, &load(50, &[(user("whale"), 300, 500)]));
    take(&mut cuts, 1.0, &all(100));
    assert!(cuts.levels[Kind::User] > 0 && cuts.levels[Kind::Repo] == 0, "{:?}", cuts.levels);
    // Down to its fair share the user has given all there is.
    cuts.levels[Kind::User] = 18;
    take(&mut cuts, 1.0, &all(10));
    assert!(cuts.levels[Kind::Repo] > 0, "{:?}", cuts.levels);
}

#[test]
fn a_level_is_lowered_at_once_only_where_the_node_has_been_hot_for_long() {
    let whale = || load(50, &[(user("whale"), 300, 300)]);
    let levels = [899, 901].map(|mean| {
        let mut cuts = Cuts::default();
        take(&mut cuts, 1.0, &load(50, &[(user("whale"), 300, 650)]));
        assert_eq!(cuts.levels[Kind::User], 520);
        // So that the mean of this interval comes to it.
        cuts.mean = (mean * 6 - 1000) / 5;
        take(&mut cuts, 1.0, &whale());
        cuts.levels[Kind::User]
    });
    assert!(levels[0] > 400, "15 % of the way, of {levels:?}");
    assert_eq!(levels[1], 300 - 130);
}

#[test]
fn what_a_cut_account_still_runs_is_waited_for() {
    let whale = |used, rate| [(user("whale"), used, rate), (user("next"), 200, 200)];
    let mut cuts = Cuts::default();
    take(&mut cuts, 1.0, &load(50, &whale(100, 700)));
    assert_eq!(limits(&cuts), [("whale", 100)]);
    // Over its limit, and 100 and more faster than its level: that ends by itself.
    take(&mut cuts, 1.0, &load(50, &whale(160, 720)));
    assert_eq!(limits(&cuts), [("whale", 100)]);
    // Its work has ended, and the node is hot still: it was not the only one.
    take(&mut cuts, 1.0, &load(50, &[(user("whale"), 160, 100), (user("next"), 200, 800)]));
    assert_eq!(limits(&cuts).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["next", "whale"]);
}

#[test]
fn equal_accounts_come_to_one_level_that_leaves_the_node_at_its_target() {
    let names = ["a", "b", "c"];
    let mut cuts = Cuts::default();
    take(&mut cuts, 1.0, &load(50, &names.map(|name| (user(name), 100, 200))));
    for _ in 0..120 {
        // They use their limits, and all others 380.
        let used: Vec<(Account, u64, u64)> = names
            .iter()
            .map(|name| {
                let limit = cuts.accounts[&user(name)].limit;
                (user(name), limit, limit)
            })
            .collect();
        let pressure = (used.iter().map(|(_, used, _)| used).sum::<u64>() + 380) as f64 / CAPACITY as f64;
        take(&mut cuts, pressure, &load(50, &used));
    }
    let [(_, a), (_, b), (_, c)] = limits(&cuts)[..] else { panic!("{cuts:?}") };
    assert!(a == b && b == c, "{a} {b} {c}");
    assert!((150..=170).contains(&a), "a third of 860 - 380: {a}");
}

#[test]
fn the_limit_of_who_makes_no_use_of_it_rises_by_steps_and_is_forgotten() {
    let mut cuts = Cuts::default();
    take(&mut cuts, 1.0, &load(50, &[(user("whale"), 100, 700)]));
    let gone = load(50, &[(user("whale"), 10, 0)]);
    take(&mut cuts, 0.5, &gone);
    assert_eq!(limits(&cuts), [("whale", 125)], "by a quarter, so that one who pauses is not let loose");
    take(&mut cuts, 0.95, &gone);
    assert_eq!(limits(&cuts), [("whale", 156)], "under pressure too: it is no part of it");
    cuts.mean = 400;
    take(&mut cuts, 0.4, &gone);
    assert_eq!(limits(&cuts), [("whale", 196)], "by a whole step where the node is idle");
    for _ in 0..16 {
        take(&mut cuts, 0.5, &gone);
    }
    assert_eq!((limits(&cuts), cuts.levels), (vec![], PerKind::default()));
}

#[test]
fn a_limit_that_rose_unused_comes_back_slowly_while_it_is_calm() {
    let alice = |used| load(50, &[(user("alice"), used, used)]);
    let cut = Cut { limit: 700, since: Timestamp::from_micros(0), blamed: Blamed::default() };
    let before =
        Cuts { mean: 800, levels: PerKind::new(0, 500, 0), accounts: BTreeMap::from([(user("alice"), cut)]) };
    let mut calm = before.clone();
    take(&mut calm, 0.8, &alice(450));
    let level = calm.levels[Kind::User];
    assert_eq!(limits(&calm), [("alice", 700 - Blame::GAIN.of(700 - level))]);
    let mut hot = before;
    take(&mut hot, 0.95, &alice(450));
    assert_eq!(limits(&hot), [("alice", hot.levels[Kind::User])]);
}

#[test]
fn a_limit_is_raised_to_a_fair_share_that_has_grown_under_pressure_too() {
    let mut cuts = Cuts::default();
    take(&mut cuts, 1.0, &load(50, &[(user("whale"), 40, 700)]));
    assert_eq!(limits(&cuts), [("whale", 40)]);
    // Ten are active instead of fifty: a fair share is 87.
    take(&mut cuts, 1.0, &load(10, &[(user("whale"), 40, 700)]));
    assert_eq!(limits(&cuts), [("whale", 90)]);
}

#[test]
fn an_oom_kill_cuts_under_any_pressure() {
    let load = load(50, &[(user("whale"), 300, 300)]);
    let mut cuts = Cuts::default();
    Step { hot: true, killed: true, ..step(&settings(), &load, 0.4) }.take(&mut cuts);
    assert_eq!(cuts.levels[Kind::User], 200, "a quarter of what was held is to go");
    assert_eq!(limits(&cuts), [("whale", 200)]);
}

#[test]
fn of_too_many_the_least_cut_are_forgotten() {
    let most = u64::try_from(Cuts::MOST).unwrap();
    let cut = |limit| Cut { limit, since: Timestamp::from_micros(0), blamed: Blamed::default() };
    let accounts = |limit: fn(u64) -> u64, count| -> BTreeMap<Account, Cut> {
        (0..count).map(|at| (user(&at.to_string()), cut(limit(at)))).collect()
    };
    let mut cuts = Cuts { accounts: accounts(|at| at, most + 2), ..Cuts::default() };
    cuts.forget(&PerKind::from_fn(|_| 10_000));
    assert_eq!(cuts.accounts.len(), Cuts::MOST);
    assert_eq!(cuts.accounts.values().map(|cut| cut.limit).max(), Some(most - 1));
    let mut alike = Cuts { accounts: accounts(|at| at.min(100), most + 1), ..Cuts::default() };
    alike.forget(&PerKind::from_fn(|_| 10_000));
    assert_eq!(alike.accounts.len(), 100, "those that are cut as little as the first to go");
}

#[test]
fn levels_bring_the_highest_down_by_what_is_needed() {
    for (amounts, need, expected) in [
        (vec![], 5, 0),
        (vec![10], 4, 6),
        (vec![10], 11, 0),
        (vec![1, 10, 8], 4, 7),
        (vec![10, 8, 1], 3, 7),
        (vec![10, 10, 10], 3, 9),
        (vec![10, 5, 5], 20, 0),
    ] {
        assert_eq!(step::level(amounts.clone(), need), expected, "{amounts:?} by {need}");
    }
}

prop_compose! {
    fn any_load()(
        capacity in 1..=Load::LARGEST,
        active in proptest::array::uniform3(proptest::option::of(0..1000u32)),
        amounts in proptest::collection::vec((0..3usize, 0..8u8, 0..=Load::LARGEST, 0..=Load::LARGEST), 0..20),
        small in any::<bool>(),
    ) -> Load {
        let [repo, user, ip] = active;
        let shrink = |amount| if small { amount % 2000 } else { amount };
        let accounts = amounts.into_iter().map(|(kind, id, used, rate)| {
            let kind = Kind::ALL[kind];
            let id = if kind == Kind::Ip { format!("10.0.0.{id}") } else { id.to_string() };
            (account(kind, &id), Spending { used: shrink(used), rate: shrink(rate) })
        });
        let capacity = if small { 1 + capacity % 2000 } else { capacity };
        Load { capacity, active: PerKind::new(repo, user, ip), accounts: accounts.collect() }
    }
}

proptest! {
    #[test]
    fn limits_are_never_below_the_fair_share_or_min_nor_above_max(
        told in proptest::collection::vec((any_load(), 0.0..1.0f64, any::<bool>(), any::<bool>()), 1..10),
        min in 1..1000u64,
        more in 0..=Load::LARGEST,
    ) {
        let (settings, mut cuts) = (settings(), Cuts::default());
        let max = min + more;
        for (load, pressure, saturated, killed) in &told {
            let pressure = if *saturated { 1.0 } else { *pressure };
            let before = cuts.clone();
            let one = Step {
                min: PerKind::from_fn(|_| min),
                max: PerKind::from_fn(|_| max),
                killed: *killed,
                hot: *killed || ratio(pressure) >= settings.soft_limit,
                ..step(&settings, load, pressure)
            };
            one.clone().take(&mut cuts);
            for (account, cut) in &cuts.accounts {
                prop_assert!(cut.limit < max);
                prop_assert!(cut.limit >= min);
                let fair = load.fair_share(account.kind(), settings.soft_limit).min(max);
                let held = before.accounts.get(account).map(|cut| cut.limit);
                prop_assert!(cut.limit >= fair || held.is_some_and(|held| cut.limit >= held),
                    "{account} is cut to {} below its fair share of {fair}", cut.limit);
                prop_assert!(one.hot || held.is_some(), "{account} is cut while it is calm");
            }
            prop_assert!(cuts.accounts.len() <= Cuts::MOST);
        }
    }
}
