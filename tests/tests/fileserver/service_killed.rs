//! `kill -9` of the service while a fileserver works.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use quota_client::{Cause, Decision, OverQuota};
use quota_tests::proxy::{Fault, Proxy};
use quota_tests::redis::RedisServer;
use quota_tests::wait::{PATIENCE, until};
use tokio::time::Instant;

use crate::books::Books;
use crate::caller::{Answers, Fileserver};
use crate::cluster::{Service, Setting, client};
use crate::log;

/// Of CPU for each user, over all fileservers.
const LIMIT: Duration = Duration::from_secs(1);

/// What each check reserves, of network: what a lost reply has reserved does not blur the CPU time that is compared.
const PRICE_BYTES: u64 = 1024;

/// Requests of each user in a phase.
const REQUESTS: u16 = 100;

/// Checks that the service has allowed when it is killed, of four times as many that it would.
const BEFORE_THE_KILL: u64 = 100;

const LIGHT: [&str; 4] = ["light-1", "light-2", "light-3", "light-4"];

/// Limits on the cluster hold again this soon.
const RETURN: Duration = Duration::from_secs(2);

const BEGIN: &str = "the quota service does not check: its last known limits are enforced";
const END: &str = "the quota service answers again: requests are checked";

fn settings(redis: &RedisServer) -> Vec<Setting> {
    let limit = format!("{}s", LIMIT.as_secs());
    vec![
        ("QUOTA__STORE__URL", redis.url()),
        ("QUOTA__LIMITS__USER__CPU__MIN", limit.clone()),
        ("QUOTA__LIMITS__USER__CPU__INITIAL", limit.clone()),
        ("QUOTA__LIMITS__USER__CPU__MAX", limit),
        ("QUOTA__LIMITS__REPO__CPU__MODE", "off".to_owned()),
        ("QUOTA__PRICES__DEFAULT__CPU", "0s".to_owned()),
        ("QUOTA__PRICES__DEFAULT__NETWORK", format!("{PRICE_BYTES}B")),
    ]
}

/// How the user is over the limit; none of one who is allowed.
fn over(decision: Decision) -> Option<OverQuota> {
    let Decision::Deny(denial) = decision else { return None };
    let Cause::OverQuota(over) = denial.cause() else { panic!("{denial}") };
    Some(over.clone())
}

/// All of these were refused each request, and nobody of those any.
fn assert_refused(answers: &BTreeMap<&str, Answers>, refused: &[&str]) {
    for (user, answers) in answers {
        let expected = if refused.contains(user) { u64::from(REQUESTS) } else { 0 };
        assert_eq!(answers.refused, expected, "{user}: {answers:?}");
    }
}

/// A figure as operators see it, once it is shown.
fn figure(metrics: &PrometheusHandle, name: &str) -> Option<f64> {
    let text = metrics.render();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map(|value| value.parse().unwrap())
}

/// How many checks had this outcome.
fn checks(metrics: &PrometheusHandle, outcome: &str) -> Option<u64> {
    figure(metrics, &format!("quota_client_checks_total{{outcome=\"{outcome}\"}}")).map(|count| count as u64)
}

#[tokio::test]
async fn f23_local_limits_hold_while_it_is_away_and_nothing_is_lost_or_doubled() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    log::keep();
    let redis = RedisServer::start().await;
    let mut service = Service::start(settings(&redis)).await;
    let books = Books::open(&redis).await;
    let here = Fileserver { client: client(service.port(), "gitaly-01"), books: books.clone() };

    // Somebody is over the limit, and many are not.
    here.spend("noisy", LIMIT);
    assert!(here.client.shutdown(PATIENCE).await);
    assert!(over(here.ask("noisy", Duration::ZERO).await).is_some());
    let users = [&LIGHT[..], &["noisy"]].concat();
    let load = tokio::spawn({
        let here = here.clone();
        async move { here.work(&users, REQUESTS).await }
    });
    until(PATIENCE, "checks are allowed", async || {
        (here.client.stats().allowed >= BEFORE_THE_KILL).then_some(())
    })
    .await;
    service.kill();
    let answers = load.await.unwrap();
    assert_refused(&answers, &["noisy"]);
    for user in LIGHT {
        let Answers { checked, unchecked, .. } = answers[user];
        assert!(checked > 0 && unchecked > 0, "{user} worked before and after: {:?}", answers[user]);
    }
    here.collect().await;
    books.turn_over().await;

    // Who was refused still is; who comes to the limit now is too; others are served. Elsewhere the service works.
    assert!(over(here.ask("greedy", LIMIT).await).is_none());
    let users = [&LIGHT[..], &["noisy", "greedy", "elsewhere"]].concat();
    let answers = here.work(&users, REQUESTS).await;
    assert_refused(&answers, &["noisy", "greedy"]);
    let stats = here.client.stats();
    assert!(stats.denied_locally >= u64::from(REQUESTS) && stats.denied_remembered > 0, "{stats:?}");
    assert_eq!(over(here.ask("greedy", Duration::ZERO).await).unwrap().used, books.spent("greedy"));
    until(PATIENCE, "it is told by metrics", async || {
        let stats = here.client.stats();
        let is_told = checks(&metrics, "denied_locally") == Some(stats.denied_locally)
            && checks(&metrics, "allowed_locally") == Some(stats.allowed_locally)
            && figure(&metrics, "quota_client_unsent_entries") > Some(0.0)
            && figure(&metrics, "quota_client_report_lag_seconds") > Some(0.0);
        is_told.then_some(())
    })
    .await;
    assert_eq!((log::lines(BEGIN).len(), log::lines(END).len()), (1, 0), "{:#?}", log::lines(""));
    let other_service = Service::start(settings(&redis)).await;
    let there = Fileserver { client: client(other_service.port(), "gitaly-02"), books: books.clone() };
    there.spend("elsewhere", LIMIT);
    there.spend("greedy", Duration::from_micros(777));
    assert!(there.client.shutdown(PATIENCE).await);
    here.collect().await;
    books.turn_over().await;

    // It is back, and knows what was used elsewhere.
    service.restart().await;
    let back = Instant::now();
    until(RETURN, "limits on the cluster hold again", async || {
        assert!(over(here.ask("greedy", Duration::ZERO).await).is_some(), "{:?}", here.client.stats());
        over(here.ask("elsewhere", Duration::from_micros(10)).await)
    })
    .await;
    let held = back.elapsed();
    until(PATIENCE, "the service knows what was used without it", async || {
        let used = over(here.ask("greedy", Duration::ZERO).await).expect("still over the limit").used;
        (used == books.spent("greedy")).then_some(())
    })
    .await;
    println!(
        "limits on the cluster held {held:?} after the service was back, with all usage {:?}",
        back.elapsed()
    );
    until(PATIENCE, "the end is told", async || {
        assert!(over(here.ask("light-1", Duration::from_micros(10)).await).is_none());
        (!log::lines(END).is_empty()).then_some(())
    })
    .await;
    let answers = here.work(&users, REQUESTS).await;
    assert_refused(&answers, &["noisy", "greedy", "elsewhere"]);
    assert!(LIGHT.iter().all(|user| answers[user].checked == u64::from(REQUESTS)), "{answers:?}");
    assert!(here.client.shutdown(PATIENCE).await);

    let stats = here.client.stats();
    let given_up = stats.charges_lost + stats.charges_too_old + stats.reports_partly_stored;
    assert_eq!((given_up, stats.charges_pending), (0, 0), "{stats:?}");
    // Of each user one check at a time is under way.
    books.assert_kept(1, PRICE_BYTES).await;
    until(PATIENCE, "metrics tell that nothing waits", async || {
        (figure(&metrics, "quota_client_unsent_entries") == Some(0.0)).then_some(())
    })
    .await;
    assert_eq!((log::lines(BEGIN).len(), log::lines(END).len()), (1, 1), "{:#?}", log::lines(""));
    let warnings = log::lines("WARN").into_iter().filter(|line| line.contains("the quota service"));
    assert_eq!(warnings.count(), 1, "{:#?}", log::lines(""));
}

/// What the store has, and the service did not live to acknowledge.
#[tokio::test]
async fn f03_what_is_stored_and_not_acknowledged_counts_once() {
    let redis = RedisServer::start().await;
    let mut service = Service::start(settings(&redis)).await;
    let proxy = Proxy::to(service.port()).await;
    let books = Books::open(&redis).await;
    let here = Fileserver { client: client(proxy.port(), "gitaly-01"), books: books.clone() };
    here.spend("light-1", Duration::from_micros(5));
    assert!(here.client.shutdown(PATIENCE).await);

    proxy.set(Fault::DropReplies);
    here.spend("light-1", Duration::from_micros(7));
    let unanswered = tokio::spawn({
        let here = here.clone();
        async move { here.ask("light-1", Duration::from_micros(11)).await }
    });
    until(PATIENCE, "the report and the price are stored", async || {
        (books.counted_of("light-1").await == (12, PRICE_BYTES)).then_some(())
    })
    .await;
    service.kill();
    proxy.cut();
    proxy.set(Fault::None);
    assert!(over(unanswered.await.unwrap()).is_none(), "nobody was over a limit");
    here.collect().await;
    service.restart().await;
    assert!(here.client.shutdown(PATIENCE).await);

    let stats = here.client.stats();
    assert!(stats.reports_resent > 0 && stats.charges_lost == 0, "{stats:?}");
    assert_eq!(books.counted_of("light-1").await, (23, PRICE_BYTES), "the price ages out with its bucket");
    books.assert_kept(1, PRICE_BYTES).await;
}
