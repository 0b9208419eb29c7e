//! What it takes to admit a request by a share, in this process alone: three accounts that have one, and a price of all three
//! resources, on one thread.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use hdrhistogram::Histogram;
use quota_client::{CheckMode, CheckSettings, Client, Cost, Decision, Request};
use quota_tests::server::{MEMORY, ServerProcess};
use quota_tests::wait::PATIENCE;
use tokio::runtime::Builder;

use crate::plan::Plan;
use crate::report::{Aim, Report, Spread};

/// Requests between two looks of the background task at what there is to report, which is no part of a check.
const BATCH: u32 = 1_000;

/// Requests whose allocations are counted.
const COUNTED: usize = 200;

/// What a round gave.
struct Measured {
    /// In nanoseconds.
    latencies: Histogram<u64>,
    per_second: f64,
    allocations: f64,
}

pub(crate) async fn measure(report: &mut Report, plan: &Plan) {
    let resources = ["REPO", "USER", "IP"].into_iter().flat_map(|kind| {
        ["CPU", "MEMORY", "NETWORK"].map(|resource| format!("QUOTA__LIMITS__{kind}__{resource}"))
    });
    let settings: Vec<String> =
        resources.flat_map(|limit| ["INITIAL", "MAX"].map(|most| format!("{limit}__{most}"))).collect();
    let settings = settings.iter().map(|key| (key.as_str(), "unlimited"));
    let settings: Vec<_> = settings.chain([("QUOTA__STORE__URL", MEMORY)]).collect();
    let server = ServerProcess::start(&settings).await;
    let (address, requests) = (server.grpc_address(), plan.local_requests);
    let mut rounds = Vec::new();
    for _ in 0..plan.check_rounds {
        let round = tokio::task::spawn_blocking(move || round(address, requests));
        rounds.push(round.await.expect("no panic"));
    }
    let section =
        report.section(format!("Admitted by a share, in this process: {requests} requests, one thread"));
    let of = |figure: &dyn Fn(&Measured) -> f64| Spread::of(rounds.iter().map(figure));
    let quantile = |quantile| move |of: &Measured| of.latencies.value_at_quantile(quantile) as f64;
    section.figure("admit.warm.p50_ns", "p50 ns", of(&quantile(0.5)));
    section.aim(Aim::AtMost(250.0));
    section.figure("admit.warm.p99_ns", "p99 ns", of(&quantile(0.99)));
    section.aim(Aim::AtMost(1_000.0));
    section.figure(
        "admit.warm.per_second",
        "admitted and ended, a second of a core",
        of(&|of| of.per_second),
    );
    section.aim(Aim::AtLeast(4e6));
    section.figure("admit.warm.allocations", "allocations of one, the middle", of(&|of| of.allocations));
    section.aim(Aim::Exactly(0.0));
}

fn round(address: SocketAddr, requests: u32) -> Measured {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let within = runtime.enter();
    let client = Client::builder()
        .endpoints([format!("http://{address}")])
        .node("gitaly-01")
        .deadline(PATIENCE)
        .checks(CheckSettings { mode: CheckMode::Local, ..CheckSettings::default() })
        .build()
        .expect("a client");
    drop(within);
    let price = Cost::ZERO.with_cpu_micros(1).and_then(|price| price.with_memory_byte_seconds(1 << 10));
    let price = price.and_then(|price| price.with_network_bytes(1)).expect("a price");
    let request = Request::rpc("/gitaly.CommitService/GetTreeEntries")
        .repo("project-42")
        .user("user-7")
        .ip([203, 0, 113, 7].into())
        .price(price);
    runtime.block_on(async {
        while client.stats().allowed_by_share < u64::from(BATCH) {
            admit(&client, &request).await;
            tokio::task::yield_now().await;
        }
        let mut latencies = Histogram::new(3).expect("a histogram");
        let mut busy = Duration::ZERO;
        for _ in 0..requests.div_ceil(BATCH) {
            let began = Instant::now();
            for _ in 0..BATCH {
                admit(&client, &request).await;
            }
            busy += began.elapsed();
            tokio::task::yield_now().await;
            for _ in 0..BATCH {
                let asked = Instant::now();
                let decision = client.admit(&request).await;
                let took = u64::try_from(asked.elapsed().as_nanos()).expect("a time within reach");
                latencies.record(took).expect("room for any time");
                drop(decision);
            }
            tokio::task::yield_now().await;
        }
        let admitted = f64::from(requests.div_ceil(BATCH) * BATCH);
        let allocations = allocations(&client, &request).await;
        Measured { latencies, per_second: admitted / busy.as_secs_f64(), allocations }
    })
}

async fn admit(client: &Client, request: &Request) {
    let decision = client.admit(request).await;
    assert!(matches!(decision, Decision::Allow(_)), "no limit is near");
}

/// The middle of some requests that are admitted at once, without their ends.
async fn allocations(client: &Client, request: &Request) -> f64 {
    let mut counts = Vec::with_capacity(COUNTED);
    while counts.len() < COUNTED {
        let mut decision = None;
        let measured = allocation_counter::measure(|| decision = client.admit(request).now_or_never());
        if matches!(decision, Some(Decision::Allow(_))) {
            counts.push(measured.count_total);
        } else {
            // There is no share at the moment.
            admit(client, request).await;
        }
        tokio::task::yield_now().await;
    }
    counts.sort_unstable();
    counts[COUNTED / 2] as f64
}
