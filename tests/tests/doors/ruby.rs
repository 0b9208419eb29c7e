//! The Ruby of docs/rails.md, by the scripts beside this.

use std::net::SocketAddr;

use quota_tests::certificates::{Authority, Identity};
use quota_tests::ports::Port;
use quota_tests::process::Program;
use quota_tests::proxy::Proxy;
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, TestServer};

use crate::{World, root};

fn ruby(script: &str) -> Program {
    Program::new("ruby").arg("-w").arg(root().join("tests/tests/doors/ruby").join(script))
}

/// Runs a script, which fails where something is not as it should be.
async fn run(ruby: Program) {
    let mut ruby = ruby.start();
    let status = ruby.wait_for_exit().await;
    assert!(status.success(), "{status}\n{}", ruby.stderr());
}

async fn run_with(script: &str, world: &World, address: SocketAddr) {
    let closed = Port::free();
    let ruby = ruby(script).env("QUOTA_URL", format!("http://{address}"));
    let ruby = ruby.env("QUOTA_PID", world.process.id().to_string());
    run(ruby.env("CLOSED_PORT", closed.number().to_string())).await;
}

async fn run_alone(script: &str) {
    let world = World::new().await;
    run_with(script, &world, world.http.address()).await;
}

#[tokio::test]
async fn it_asks_over_one_connection() {
    let world = World::new().await;
    let proxy = Proxy::to(world.http.address().port()).await;
    run_with("asking.rb", &world, ([127, 0, 0, 1], proxy.port()).into()).await;
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

#[tokio::test]
async fn it_shows_a_token_and_knows_whom_it_asks() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::in_folder(folder.path());
    let Identity { cert_file, key_file } = authority.sign_local(folder.path());
    let token = |role: &str, more: &str| {
        let file = folder.path().join(role);
        std::fs::write(&file, format!("t0ken-of-a-{role}")).unwrap();
        format!("[[auth.tokens]]\nname = \"{role}\"\nrole = \"{role}\"\nfile = {file:?}\n{more}\n")
    };
    let settings = format!(
        "tls.cert = {cert_file:?}\ntls.key = {key_file:?}\n\
         overrides = [{{ kind = \"user\", id = \"mallory\", blocked = true, reason = \"why\" }}]\n{}{}",
        token("reader", ""),
        token("fileserver", "nodes = [\"gitaly-01\"]")
    );
    let server = TestServer::start(MEMORY, &settings).await;
    let url = format!("https://localhost:{}", server.http.address().port());
    run(ruby("secured.rb").env("QUOTA_URL", url).env("QUOTA_CA", &authority.ca_file)).await;
}

#[tokio::test]
async fn a_lost_store_that_lets_nobody_go_on_is_told() {
    let mut redis = RedisServer::start().await;
    let server = TestServer::start(&redis.url(), "store.fail = \"closed\"\n").await;
    redis.kill().await;
    run(ruby("unchecked.rb").env("QUOTA_URL", format!("http://{}", server.http.address()))).await;
}
