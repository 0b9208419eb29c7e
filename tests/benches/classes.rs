//! What a class at its cap costs another: interactive requests of `quota-client`, by a schedule, alone and beside ten times as many
//! CI requests as there are slots, on the same fileserver, server and Redis. Each takes a slot and is asked about, as the layer does it.

use std::time::Duration;

use quota_client::{Client, Decision, Request};
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::open_loop::{Measured, ask};
use crate::plan::Plan;
use crate::report::{Aim, Report, Section, Spread};

/// Interactive requests a second.
const RATE: u32 = 500;

/// Of CI.
const SLOTS: u32 = 10;
const CALLERS: u32 = 10 * SLOTS;

/// How long a CI request takes, and how long one that has no slot waits before it comes again, which is far earlier than it is told.
const WORK: Duration = Duration::from_millis(50);

pub(crate) async fn measure(report: &mut Report, redis: &RedisServer, plan: &Plan) {
    let url = redis.url();
    let slots = SLOTS.to_string();
    let server = ServerProcess::start(&[
        ("QUOTA__STORE__URL", url.as_str()),
        ("QUOTA__CLASSES__CI__SLOTS", &slots),
        ("QUOTA__CLASSES__CI__SERVICE", "immediate"),
        // It has one so that its requests take slots, and is far from it.
        ("QUOTA__CLASSES__INTERACTIVE__SLOTS", "10000"),
    ])
    .await;
    let client = Client::builder()
        .endpoints([format!("http://{}", server.grpc_address())])
        .node("gitaly-01")
        .deadline(PATIENCE)
        .build()
        .expect("a client");
    for class in ["interactive", "ci"] {
        until(PATIENCE, "slots of a store that was just started", async || {
            client.slot(&request(class, 0), None).await.is_ok().then_some(())
        })
        .await;
    }

    let number = plan.scheduled_checks as usize / 4;
    let interactive = || {
        let client = client.clone();
        let requests = (0..number).map(move |number| (client.clone(), request("interactive", number)));
        ask(requests.map(|(client, request)| async move { admitted(&client, &request).await }), RATE)
    };
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..plan.check_rounds {
        alone.push(interactive().await);
        let mut ci = JoinSet::new();
        for _ in 0..CALLERS {
            ci.spawn(ci_caller(client.clone()));
        }
        beside.push(interactive().await);
        ci.shutdown().await;
    }

    let section = report.section(format!(
        "{RATE} interactive requests a second of quota-client on Redis, by a schedule: {} rounds of {number}",
        plan.check_rounds
    ));
    row(section, "alone", "alone", &alone);
    row(section, "beside_ci", &format!("beside {CALLERS} CI callers for {SLOTS} slots"), &beside);
    let p99 = |round: &Measured| round.latencies.value_at_percentile(99.0) as f64;
    let ratios = alone.iter().zip(&beside).map(|(alone, beside)| p99(beside) / p99(alone));
    section.figure("classes.beside_ci.times_alone", "beside CI / alone, by p99", Spread::of(ratios));
    section.aim(Aim::AtMost(1.5));
}

fn row(section: &mut Section, key: &str, label: &str, rounds: &[Measured]) {
    for (percentile, name) in [(50.0, "p50"), (99.0, "p99")] {
        let micros = rounds.iter().map(|round| round.latencies.value_at_percentile(percentile) as f64);
        let label = format!("{label}: {name} us, from the scheduled moment");
        section.figure(format!("classes.{key}.{name}_us"), label, Spread::of(micros));
    }
}

/// One of a thousand users, so that no limit is near.
fn request(class: &'static str, number: usize) -> Request {
    let user = format!("user-{}", number % 1_000);
    Request::rpc("/gitaly.CommitService/GetTreeEntries").user(user).class(class)
}

async fn admitted(client: &Client, request: &Request) {
    let slot = client.slot(request, None).await.expect("the cap is far");
    let Decision::Allow(admission) = client.admit(request).await else { panic!("no limit is near") };
    assert!(admission.checked(), "there is time for an answer");
    drop((slot, admission));
}

async fn ci_caller(client: Client) {
    let request = request("ci", 0);
    loop {
        let slot = client.slot(&request, None).await;
        sleep(WORK).await;
        drop(slot);
    }
}
