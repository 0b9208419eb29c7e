use quota_core::Cost;
use quota_proto::v1;
use tonic::Code;

use super::fake::{Check, Heard, Report};
use super::*;

fn cpu(micros: u64) -> Cost {
    Cost::ZERO.with_cpu_micros(micros).unwrap()
}

fn charges(heard: &Heard) -> impl Iterator<Item = &v1::Charge> {
    heard.reports.iter().flat_map(|report| &report.charges)
}

fn bytes(heard: &Heard) -> u64 {
    charges(heard).map(|charge| charge.cost.unwrap().network_bytes).sum()
}

/// The same report, as it was first sent.
fn frozen(report: &v1::ReportRequest) -> v1::ReportRequest {
    v1::ReportRequest { held: None, ..report.clone() }
}

#[tokio::test]
async fn work_is_charged_as_it_goes_and_the_rest_at_its_end() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let meter = client.meter(&fetch());
    meter.sent(30);
    meter.received(12);
    meter.cpu(Duration::from_micros(1500));
    let heard = fake.hears(|heard| bytes(heard) == 42).await;
    let charge = charges(&heard).next().unwrap();
    let named = ("project-42".to_owned(), "user-7".to_owned());
    let expected = v1::Accounts { repo: Some(named.0), user: Some(named.1), ip: None };
    assert_eq!(charge.accounts, Some(expected));
    assert_eq!(charge.cost, Some(v1::Cost { cpu_micros: 1500, memory_byte_seconds: 0, network_bytes: 42 }));
    assert_eq!((&*charge.reservation, charge.release), ("", None));
    assert_eq!(heard.reports[0].node, "gitaly-01");
    assert_eq!(heard.reports[0].sequence, 1);
    meter.sent(1);
    drop(meter);
    fake.hears(|heard| bytes(heard) == 43).await;
}

#[tokio::test]
async fn releases_sum_to_what_was_reserved() {
    let fake = Fake::start().await;
    fake.answers([Check::allow_reserving(cpu(1000))]);
    let client = builder([&fake]).build().unwrap();
    for spent in [[0, 0], [300, 0], [300, 400], [5000, 1]] {
        let before = fake.heard().reports.len();
        let admission = allowed(&client, &fetch()).await;
        let meter = admission.meter();
        for micros in spent {
            meter.cpu(Duration::from_micros(micros));
            assert!(client.shutdown(LONG).await);
        }
        drop((admission, meter));
        assert!(client.shutdown(LONG).await);
        let heard = fake.heard();
        let charges = heard.reports[before..].iter().flat_map(|report| &report.charges);
        let (mut cost, mut released) = (0, 0);
        for charge in charges {
            cost += charge.cost.unwrap().cpu_micros;
            released += charge.release.map_or(0, |release| release.cpu_micros);
            assert_eq!(charge.reservation.is_empty(), charge.release.is_none(), "without it all is released");
            assert!(released <= 1000);
        }
        assert_eq!((cost, released), (spent.iter().sum(), 1000));
    }
}

/// Of a request with a reservation, though it was spent before the end; of no other.
#[tokio::test]
async fn a_request_that_finished_tells_its_rpc_time_and_cost_with_its_last_charge() {
    let fake = Fake::start().await;
    fake.answers([Check::allow_reserving(cpu(1000)), Check::allow()]);
    let client = builder([&fake]).build().unwrap();
    let begun = std::time::Instant::now();
    let admission = allowed(&client, &fetch()).await;
    let meter = admission.meter();
    meter.cpu(Duration::from_micros(5000));
    assert!(client.shutdown(LONG).await);
    meter.cpu(Duration::from_micros(70));
    drop((admission, meter));
    let longest = begun.elapsed();
    let unreserved = allowed(&client, &fetch()).await;
    unreserved.meter().cpu(Duration::from_micros(9));
    drop(unreserved);
    client.meter(&fetch()).cpu(Duration::from_micros(8));
    assert!(client.shutdown(LONG).await);
    let heard = fake.heard();
    let finished: Vec<_> = charges(&heard).filter(|charge| charge.finished).collect();
    let [charge] = finished[..] else { panic!("{finished:?}") };
    assert_eq!((&*charge.rpc, charge.cost.unwrap().cpu_micros), (&*heard.checks[0].rpc, 70));
    assert_eq!(charge.total.unwrap().cpu_micros, 5070);
    let wall = Duration::try_from(charge.wall.unwrap()).unwrap();
    assert!(wall <= longest && wall > Duration::ZERO, "{wall:?} of {longest:?}");
}

#[tokio::test]
async fn f03_a_report_whose_acknowledgement_is_lost_is_sent_again_as_it_was() {
    let fake = Fake::start().await;
    let mut builder = builder([&fake]);
    builder.settings.report_deadline = Duration::from_millis(500);
    let client = builder.build().unwrap();
    fake.answers_reports([Report::Hang, Report::Fail(Code::Unavailable)]);
    client.meter(&fetch()).sent(10);
    fake.hears(|heard| heard.reports.len() == 1).await;
    client.meter(&fetch()).sent(5);
    let heard = fake.hears(|heard| heard.reports.len() == 4).await;
    let [first, second, third, fourth] = &heard.reports[..] else { unreachable!() };
    assert_eq!([frozen(second), frozen(third)], [frozen(first), frozen(first)]);
    let held = [first, second, third].map(|report| Duration::try_from(report.held.unwrap()).unwrap());
    assert!(held.is_sorted() && held[0] < held[2], "{held:?}");
    assert_eq!((first.sequence, fourth.sequence), (1, 2));
    assert_eq!(first.source, fourth.source);
    let sent = |report: &v1::ReportRequest| report.charges[0].cost.unwrap().network_bytes;
    assert_eq!([sent(first), sent(fourth)], [10, 5], "new usage is in the next report");
    assert!(client.shutdown(LONG).await);
    let stats = client.stats();
    assert_eq!((stats.reports_sent, stats.reports_resent, stats.charges_lost), (2, 2, 0));
}

#[tokio::test]
async fn a_report_goes_to_the_endpoint_that_works() {
    let (away, fake) = (Fake::away().await, Fake::start().await);
    let client = builder([&away, &fake]).build().unwrap();
    client.meter(&fetch()).sent(10);
    fake.hears(|heard| bytes(heard) == 10).await;
}

#[tokio::test]
async fn a_report_that_is_refused_is_given_up_at_once() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let codes = [Code::InvalidArgument, Code::PermissionDenied].map(Report::Fail);
    for (lost, answer) in (1..).zip(codes.into_iter().chain([Report::Refuse(0)])) {
        fake.answers_reports([answer]);
        client.meter(&fetch()).sent(10);
        assert!(client.shutdown(LONG).await, "{answer:?}");
        assert_eq!(client.stats().charges_lost, lost, "{answer:?}");
    }
    client.meter(&fetch()).sent(10);
    assert!(client.shutdown(LONG).await);
    let sequences: Vec<_> = fake.heard().reports.iter().map(|report| report.sequence).collect();
    assert_eq!(sequences, [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_report_whose_token_the_service_knows_no_more_is_sent_again_with_the_next() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    fake.answers_reports([Report::Fail(Code::Unauthenticated)]);
    client.meter(&fetch()).sent(10);
    assert!(client.shutdown(LONG).await);
    let stats = client.stats();
    assert_eq!((stats.reports_sent, stats.reports_resent, stats.charges_lost), (1, 1, 0));
}

/// One report of three charges, of 1, 10 and 100 bytes.
fn meter_three(client: &Client) {
    for (user, bytes) in [("a", 1), ("b", 10), ("c", 100)] {
        client.meter(&Request::rpc("/x").user(user)).sent(bytes);
    }
}

fn amounts(report: &v1::ReportRequest) -> Vec<u64> {
    report.charges.iter().map(|charge| charge.cost.unwrap().network_bytes).collect()
}

#[tokio::test]
async fn a_charge_that_is_refused_is_left_out_and_the_rest_is_a_new_report() {
    let fake = Fake::start().await;
    let client = builder([&fake]).report_interval(LONG).build().unwrap();
    fake.answers_reports([Report::Refuse(1), Report::Refuse(0)]);
    meter_three(&client);
    assert!(client.shutdown(LONG).await);
    let heard = fake.heard();
    let sent: Vec<_> = heard.reports.iter().map(|report| (report.sequence, amounts(report))).collect();
    assert_eq!(sent, [(1, vec![1, 10, 100]), (2, vec![1, 100]), (3, vec![100])]);
    let stats = client.stats();
    assert_eq!((stats.reports_sent, stats.reports_resent, stats.charges_lost), (1, 0, 2));

    fake.answers_reports([Report::Refuse(3)]);
    meter_three(&client);
    assert!(client.shutdown(LONG).await);
    assert_eq!(fake.heard().reports.len(), 4, "it names no charge of the report");
    assert_eq!(client.stats().charges_lost, 5);
    meter_three(&client);
    assert!(client.shutdown(LONG).await);
    assert_eq!(fake.heard().reports[4].sequence, 5);
}

/// It may have been stored when its answer was lost: under a new sequence it would count twice.
#[tokio::test]
async fn a_report_that_may_be_stored_is_not_made_a_new_one() {
    let fake = Fake::start().await;
    let client = builder([&fake]).report_interval(LONG).build().unwrap();
    fake.answers_reports([Report::Fail(Code::Unavailable), Report::Refuse(1)]);
    meter_three(&client);
    assert!(client.shutdown(LONG).await);
    let sent: Vec<_> = fake.heard().reports.iter().map(|report| (report.sequence, amounts(report))).collect();
    assert_eq!(sent, [(1, vec![1, 10, 100]), (1, vec![1, 10, 100])]);
    assert_eq!(client.stats().charges_lost, 3);
}

#[tokio::test]
async fn an_account_that_cannot_take_a_report_loses_neither_the_others_nor_the_endpoint() {
    let fake = Fake::start().await;
    let client = builder([&fake]).report_interval(LONG).build().unwrap();
    fake.answers_reports([Report::NotStored; 5]);
    for _ in 0..5 {
        meter_three(&client);
        assert!(client.shutdown(LONG).await);
    }
    assert!(allowed(&client, &fetch()).await.checked(), "it is not set aside");
    let stats = client.stats();
    assert_eq!((stats.reports_partly_stored, stats.charges_lost, stats.reports_resent), (5, 0, 0));
    assert_eq!(fake.heard().reports.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_report_is_given_up_when_it_is_older_than_a_window() {
    let fake = Fake::away().await;
    let client = builder([&fake]).build().unwrap();
    client.meter(&fetch()).sent(10);
    assert!(!client.shutdown(Duration::from_secs(59)).await, "it is tried for a whole window");
    assert!(client.shutdown(Duration::from_secs(30)).await);
    assert_eq!((client.stats().charges_lost, client.stats().charges_pending), (1, 0));
}

#[tokio::test]
async fn many_charges_are_several_reports() {
    let fake = Fake::start().await;
    let client = builder([&fake]).report_interval(LONG).build().unwrap();
    for user in 0..2500 {
        client.meter(&Request::rpc("/x").user(format!("user-{user}"))).sent(1);
    }
    assert_eq!(client.stats().charges_pending, 2500);
    assert!(client.shutdown(LONG).await);
    let sizes: Vec<_> = fake.heard().reports.iter().map(|report| report.charges.len()).collect();
    assert_eq!(sizes, [1024, 1024, 452]);
    assert_eq!(client.stats().charges_pending, 0);
}

#[tokio::test]
async fn the_last_clone_reports_what_is_left() {
    let fake = Fake::start().await;
    let client = builder([&fake]).report_interval(LONG).build().unwrap();
    let meter = client.meter(&fetch());
    drop(client);
    meter.sent(7);
    drop(meter);
    fake.hears(|heard| bytes(heard) == 7).await;
}

#[tokio::test]
async fn work_that_panics_or_is_cancelled_is_charged() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let meter = client.meter(&fetch());
    let panics = tokio::spawn(async move {
        meter.sent(1);
        panic!("as it should");
    });
    assert!(panics.await.is_err());
    let meter = client.meter(&fetch());
    meter.sent(10);
    let cancelled = tokio::spawn(async move {
        let _meter = meter;
        std::future::pending::<()>().await;
    });
    cancelled.abort();
    assert!(cancelled.await.is_err());
    fake.hears(|heard| bytes(heard) == 11).await;
}
