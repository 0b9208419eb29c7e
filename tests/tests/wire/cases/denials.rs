//! What was denied, and what enforcing would have denied.

use crate::answer::{Answer, DenialCount, Expected, allow, breach, deny, invalid, reported, standing};
use crate::case::{Case, run};
use crate::request::{Denials, NOTHING, ask, cpu, network, repo, spend, user};

const SECOND: u64 = 1_000_000;
const SHADOWED: u64 = 10 << 30;

const ALL: Denials = Denials { since_seconds: None, kind: "", limit: None };

fn count(kind: &str, id: &str, resource: &str, rpc: &str, mode: &str, count: u64) -> DenialCount {
    let [kind, id, resource, rpc, mode] = [kind, id, resource, rpc, mode].map(str::to_owned);
    DenialCount { kind, id, resource, rpc, mode, count }
}

fn told(since: f64, denials: Vec<DenialCount>) -> Expected {
    Answer::Denials(since, denials, 0).into()
}

#[tokio::test]
async fn denials_are_counted_by_account_resource_rpc_and_mode() {
    let denied = || {
        deny(breach("user", "u", "cpu", 10 * SECOND, 10 * SECOND))
            .told(standing("user", "u").used(cpu(10.0)).over())
    };
    let shadowed = || {
        allow(NOTHING)
            .told(standing("repo", "r").used(network(SHADOWED)))
            .shadowed(breach("repo", "r", "network", SHADOWED, SHADOWED))
    };
    let push = || count("user", "u", "cpu", "/svc/Push", "enforce", 1);
    let fetch = || count("user", "u", "cpu", "/svc/Fetch", "enforce", 2);
    let would = || count("repo", "r", "network", "", "shadow", 3);
    run([Case::new("most often first")
        .step(ALL, told(3600.0, Vec::new()))
        .step(spend(user("u"), cpu(10.0)), reported(1))
        .step(spend(repo("r"), network(SHADOWED)), reported(1))
        .step(ask(user("u")).rpc("/svc/Push"), denied())
        .step(ask(user("u")).rpc("/svc/Fetch"), denied())
        .step(ask(user("u")).rpc("/svc/Fetch"), denied())
        .step(ask(repo("r")), shadowed())
        .step(ask(repo("r")), shadowed())
        .step(ask(repo("r")), shadowed())
        .step(ask(user("other")), allow(NOTHING).told(standing("user", "other")))
        .step(ALL, told(3600.0, vec![would(), fetch(), push()]))
        .step(
            Denials { since_seconds: Some(86_400.0), kind: "user", limit: None },
            told(86_400.0, vec![fetch(), push()]),
        )
        .step(Denials { limit: Some(2), ..ALL }, told(3600.0, vec![would(), fetch()]))
        .step(Denials { kind: "ip", ..ALL }, told(3600.0, Vec::new()))])
    .await;
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_by_its_field() {
    run([Case::new("times, kinds, limits")
        .step(Denials { since_seconds: Some(86_401.0), ..ALL }, invalid("since"))
        .step(Denials { since_seconds: Some(0.0), ..ALL }, invalid("since"))
        .step(Denials { since_seconds: Some(-1.0), ..ALL }, invalid("since"))
        .step(Denials { kind: "group", ..ALL }, invalid("kind"))
        .step(Denials { limit: Some(0), ..ALL }, invalid("limit"))
        .step(Denials { limit: Some(1001), ..ALL }, invalid("limit"))])
    .await;
}
