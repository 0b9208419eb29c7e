use quota_core::{Cost, Ipv6Prefix, PerKind, PerResource, WindowLength};

use super::*;

fn user(id: &str) -> Account {
    Account::new(Kind::User, id, Ipv6Prefix::default()).unwrap()
}

fn cpu(micros: u64) -> Cost {
    Cost::ZERO.with_cpu_micros(micros).unwrap()
}

fn consumers() -> Consumers {
    Consumers::new(WindowLength::new(Duration::from_secs(3600)).unwrap())
}

fn ids(told: impl Iterator<Item = (Arc<Account>, quota_core::Kept)>) -> Vec<(String, u64)> {
    told.map(|(account, kept)| (account.id().to_owned(), kept.amount)).collect()
}

#[test]
fn a_summary_says_what_was_seen() {
    let consumers = consumers();
    assert!(consumers.summary().is_empty());
    consumers.spent(&user("a"), cpu(5).with_network_bytes(7).unwrap());
    consumers.spent(&user("b"), cpu(9));
    consumers.denied(&user("b"));
    let written = serde_json::to_vec(&consumers.summary()).unwrap();
    let read: Summary = serde_json::from_slice(&written).unwrap();
    assert_eq!(read, consumers.summary());
    let told = |text: &str, amount| (text.to_owned(), amount);
    assert_eq!(ids(read.used(Kind::User, Resource::Cpu)), [told("b", 9), told("a", 5)]);
    assert_eq!(ids(read.used(Kind::User, Resource::Network)), [told("a", 7)]);
    assert_eq!(ids(read.used(Kind::Repo, Resource::Cpu)), []);
    assert_eq!(ids(read.denied(Kind::User)), [told("b", 1)]);
}

#[test]
fn any_number_of_long_names_takes_no_more_room_than_the_bound() {
    let consumers = consumers();
    let long = "n".repeat(1000);
    for number in 0..100_000_u64 {
        let account = user(&format!("{number}-{long}"));
        consumers.spent(&account, cpu(1 + number / 99_000 * 1000));
        consumers.denied(&account);
    }
    for resource in Resource::ALL {
        let held = consumers.heaviest(Kind::User, resource).len();
        assert!(held <= 4096, "{resource}: {held}");
    }
    assert!(consumers.denials().len() <= 2048);
    let content = serde_json::to_vec(&consumers.summary()).unwrap();
    assert!(content.len() < 100_000, "{} bytes", content.len());
}

/// Each of `servers` sees a part of every account's charges, as they come: what is missed of the heaviest 100 by the
/// candidates that are asked about.
fn missed_of_the_heaviest(accounts: usize, exponent: f64, servers: usize, rounds: u64) -> usize {
    let servers: Vec<Consumers> = (0..servers).map(|_| consumers()).collect();
    let names: Vec<Account> = (0..accounts).map(|rank| user(&format!("user-{rank}"))).collect();
    let weight = |rank: usize| (1e9 / ((rank + 1) as f64).powf(exponent)) as u64 + 1;
    for round in 0..rounds {
        for place in 0..accounts {
            let rank = place * 1_000_003 % accounts;
            let server = &servers[(rank + round as usize) % servers.len()];
            server.spent(&names[rank], cpu(weight(rank) / rounds + 1));
        }
    }
    let mut heaviest = servers[0].heaviest(Kind::User, Resource::Cpu);
    for server in &servers[1..] {
        heaviest.absorb(server.summary().used(Kind::User, Resource::Cpu), 0);
    }
    let request =
        TopRequest { kind: Kind::User, resource: Resource::Cpu, node: Label::default(), limit: 100 };
    let candidates: Vec<&str> =
        heaviest.heaviest(request.candidates()).into_iter().map(|(account, _)| account.id()).collect();
    names[..100].iter().filter(|account| !candidates.contains(&account.id())).count()
}

#[test]
fn the_heaviest_hundred_of_many_are_among_the_candidates() {
    for exponent in [0.8, 1.0, 1.3] {
        assert_eq!(missed_of_the_heaviest(50_000, exponent, 3, 4), 0, "exponent {exponent}");
    }
}

#[test]
fn a_summary_is_bounded_in_bytes_whatever_the_names() {
    let long = |number: usize| user(&format!("{number}-{}", "n".repeat(1000)));
    let mut heaviest = Heaviest::of_all();
    for number in 0..1000 {
        heaviest.add(&long(number), 1 + number as u64, (), || Arc::new(long(number)));
    }
    let used = PerKind::from_fn(|_| PerResource::from_fn(|_| heaviest.clone()));
    let summary = Summary::new(&used, &heaviest);
    let content = serde_json::to_vec(&summary).unwrap();
    assert!(content.len() < 700_000, "{} bytes", content.len());
    let (first, _) = summary.used(Kind::User, Resource::Cpu).next().unwrap();
    assert_eq!(*first, long(999));
}
