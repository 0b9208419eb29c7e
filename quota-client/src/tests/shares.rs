use quota_core::Cost;
use quota_proto::v1;

use super::fake::Check;
use super::*;
use crate::denial::tests::deny;
use crate::local::cuts::tests::cut;
use crate::{CheckMode, CheckSettings};

const PRICE: u64 = 1000;

fn cpu(micros: u64) -> Cost {
    Cost::ZERO.with_cpu_micros(micros).unwrap()
}

/// A client in local mode, of a service that grants so many prices, and that has been asked so often that it wants a share.
async fn warmed(prices: u64) -> (Fake, Client) {
    let fake = Fake::start().await;
    fake.answers([Check::allow_sharing(cpu(PRICE), cpu(prices * PRICE))]);
    let checks = CheckSettings { mode: CheckMode::Local, ..CheckSettings::default() };
    let client = builder([&fake]).checks(checks).build().unwrap();
    while client.stats().allowed_by_share == 0 {
        drop(allowed(&client, &fetch()).await);
    }
    (fake, client)
}

fn released(heard: &super::fake::Heard, token: &str) -> u64 {
    let charges = heard.reports.iter().flat_map(|report| &report.charges);
    let of_token = charges.filter(|charge| charge.reservation == token);
    of_token.map(|charge| charge.release.unwrap_or_default().cpu_micros).sum()
}

#[tokio::test(start_paused = true)]
async fn requests_that_come_often_are_admitted_by_a_share_without_asking() {
    let (fake, client) = warmed(1000).await;
    let (asked, before) = (fake.heard().checks.len(), client.stats().allowed_by_share);
    for _ in 0..200 {
        assert!(allowed(&client, &fetch()).await.checked());
    }
    assert_eq!(fake.heard().checks.len(), asked);
    assert_eq!(client.stats().allowed_by_share, before + 200);
    let wants: Vec<u64> =
        fake.heard().checks.iter().map(|check| check.share_wanted.unwrap_or_default().cpu_micros).collect();
    let wants: Vec<u64> = wants.into_iter().filter(|wanted| *wanted > 0).collect();
    assert_eq!(wants, [8 * PRICE], "only who has come often wants one, once");
}

#[tokio::test(start_paused = true)]
async fn a_share_that_is_used_up_is_followed_by_the_next_and_all_of_both_is_given_back() {
    let (fake, client) = warmed(100).await;
    for _ in 0..500 {
        drop(allowed(&client, &fetch()).await);
        tokio::time::advance(Duration::from_micros(1)).await;
    }
    let stats = client.stats();
    assert!(stats.allowed_by_share > 300, "{stats:?}");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(client.shutdown(LONG).await);
    let heard = fake.heard();
    let shares = heard.checks.iter().filter(|check| check.share_wanted.is_some()).count() as u64;
    assert!(shares > 3, "{shares}");
    assert_eq!(released(&heard, "r1.share"), shares * 100 * PRICE, "of {shares} shares");
}

#[tokio::test(start_paused = true)]
async fn when_it_is_over_the_service_is_asked() {
    let (fake, client) = warmed(1000).await;
    fake.answers([Check::answer(deny(LONG, false))]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(matches!(client.admit(&fetch()).await, Decision::Deny(_)));
    // The refusal is remembered, and what is left of the share is given back.
    assert!(matches!(client.admit(&fetch()).await, Decision::Deny(_)));
    let used = client.stats().allowed_by_share * PRICE;
    fake.hears(|heard| released(heard, "r1.share") == 1000 * PRICE).await;
    assert!(used < 1000 * PRICE);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_comes_with_the_next_share_ends_the_one_that_there_is() {
    let (fake, client) = warmed(10).await;
    fake.answers([Check::answer(deny(LONG, false))]);
    let denied = async {
        loop {
            if let Decision::Deny(denial) = client.admit(&fetch()).await {
                return denial;
            }
            tokio::task::yield_now().await;
        }
    };
    denied.await;
    assert!(client.stats().allowed_by_share <= 10);
    fake.hears(|heard| released(heard, "r1.share") == 10 * PRICE).await;
}

#[tokio::test(start_paused = true)]
async fn who_is_cut_here_is_asked_about() {
    let (fake, client) = warmed(1000).await;
    fake.cuts([cut("user-7", 1_000_000_000)]).await;
    let (asked, by_share) = (fake.heard().checks.len(), client.stats().allowed_by_share);
    drop(allowed(&client, &fetch()).await);
    assert_eq!((fake.heard().checks.len(), client.stats().allowed_by_share), (asked + 1, by_share));
}

#[tokio::test(start_paused = true)]
async fn in_strict_mode_each_is_asked_about_and_no_share_is_wanted() {
    let fake = Fake::start().await;
    fake.answers([Check::allow_sharing(cpu(PRICE), cpu(1000 * PRICE))]);
    let rpcs = [(FETCH.to_owned(), CheckMode::Strict)].into();
    let checks = CheckSettings { mode: CheckMode::Local, rpcs };
    let client = builder([&fake]).checks(checks).build().unwrap();
    for _ in 0..50 {
        drop(allowed(&client, &fetch()).await);
    }
    let heard = fake.heard();
    assert_eq!((heard.checks.len(), client.stats().allowed_by_share), (50, 0));
    assert!(heard.checks.iter().all(|check: &v1::CheckRequest| check.share_wanted.is_none()));
}
