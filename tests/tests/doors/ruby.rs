//! The Ruby of docs/rails.md, by the scripts beside this.

use std::net::SocketAddr;

use quota_tests::ports::Port;
use quota_tests::process::Program;
use quota_tests::proxy::Proxy;

use crate::{World, root};

/// Runs a script, which fails where something is not as it should be.
async fn run(script: &str, server: &World, address: SocketAddr) {
    let closed = Port::free();
    let mut ruby = Program::new("ruby")
        .arg("-w")
        .arg(root().join("tests/tests/doors/ruby").join(script))
        .env("QUOTA_URL", format!("http://{address}"))
        .env("QUOTA_PID", server.process.id().to_string())
        .env("CLOSED_PORT", closed.number().to_string())
        .start();
    let status = ruby.wait_for_exit().await;
    assert!(status.success(), "{script}: {status}\n{}", ruby.stderr());
}

async fn run_alone(script: &str) {
    let world = World::new().await;
    run(script, &world, world.http.address()).await;
}

#[tokio::test]
async fn it_asks_over_one_connection() {
    let world = World::new().await;
    let proxy = Proxy::to(world.http.address().port()).await;
    run("asking.rb", &world, ([127, 0, 0, 1], proxy.port()).into()).await;
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn it_waits_as_long_as_it_is_told_or_longer_each_time() {
    run_alone("waiting.rb").await;
}

#[tokio::test]
async fn a_service_that_is_away_holds_nobody_up() {
    run_alone("away.rb").await;
}

#[tokio::test]
async fn browsers_are_told_whose_fault_it_is() {
    run_alone("rack.rb").await;
}

#[tokio::test]
async fn a_job_comes_back_when_it_is_told() {
    run_alone("job.rb").await;
}

#[tokio::test]
async fn a_slot_is_held_for_as_long_as_a_block_runs() {
    run_alone("slots.rb").await;
}

#[tokio::test]
async fn the_retry_middleware_of_faraday_waits_as_long_as_it_is_told() {
    run_alone("faraday.rb").await;
}

#[tokio::test]
async fn a_refusal_of_a_fileserver_is_understood() {
    run_alone("grpc.rb").await;
}
