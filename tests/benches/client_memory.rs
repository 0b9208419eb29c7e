//! What an account takes in `quota-client`, by a counting allocator: requests of many, each asked about, metered and reported.

use std::net::SocketAddr;
use std::time::Duration;

use quota_client::{Client, Decision, Request};
use quota_tests::server::{MEMORY, ServerProcess};
use quota_tests::wait::PATIENCE;
use tokio::runtime::Builder;
use tokio::time::{MissedTickBehavior, interval};

use crate::plan::Plan;
use crate::report::{Aim, Report, Spread};

pub(crate) async fn measure(report: &mut Report, plan: &Plan) {
    let server = ServerProcess::start(&[("QUOTA__STORE__URL", MEMORY)]).await;
    let address = server.grpc_address();
    let (requests, seconds) = (plan.client_accounts, plan.busy_seconds);
    let of = async |seconds| {
        let bytes = tokio::task::spawn_blocking(move || bytes(address, requests, seconds));
        Spread::of([bytes.await.expect("no panic") / (3 * requests) as f64])
    };
    let section = report.section(format!(
        "Memory of an account in quota-client in bytes: {requests} repositories, users and addresses each"
    ));
    section.figure("client_memory.light.bytes", "light: one request", of(1).await);
    section.aim(Aim::AtMost(300.0));
    section.figure(
        "client_memory.busy.bytes",
        format!("busy: a request in each of {seconds} s"),
        of(seconds).await,
    );
    section.aim(Aim::AtMost(1_024.0));
}

/// What a client holds more after so many requests, each of accounts of its own, in each of so many seconds. Everything happens
/// on this thread, whose allocations are counted.
fn bytes(address: SocketAddr, requests: usize, seconds: u32) -> f64 {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = runtime.block_on(async {
        let client = Client::builder()
            .endpoints([format!("http://{address}")])
            .node("gitaly-01")
            .deadline(PATIENCE)
            .build()
            .expect("a client");
        // What it allocates once.
        spend(&client, requests).await;
        reported(&client).await;
        client
    });
    let measured = allocation_counter::measure(|| {
        runtime.block_on(async {
            let mut pace = interval(Duration::from_secs(1));
            pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
            for _ in 0..seconds {
                pace.tick().await;
                for number in 0..requests {
                    spend(&client, number).await;
                }
            }
            reported(&client).await;
        });
    });
    measured.bytes_current as f64
}

/// A request that is admitted, and uses something of all resources.
async fn spend(client: &Client, number: usize) {
    let ip = [10, 1, (number / 250) as u8, (number % 250) as u8 + 1];
    let request = Request::rpc("/gitaly.CommitService/GetTreeEntries")
        .repo(format!("project-{number}"))
        .user(format!("user-{number}"))
        .ip(ip.into());
    let Decision::Allow(admission) = client.admit(&request).await else { panic!("no limit is near") };
    let meter = admission.meter();
    meter.cpu(Duration::from_micros(800));
    meter.memory(1 << 20);
    meter.sent(5_000);
}

/// What waits to be reported is no part of an account.
async fn reported(client: &Client) {
    assert!(client.shutdown(PATIENCE).await, "a service that takes reports");
}
