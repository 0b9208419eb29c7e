//! What a request allocates does not grow with the number of accounts that the client knows.
#![allow(clippy::expect_used, reason = "tests report by panicking")]

use quota_client::{Client, Decision, Request};
use tokio::runtime::{Builder, Runtime};

/// A client of no service, which knows what so many users used.
fn client(runtime: &Runtime, users: u32) -> Client {
    let _within = runtime.enter();
    let client =
        Client::builder().endpoints(["http://127.0.0.1:1"]).node("gitaly-01").build().expect("a client");
    for user in 0..users {
        let meter = client.meter(&request(user));
        meter.cpu(std::time::Duration::from_micros(1));
    }
    client
}

fn request(user: u32) -> Request {
    Request::rpc("/gitaly.SSHService/SSHUploadPack").repo("project-42").user(format!("user-{user:05}"))
}

/// Allocations of a request by a user that is known, on this thread: nothing else runs on it.
fn allocations(runtime: &Runtime, client: &Client) -> u64 {
    let request = request(7);
    let measured = allocation_counter::measure(|| {
        let Decision::Allow(admission) = runtime.block_on(client.admit(&request)) else { return };
        admission.meter().sent(1);
    });
    measured.count_total
}

#[test]
fn what_a_request_allocates_does_not_grow_with_the_accounts() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let least = |users| {
        let client = client(&runtime, users);
        // The least of several: one may be the probe of whether the service is back, and one may make a map grow.
        (0..20).map(|_| allocations(&runtime, &client)).min()
    };
    let (few, many) = (least(10), least(10_000));
    println!("{few:?} allocations with 10 users, {many:?} with 10,000");
    assert!(few > Some(0), "nothing was measured");
    assert_eq!(few, many);
}
