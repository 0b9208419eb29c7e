//! Checks at a given rate, whether answers come or not. A check counts from the moment that the schedule names, so
//! that a stall counts for all the checks that it kept waiting (no coordinated omission).

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use futures::future::join_all;
use hdrhistogram::Histogram;
use quota_tests::latency::{histogram, record};
use quota_tests::server::{MEMORY, ServerProcess};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::checks::{Call, Connection, REQUESTS};
use crate::plan::Plan;
use crate::report::{Aim, Report, Spread};
use crate::workload::{Accounts, shuffled};

/// Checks a second.
const RATE: u32 = 2_000;

/// They are taken in turn.
const CONNECTIONS: usize = 8;

/// What a round gave.
struct Measured {
    latencies: Histogram<u64>,
    /// How much later than scheduled the checks were sent: this machine's, and part of their latencies.
    late: Histogram<u64>,
}

pub(crate) async fn measure(report: &mut Report, plan: &Plan) {
    let server = ServerProcess::start(&[("QUOTA__STORE__URL", MEMORY)]).await;
    let connections = join_all((0..CONNECTIONS).map(|_| Connection::to(server.grpc_address()))).await;
    let requests = Arc::new(shuffled(REQUESTS));
    let (mut rounds, mut nothing) = (Vec::new(), Vec::new());
    for _ in 0..plan.check_rounds {
        rounds.push(ask(&connections, &requests, plan.scheduled_checks, Call::Check).await);
        nothing.push(ask(&connections, &requests, plan.scheduled_checks, Call::Nothing).await);
    }

    let section = report.section(format!(
        "Over gRPC, {RATE} checks a second on the memory store by a schedule: {} rounds of {} checks",
        plan.check_rounds, plan.scheduled_checks
    ));
    let spread = |rounds: &[Measured], value: fn(&Measured) -> u64| {
        Spread::of(rounds.iter().map(|round| value(round) as f64))
    };
    let of = |value| spread(&rounds, value);
    let p50 = of(|round| round.latencies.value_at_percentile(50.0));
    section.figure("scheduled.memory.p50_us", "p50 us, from the scheduled moment", p50);
    let p99 = of(|round| round.latencies.value_at_percentile(99.0));
    section.figure("scheduled.memory.p99_us", "p99 us", p99);
    section.aim(Aim::AtMost(1_000.0));
    section.figure("scheduled.memory.max_us", "max us", of(|round| round.latencies.max()));
    let late = of(|round| round.late.value_at_percentile(99.0));
    section.figure("scheduled.late.p99_us", "of which sent too late, p99 us", late);
    let p99 = spread(&nothing, |round| round.latencies.value_at_percentile(99.0));
    section.figure("scheduled.nothing.p99_us", "no such method by the same schedule, p99 us", p99);
}

/// Sends so many calls, each when it is due.
async fn ask(connections: &[Connection], requests: &Arc<Vec<Accounts>>, calls: u32, call: Call) -> Measured {
    let (connections, requests, runtime) = (connections.to_vec(), Arc::clone(requests), Handle::current());
    // A thread of its own, since tokio's timers are no finer than a millisecond.
    let sending = tokio::task::spawn_blocking(move || {
        let (mut answers, mut late) = (JoinSet::new(), histogram());
        let in_turn = connections.into_iter().cycle().zip(requests.iter().copied().cycle());
        let start = Instant::now();
        for (number, (connection, accounts)) in (0..calls).zip(in_turn) {
            let due = start + Duration::from_secs(1) * number / RATE;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            record(&mut late, due.elapsed());
            let answer = async move {
                connection.call(call, accounts).await;
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
