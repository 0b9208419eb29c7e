//! Calls at a given rate, whether answers come or not. A call counts from the moment that the schedule names, so
//! that a stall counts for all the calls that it kept waiting (no coordinated omission).

use std::thread;
use std::time::{Duration, Instant};

use futures::future::join_all;
use hdrhistogram::Histogram;
use quota_tests::http::Http;
use quota_tests::latency::{histogram, record};
use quota_tests::server::{MEMORY, ServerProcess};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::checks::{Call, Connection, REQUESTS};
use crate::plan::Plan;
use crate::report::{Aim, Report, Spread};
use crate::workload::shuffled;

/// Calls a second.
const RATE: u32 = 2_000;

/// They are taken in turn.
const CONNECTIONS: usize = 8;

/// What a round gave.
pub(crate) struct Measured {
    pub(crate) latencies: Histogram<u64>,
    /// How much later than scheduled the calls were sent: this machine's, and part of their latencies.
    late: Histogram<u64>,
}

pub(crate) async fn measure(report: &mut Report, plan: &Plan) {
    let server = ServerProcess::start(&[("QUOTA__STORE__URL", MEMORY)]).await;
    let connections = join_all((0..CONNECTIONS).map(|_| Connection::to(server.grpc_address()))).await;
    let clients: Vec<_> = (0..CONNECTIONS).map(|_| Http::new(server.http.address())).collect();
    let number = plan.scheduled_checks;
    let requests: Vec<_> = shuffled(REQUESTS).into_iter().cycle().take(number as usize).collect();
    let calls = |call| {
        let in_turn = connections.clone().into_iter().cycle().zip(requests.clone());
        in_turn.map(move |(connection, accounts)| async move { connection.call(call, accounts).await })
    };
    let backoffs = || {
        let in_turn = clients.clone().into_iter().cycle().zip(requests.clone());
        in_turn.map(|(client, accounts)| async move {
            let answer = client.get(&format!("/v1/backoff?{}", accounts.query())).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        })
    };
    let (mut rounds, mut nothing, mut http) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.check_rounds {
        rounds.push(ask(calls(Call::Check), RATE).await);
        nothing.push(ask(calls(Call::Nothing), RATE).await);
        http.push(ask(backoffs(), RATE).await);
    }

    let section = report.section(format!(
        "{RATE} calls a second on the memory store by a schedule: {} rounds of {number} of each",
        plan.check_rounds
    ));
    let spread = |rounds: &[Measured], value: fn(&Measured) -> u64| {
        Spread::of(rounds.iter().map(|round| value(round) as f64))
    };
    let of = |value| spread(&rounds, value);
    let p50 = of(|round| round.latencies.value_at_percentile(50.0));
    section.figure("scheduled.memory.p50_us", "checks over gRPC: p50 us, from the scheduled moment", p50);
    let p99 = of(|round| round.latencies.value_at_percentile(99.0));
    section.figure("scheduled.memory.p99_us", "p99 us", p99);
    section.aim(Aim::AtMost(1_000.0));
    section.figure("scheduled.memory.max_us", "max us", of(|round| round.latencies.max()));
    let late = of(|round| round.late.value_at_percentile(99.0));
    section.figure("scheduled.late.p99_us", "of which sent too late, p99 us", late);
    let p99 = spread(&nothing, |round| round.latencies.value_at_percentile(99.0));
    section.figure("scheduled.nothing.p99_us", "no such method by the same schedule, p99 us", p99);
    let p50 = spread(&http, |round| round.latencies.value_at_percentile(50.0));
    section.figure("scheduled.backoff.p50_us", "backoff over HTTP by the same schedule, p50 us", p50);
    let p99 = spread(&http, |round| round.latencies.value_at_percentile(99.0));
    section.figure("scheduled.backoff.p99_us", "p99 us", p99);
    section.aim(Aim::AtMost(2_000.0));
}

/// Makes the calls, so many a second, each when it is due.
pub(crate) async fn ask<F>(calls: impl Iterator<Item = F> + Send + 'static, rate: u32) -> Measured
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = Handle::current();
    // A thread of its own, since tokio's timers are no finer than a millisecond.
    let sending = tokio::task::spawn_blocking(move || {
        let (mut answers, mut late) = (JoinSet::new(), histogram());
        let start = Instant::now();
        for (number, call) in (0..).zip(calls) {
            let due = start + Duration::from_secs(1) * number / rate;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            record(&mut late, due.elapsed());
            let answer = async move {
                call.await;
                due.elapsed()
            };
            answers.spawn_on(answer, &runtime);
        }
        (answers, late)
    });
    let (answers, late) = sending.await.expect("a schedule that was kept");
    let mut latencies = histogram();
    for took in answers.join_all().await {
        record(&mut latencies, took);
    }
    Measured { latencies, late }
}
