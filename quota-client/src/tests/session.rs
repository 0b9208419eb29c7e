//! Sessions: what goes by them, what comes of what they tell, and what happens without.

use quota_core::Cost;
use quota_proto::v1;
use quota_proto::v1::session_response::Message as Told;
use tonic::Code;

use super::fake::{Check, Report};
use super::*;
use crate::denial::tests::deny;
use crate::{CheckMode, CheckSettings};

const PRICE: u64 = 1000;

fn cpu(micros: u64) -> Cost {
    Cost::ZERO.with_cpu_micros(micros).unwrap()
}

/// A service that has sessions, and a client that has one with it.
async fn opened() -> (Fake, Client) {
    let fake = Fake::start().await;
    fake.has_sessions();
    let client = builder([&fake]).build().unwrap();
    // The pressure is told each second.
    fake.hears(|heard| heard.by_session >= 1).await;
    (fake, client)
}

fn local() -> CheckSettings {
    CheckSettings { mode: CheckMode::Local, ..CheckSettings::default() }
}

fn alice() -> v1::Account {
    v1::Account { kind: v1::Kind::User.into(), id: "user-7".to_owned() }
}

fn changed(accounts: Vec<v1::Account>, all: bool) -> Told {
    Told::Changed(v1::Changed { accounts, all })
}

#[tokio::test(start_paused = true)]
async fn reports_and_pressure_go_by_it() {
    let (fake, client) = opened().await;
    let hello = fake.heard().hellos[0].clone();
    assert_eq!((&*hello.node, hello.standings), ("gitaly-01", false));
    assert!(hello.version.starts_with("quota-client/"), "{hello:?}");
    let before = fake.heard();
    client.meter(&fetch()).sent(7);
    assert!(client.shutdown(LONG).await);
    let told = before.pressures.len() + 1;
    let heard = fake.hears(|heard| heard.reports.len() == 1 && heard.pressures.len() > told).await;
    assert!(heard.by_session >= 3, "{heard:?}");
    assert_eq!(client.stats().reports_sent, 1);
}

#[tokio::test(start_paused = true)]
async fn what_it_refuses_is_refused_as_by_a_call() {
    let (fake, client) = opened().await;
    fake.answers_reports([Report::Refuse(0), Report::Fail(Code::Unavailable), Report::NotStored]);
    for name in ["bad", "good"] {
        client.meter(&Request::rpc(FETCH).user(name)).sent(7);
    }
    assert!(client.shutdown(LONG).await);
    let stats = client.stats();
    assert_eq!(
        (stats.charges_lost, stats.reports_resent, stats.reports_partly_stored),
        (1, 1, 1),
        "{stats:?}"
    );
    let heard = fake.heard();
    let sequences: Vec<_> = heard.reports.iter().map(|report| report.sequence).collect();
    assert_eq!((sequences, heard.by_session >= 3), (vec![1, 2, 2], true));
}

#[tokio::test(start_paused = true)]
async fn a_report_that_it_does_not_answer_goes_by_a_call() {
    let (fake, client) = opened().await;
    fake.answers_reports([Report::Hang]);
    client.meter(&fetch()).sent(7);
    assert!(client.shutdown(LONG).await);
    let heard = fake.heard();
    assert_eq!(heard.reports.len(), 2);
    assert_eq!(heard.reports[0].sequence, heard.reports[1].sequence);
    // And another session is opened.
    fake.hears(|heard| heard.hellos.len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn where_its_server_has_lost_its_store_reports_go_to_another() {
    let (first, second) = (Fake::start().await, Fake::start().await);
    first.has_sessions();
    second.has_sessions();
    first.answers_reports(std::iter::repeat_n(Report::NoStore, 1000));
    let client = builder([&first, &second]).build().unwrap();
    first.hears(|heard| heard.by_session >= 1).await;
    client.meter(&fetch()).sent(7);
    assert!(client.shutdown(LONG).await);
    let (failed, stored) = (first.heard().reports, second.heard().reports);
    assert_eq!((failed.len(), stored.len()), (1, 1));
    assert_eq!(failed[0].sequence, stored[0].sequence);
    second.hears(|heard| heard.by_session >= 1).await;
}

/// In real time, as below. Without the store nobody can be asked, and what was refused stays refused.
#[tokio::test]
async fn a_refusal_outlives_its_session() {
    let (fake, client) = opened().await;
    fake.answers([Check::answer(deny(LONG, false)), Check::Fail(Code::Unavailable)]);
    assert!(matches!(client.admit(&fetch()).await, Decision::Deny(_)));
    fake.answers_reports([Report::NoStore]);
    client.meter(&Request::rpc(FETCH).user("user-9")).sent(7);
    let before = fake.hears(|heard| heard.hellos.len() == 2).await.by_session;
    // The next is in use.
    fake.hears(|heard| heard.by_session > before).await;
    assert!(matches!(client.admit(&fetch()).await, Decision::Deny(_)));
}

#[tokio::test(start_paused = true)]
async fn when_it_breaks_nothing_is_lost_and_another_is_opened() {
    let (mut fake, client) = opened().await;
    fake.stop().await;
    client.meter(&fetch()).sent(7);
    fake.restart().await;
    assert!(client.shutdown(LONG).await);
    let sequences: Vec<_> = fake.heard().reports.iter().map(|report| report.sequence).collect();
    assert!(!sequences.is_empty() && sequences.iter().all(|sequence| *sequence == 1), "{sequences:?}");
    fake.hears(|heard| heard.hellos.len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_sessions_is_reported_to_by_calls() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    client.meter(&fetch()).sent(7);
    assert!(client.shutdown(LONG).await);
    assert_eq!((fake.heard().reports.len(), fake.heard().by_session), (1, 0));
    // A newer one takes its place.
    fake.has_sessions();
    fake.hears(|heard| heard.hellos.len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_drains_is_left_for_another() {
    let (first, second) = (Fake::start().await, Fake::start().await);
    first.has_sessions();
    second.has_sessions();
    let client = builder([&first, &second]).build().unwrap();
    first.hears(|heard| heard.by_session >= 1).await;
    drop(allowed(&client, &fetch()).await);
    assert_eq!((first.heard().checks.len(), second.heard().checks.len()), (1, 0));
    first.tells(Told::Drain(v1::Drain {}));
    second.hears(|heard| heard.by_session >= 1).await;
    drop(allowed(&client, &fetch()).await);
    client.meter(&fetch()).sent(7);
    assert!(client.shutdown(LONG).await);
    assert_eq!((first.heard().checks.len(), second.heard().checks.len()), (1, 1));
    assert_eq!(second.heard().reports.iter().map(|report| report.charges.len()).sum::<usize>(), 1);
}

/// In real time, of which little passes: after a second it would be asked about again anyway.
#[tokio::test]
async fn a_refusal_ends_when_it_is_told_that_something_changed() {
    for news in [changed(vec![alice()], false), changed(Vec::new(), true)] {
        let (fake, client) = opened().await;
        fake.answers([Check::answer(deny(LONG, false)), Check::allow()]);
        for _ in 0..2 {
            assert!(matches!(client.admit(&fetch()).await, Decision::Deny(_)));
        }
        assert_eq!(fake.heard().checks.len(), 1, "the second is remembered");
        fake.tells(news);
        // What is answered after it was told after it.
        client.meter(&Request::rpc(FETCH).user("user-9")).sent(7);
        assert!(client.shutdown(LONG).await);
        drop(allowed(&client, &fetch()).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_share_ends_when_its_account_is_told_to_be_over_or_changed() {
    for news in [None, Some(changed(vec![alice()], false))] {
        let fake = Fake::start().await;
        fake.has_sessions();
        fake.answers([Check::allow_sharing(cpu(PRICE), cpu(1000 * PRICE))]);
        let client = builder([&fake]).checks(local()).build().unwrap();
        fake.hears(|heard| heard.by_session >= 1 && heard.hellos[0].standings).await;
        while client.stats().allowed_by_share == 0 {
            drop(allowed(&client, &fetch()).await);
        }
        match news {
            Some(news) => fake.tells(news),
            None => {
                let over = v1::Standing {
                    kind: alice().kind,
                    id: alice().id,
                    over: true,
                    ..v1::Standing::default()
                };
                fake.state.standings.lock().push(over);
            }
        }
        // The rest is given back.
        let given_back = |heard: &super::fake::Heard| {
            let charges = heard.reports.iter().flat_map(|report| &report.charges);
            let released = charges.filter(|charge| charge.reservation == "r1.share");
            released.map(|charge| charge.release.unwrap_or_default().cpu_micros).sum::<u64>()
        };
        fake.hears(|heard| given_back(heard) == 1000 * PRICE).await;
        assert!(client.stats().allowed_by_share < 1000);
    }
}
