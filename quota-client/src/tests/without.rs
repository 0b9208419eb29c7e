//! What a client does while the service is away, and when it is back.

use quota_core::Cost;
use quota_proto::v1::{self, check_response, limit};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Code;

use super::fake::{Check, Heard, Report};
use super::*;
use crate::denial::tests::deny;
use crate::local::cuts::tests::cut;
use crate::{Cause, Denial, Kind, Resource};

const LIMIT: Duration = Duration::from_secs(1);
const PRICE: Duration = Duration::from_millis(100);

fn cpu(time: Duration) -> Cost {
    Cost::ZERO.with_cpu_micros(time.as_micros().try_into().unwrap()).unwrap()
}

/// Users may use `LIMIT` of CPU, and are `over` it or not.
fn standing(over: bool, retry_after: Duration) -> v1::Standing {
    let told = |limit, mode: v1::Mode| v1::ResourceStanding {
        limit: Some(v1::Limit { limit: Some(limit) }),
        mode: mode.into(),
        ..v1::ResourceStanding::default()
    };
    let unlimited = Some(told(limit::Limit::Unlimited(true), v1::Mode::Shadow));
    v1::Standing {
        kind: v1::Kind::User.into(),
        over,
        retry_after: prost_types::Duration::try_from(retry_after).ok(),
        cpu: Some(told(limit::Limit::Amount(LIMIT.as_micros().try_into().unwrap()), v1::Mode::Enforce)),
        memory: unlimited.clone(),
        network: unlimited,
        ..v1::Standing::default()
    }
}

/// Reserves `PRICE`.
fn allow() -> Check {
    let Check::Answer(allow) = Check::allow_reserving(cpu(PRICE)) else { unreachable!() };
    Check::answer(v1::CheckResponse { standings: vec![standing(false, Duration::ZERO)], ..*allow })
}

/// Refuses whichever user asks, and spreads the wait by as much as it may.
fn refuse(wait: Duration) -> Check {
    let standings = vec![standing(true, wait)];
    Check::answer(v1::CheckResponse { standings, ..deny(wait.mul_f64(1.2), false) })
}

fn by(user: &str) -> Request {
    Request::rpc("/gitaly.SSHService/SSHUploadPack").user(user)
}

async fn refused(client: &Client, request: &Request) -> Denial {
    match client.admit(request).await {
        Decision::Deny(denial) => denial,
        Decision::Allow(_) => panic!("allowed: {:?}", client.stats()),
    }
}

fn use_cpu(client: &Client, user: &str, time: Duration) {
    client.meter(&by(user)).cpu(time);
}

/// Lets time pass at once.
async fn leap(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Each report once, however often it was sent.
fn reports(heard: &Heard) -> Vec<&v1::ReportRequest> {
    let mut reports: Vec<_> = heard.reports.iter().collect();
    reports.sort_by_key(|report| report.sequence);
    reports.dedup_by_key(|report| report.sequence);
    reports
}

fn micros<'a>(charges: impl IntoIterator<Item = &'a v1::Charge>) -> u64 {
    charges.into_iter().map(|charge| charge.cost.unwrap().cpu_micros).sum()
}

fn reported(heard: &Heard) -> u64 {
    micros(reports(heard).into_iter().flat_map(|report| &report.charges))
}

#[tokio::test]
async fn f23_without_the_service_the_last_known_limits_hold_on_what_is_used_here() {
    let mut fake = Fake::start().await;
    fake.answers([allow()]);
    let client = builder([&fake]).build().unwrap();
    drop(allowed(&client, &by("noisy")).await);
    use_cpu(&client, "noisy", 2 * LIMIT);
    fake.stop().await;

    let denial = refused(&client, &by("noisy")).await;
    let Cause::OverQuota(over) = denial.cause() else { panic!("{denial}") };
    assert_eq!((over.kind, &*over.id, over.resource), (Kind::User, "noisy", Resource::Cpu));
    assert_eq!((over.used, over.limit), (2_000_000, 1_000_000));
    let wait = denial.retry_after();
    assert!(wait > Duration::from_secs(58) && wait <= Duration::from_secs(72), "{wait:?}");

    // A user who was never asked about: as many as there are prices in the limit, and no more.
    let mut admissions = Vec::new();
    for _ in 0..10 {
        let admission = allowed(&client, &by("quiet")).await;
        assert!(!admission.checked());
        admissions.push(admission);
    }
    refused(&client, &by("quiet")).await;
    let stats = client.stats();
    assert_eq!((stats.denied_locally, stats.allowed_locally, stats.allowed_unchecked), (2, 10, 10));
    drop(admissions);
    allowed(&client, &by("quiet")).await.meter().cpu(PRICE);
    // Nothing is known of repositories.
    allowed(&client, &Request::rpc("/x").repo("project-42")).await;
    let stats = client.stats();
    assert_eq!((stats.denied_locally, stats.allowed_locally, stats.allowed_unchecked), (2, 11, 12));

    fake.restart().await;
    assert!(client.shutdown(LONG).await);
    assert_eq!(reported(&fake.heard()), 2_100_000, "all that was used, and no price");
}

#[tokio::test]
async fn an_account_that_was_cut_on_this_fileserver_is_held_to_that_without_the_service() {
    let mut fake = Fake::start().await;
    fake.answers([allow()]);
    let client = builder([&fake]).build().unwrap();
    drop(allowed(&client, &by("noisy")).await);
    for user in ["noisy", "quiet"] {
        use_cpu(&client, user, LIMIT / 2);
    }
    fake.cuts([cut("noisy", 300_000)]).await;
    fake.stop().await;
    let denial = refused(&client, &by("noisy")).await;
    let Cause::OverQuota(over) = denial.cause() else { panic!("{denial}") };
    assert_eq!((&*over.id, over.resource, over.used, over.limit), ("noisy", Resource::Cpu, 500_000, 300_000));
    drop(allowed(&client, &by("quiet")).await);

    fake.restart().await;
    fake.cuts([]).await;
    fake.stop().await;
    drop(allowed(&client, &by("noisy")).await);
}

#[tokio::test]
async fn f05_a_service_that_has_lost_its_store_is_no_other() {
    let fake = Fake::start().await;
    fake.answers([allow()]);
    let client = builder([&fake]).build().unwrap();
    drop(allowed(&client, &by("noisy")).await);
    use_cpu(&client, "noisy", LIMIT);
    let unchecked = v1::CheckResponse {
        decision: check_response::Decision::Allow.into(),
        ..v1::CheckResponse::default()
    };
    fake.answers([Check::answer(unchecked)]);
    refused(&client, &by("noisy")).await;
    assert!(!allowed(&client, &by("quiet")).await.checked());
    assert_eq!((client.stats().denied_locally, client.stats().allowed_locally), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn one_request_at_a_time_waits_for_a_service_that_hangs() {
    let (one, other) = (Fake::start().await, Fake::start().await);
    let deadline = Duration::from_millis(50);
    let client = builder([&one, &other]).deadline(deadline).build().unwrap();
    for fake in [&one, &other] {
        fake.answers([Check::Hang]);
    }
    let mut waited = 0;
    for _ in 0..200 {
        let mut requests = JoinSet::new();
        for _ in 0..20 {
            let client = client.clone();
            requests.spawn(async move {
                let asked = Instant::now();
                assert!(!allowed(&client, &fetch()).await.checked());
                asked.elapsed()
            });
        }
        let waits = requests.join_all().await;
        let most = waits.iter().max().unwrap();
        // Tokio's timers are exact to a millisecond.
        assert!(*most <= deadline + Duration::from_millis(1), "{most:?}");
        waited += waits.iter().filter(|wait| !wait.is_zero()).count();
        tokio::time::advance(Duration::from_millis(5)).await;
    }
    // Twenty wait together until each of the two has been late three times; from then on at most the one that probes.
    assert!(waited <= 2 * 3 * 20 + 200, "{waited} waited");
    assert!(client.stats().allowed_unchecked == 4000);
}

#[tokio::test]
async fn a_refusal_is_remembered_and_asked_about_once_a_second() {
    let fake = Fake::start().await;
    fake.answers([refuse(Duration::from_secs(7))]);
    let client = builder([&fake]).build().unwrap();
    let checks = || fake.heard().checks.len();
    let first = refused(&client, &by("alice")).await;
    assert_eq!(first.retry_after(), Duration::from_millis(8400), "as the service said");
    for _ in 0..20 {
        let denial = refused(&client, &by("alice").repo("project-42")).await;
        assert_eq!(denial.cause(), first.cause());
        let wait = denial.retry_after();
        assert!(wait > Duration::from_secs(6) && wait <= Duration::from_millis(8400), "{wait:?}");
    }
    assert_eq!((checks(), client.stats().denied, client.stats().denied_remembered), (1, 1, 20));
    refused(&client, &by("bob")).await;
    assert_eq!(checks(), 2, "it is of alice alone");

    leap(Duration::from_secs(1)).await;
    for _ in 0..20 {
        refused(&client, &by("alice")).await;
    }
    assert_eq!(checks(), 3);
    // An operator lifts it.
    fake.answers([allow()]);
    leap(Duration::from_secs(1)).await;
    for _ in 0..3 {
        assert!(allowed(&client, &by("alice")).await.checked());
    }
    assert_eq!(checks(), 6);
}

#[tokio::test]
async fn f25_those_who_are_refused_by_one_remembered_refusal_are_spread() {
    let fake = Fake::start().await;
    let exact = Duration::from_secs(50);
    fake.answers([refuse(exact)]);
    let client = builder([&fake]).build().unwrap();
    let asked = Instant::now();
    refused(&client, &by("alice")).await;
    let mut waits = Vec::new();
    for _ in 0..200 {
        waits.push(refused(&client, &by("alice")).await.retry_after());
    }
    let took = asked.elapsed();
    let (least, most) = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
    assert!(least >= exact.saturating_sub(took) && most <= exact.mul_f64(1.2), "{least:?} to {most:?}");
    assert!(most - least >= Duration::from_secs(5), "{least:?} to {most:?}");
}

#[tokio::test]
async fn a_refusal_stands_while_the_service_is_away_and_ends_in_time() {
    let mut fake = Fake::start().await;
    fake.answers([refuse(Duration::from_secs(7))]);
    let client = builder([&fake]).build().unwrap();
    refused(&client, &by("alice")).await;
    fake.stop().await;
    leap(Duration::from_secs(1)).await;
    refused(&client, &by("alice")).await;
    assert_eq!(client.stats().denied_remembered, 1);
    leap(Duration::from_secs(6)).await;
    assert!(!allowed(&client, &by("alice")).await.checked());
}

/// A service that has allowed a request of `noisy`, knows all that was used until then, and is away.
async fn gone_after_a_check() -> (Fake, Client) {
    let mut fake = Fake::start().await;
    fake.answers([allow()]);
    let client = builder([&fake]).build().unwrap();
    drop(allowed(&client, &by("noisy")).await);
    assert!(client.shutdown(LONG).await);
    fake.stop().await;
    (fake, client)
}

/// The service is back, is not told what was used without it, and would allow; requests of `noisy` are refused until it
/// is asked at last.
async fn comes_back_without_reports(fake: &mut Fake, client: &Client) {
    fake.answers_reports([Report::Fail(Code::Unavailable); 1000]);
    fake.restart().await;
    let before = fake.heard().checks.len();
    let asked = async {
        while fake.heard().checks.len() == before {
            refused(client, &by("noisy")).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, asked).await.unwrap();
}

/// The service is back before it knows what was used without it.
#[tokio::test]
async fn f23_on_return_nothing_surges_before_what_was_used_is_reported() {
    let (mut fake, client) = gone_after_a_check().await;
    assert!(!allowed(&client, &by("noisy")).await.checked());
    use_cpu(&client, "noisy", LIMIT);
    comes_back_without_reports(&mut fake, &client).await;
    for _ in 0..10 {
        refused(&client, &by("noisy")).await;
    }
    assert_eq!(client.stats().denied_remembered, 0);
    assert!(allowed(&client, &by("quiet")).await.checked());

    fake.answers_reports([]);
    assert!(client.shutdown(LONG).await);
    let heard = fake.heard();
    let charges = || reports(&heard).into_iter().flat_map(|report| &report.charges);
    assert_eq!(micros(charges()), LIMIT.as_micros() as u64);
    let released: u64 = charges().filter_map(|charge| charge.release).map(|release| release.cpu_micros).sum();
    let allowed_by_service = heard.checks.len() as u64;
    assert_eq!(
        released,
        allowed_by_service * PRICE.as_micros() as u64,
        "what the service reserved for those refused here"
    );
    leap(Duration::from_secs(1)).await;
    assert!(allowed(&client, &by("noisy")).await.checked(), "the service knows, and its word counts");
}

/// Nobody asked while the service was away, and work went on.
#[tokio::test]
async fn f23_what_was_used_while_nobody_asked_counts_on_return() {
    let (mut fake, client) = gone_after_a_check().await;
    use_cpu(&client, "noisy", LIMIT);
    let noticed = async {
        while client.shared().local.lock().is_known() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LONG, noticed).await.unwrap();
    comes_back_without_reports(&mut fake, &client).await;
    assert_eq!(client.stats().allowed_unchecked, 0);
}

#[tokio::test]
async fn f23_what_is_used_in_twenty_seconds_without_the_service_is_reported_once_and_dated() {
    let mut fake = Fake::start().await;
    let client = builder([&fake]).report_interval(Duration::from_secs(3600)).build().unwrap();
    drop(allowed(&client, &by("alice")).await);
    fake.stop().await;
    work_without(&client, 20).await;
    fake.restart().await;
    assert!(client.shutdown(LONG).await);
    let heard = fake.heard();
    assert_eq!(reported(&heard), 40_000_000);
    let mut ages: Vec<_> = reports(&heard)
        .into_iter()
        .flat_map(|report| report.charges.iter().map(|charge| age(report, charge)))
        .collect();
    ages.sort();
    assert_eq!(ages.len(), 20);
    assert!(ages[0] < Duration::from_secs(3) && *ages.last().unwrap() >= Duration::from_secs(18), "{ages:?}");
    assert_eq!((client.stats().charges_lost, client.stats().charges_pending), (0, 0));
}

#[tokio::test]
async fn f24_of_a_partition_longer_than_the_window_only_the_last_minute_counts() {
    let mut fake = Fake::away().await;
    let client = builder([&fake]).report_interval(Duration::from_secs(3600)).build().unwrap();
    work_without(&client, 90).await;
    fake.restart().await;
    assert!(client.shutdown(LONG).await);
    let heard = fake.heard();
    let is_young =
        |report: &v1::ReportRequest, charge: &v1::Charge| age(report, charge) < Duration::from_secs(60);
    let young = reports(&heard)
        .into_iter()
        .map(|report| micros(report.charges.iter().filter(|charge| is_young(report, charge))))
        .sum::<u64>();
    assert!((110_000_000..=120_000_000).contains(&young), "{young} us count");
    let lost = client.stats().charges_lost;
    assert_eq!(reported(&heard) + lost * 2_000_000, 180_000_000, "what is given up is counted");
    assert_eq!(client.stats().charges_pending, 0);
}

#[tokio::test]
async fn f24_a_report_that_breaks_off_half_way_is_neither_lost_nor_doubled() {
    let mut fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    fake.answers_reports([Report::Hang]);
    use_cpu(&client, "alice", PRICE);
    fake.hears(|heard| heard.reports.len() == 1).await;
    fake.stop().await;
    use_cpu(&client, "alice", LIMIT);
    fake.restart().await;
    assert!(client.shutdown(LONG).await);
    let heard = fake.heard();
    let [first, second, third] = &heard.reports[..] else { panic!("{:#?}", heard.reports) };
    assert_eq!((first.sequence, &first.charges), (second.sequence, &second.charges));
    assert_eq!([micros(&second.charges), micros(&third.charges)], [100_000, 1_000_000]);
    assert_eq!((client.stats().reports_sent, client.stats().charges_lost), (2, 0));
}

/// Two seconds of CPU in each second, collected each second.
async fn work_without(client: &Client, seconds: u32) {
    tokio::time::pause();
    for _ in 0..seconds {
        use_cpu(client, "alice", Duration::from_secs(2));
        tokio::time::advance(Duration::from_secs(1)).await;
        client.shared().collect(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
}

/// How old a charge was when its report was last sent.
fn age(report: &v1::ReportRequest, charge: &v1::Charge) -> Duration {
    let duration = |wire: Option<prost_types::Duration>| Duration::try_from(wire.unwrap()).unwrap();
    duration(report.held) + duration(charge.age)
}
