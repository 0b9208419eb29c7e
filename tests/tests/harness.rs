//! Tests of the harness itself: what the other tests stand on.

use std::net::TcpStream;
use std::time::Duration;

use quota_tests::process::{Program, Signal};
use quota_tests::redis::RedisServer;
use quota_tests::wait::{PATIENCE, until};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, Client, RedisResult};

async fn ping(connection: &mut MultiplexedConnection) -> RedisResult<String> {
    redis::cmd("PING").query_async(connection).await
}

async fn connect(url: String) -> RedisResult<MultiplexedConnection> {
    Client::open(url)?.get_multiplexed_async_connection().await
}

#[tokio::test]
async fn servers_answer_side_by_side_and_stop_when_dropped() {
    let (one, two) = tokio::join!(RedisServer::start(), RedisServer::start());
    assert_ne!(one.port(), two.port());
    let () = one.client().await.set("key", 1).await.unwrap();
    assert!(!two.client().await.exists::<_, bool>("key").await.unwrap());

    let port = one.port();
    drop(one);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert_eq!(ping(&mut two.client().await).await.unwrap(), "PONG");
}

#[tokio::test]
async fn further_arguments_reach_the_server() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru"]).await;
    let policy: Vec<String> = redis::cmd("CONFIG")
        .arg("GET")
        .arg("maxmemory-policy")
        .query_async(&mut server.client().await)
        .await
        .unwrap();
    assert_eq!(policy, ["maxmemory-policy", "allkeys-lru"]);
}

#[tokio::test]
async fn a_killed_server_comes_back_empty_on_the_same_port() {
    let mut server = RedisServer::start().await;
    let (port, url) = (server.port(), server.url());
    let () = server.client().await.set("key", 1).await.unwrap();

    server.kill().await;
    assert!(connect(url.clone()).await.is_err());

    server.restart().await;
    assert_eq!(server.port(), port);
    assert!(!connect(url).await.unwrap().exists::<_, bool>("key").await.unwrap());
}

#[tokio::test]
async fn data_outlive_a_crash_only_where_they_are_written() {
    let mut server = RedisServer::options().appendonly().start().await;
    let () = server.client().await.set("key", 1).await.unwrap();
    server.kill().await;
    server.restart().await;
    assert!(server.client().await.exists::<_, bool>("key").await.unwrap());
}

#[tokio::test]
async fn a_paused_server_answers_once_it_goes_on() {
    let mut server = RedisServer::start().await;
    let mut connection = server.client().await;
    server.pause().await;
    let mut answer = std::pin::pin!(ping(&mut connection));
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut answer).await.is_err());
    server.resume().await;
    assert_eq!(answer.await.unwrap(), "PONG");
}

#[tokio::test]
async fn a_paused_server_can_be_restarted() {
    let mut server = RedisServer::start().await;
    server.pause().await;
    server.restart().await;
    assert_eq!(ping(&mut server.client().await).await.unwrap(), "PONG");
}

#[tokio::test]
async fn the_password_is_asked_for() {
    let server = RedisServer::options().password("secret").start().await;
    assert_eq!(ping(&mut connect(server.url()).await.unwrap()).await.unwrap(), "PONG");
    assert!(connect(server.url().replace("secret", "wrong")).await.is_err());
}

#[tokio::test]
async fn an_acl_user_may_do_only_what_the_rules_say() {
    let server = RedisServer::options().acl_user("quota", "secret", "~q1:* +@all").start().await;
    let mut user = connect(server.url()).await.unwrap();
    let () = user.set("q1:key", 1).await.unwrap();
    assert_eq!(user.set::<_, _, ()>("other", 1).await.unwrap_err().code(), Some("NOPERM"));
    let () = server.client().await.set("other", 1).await.unwrap();
}

#[tokio::test]
async fn tls_is_spoken_and_the_authority_is_needed() {
    let server = RedisServer::options().tls().start().await;
    assert!(server.url().starts_with("rediss://"));
    assert!(server.ca_file().is_file());
    assert_eq!(ping(&mut server.client().await).await.unwrap(), "PONG");
    assert!(connect(server.url()).await.is_err(), "a certificate of an unknown authority was trusted");
    assert!(connect(server.url().replace("rediss", "redis")).await.is_err(), "plain text was answered");
}

#[tokio::test]
#[should_panic(expected = "Bad directive")]
async fn a_server_that_cannot_start_says_why() {
    RedisServer::start_with(&["--no-such-setting", "1"]).await;
}

fn shell(script: &str) -> Program {
    Program::new("sh").args(["-c", script])
}

#[tokio::test]
async fn the_output_of_a_program_is_captured_and_waited_for() {
    let mut program = shell("echo listening on $PORT; echo careful >&2; exit 3").env("PORT", "80").start();
    assert_eq!(program.wait_for_line("listening").await, "listening on 80");
    assert_eq!(program.wait_for_line("careful").await, "careful");
    assert_eq!(program.wait_for_exit().await.code(), Some(3));
    assert_eq!((program.stdout().as_str(), program.stderr().as_str()), ("listening on 80\n", "careful\n"));
}

#[tokio::test]
#[should_panic(expected = "without a line with \"ready\"")]
async fn a_program_that_ends_early_is_not_waited_for() {
    shell("echo almost").start().wait_for_line("ready").await;
}

#[tokio::test]
async fn a_program_hears_signals() {
    let mut program =
        shell("trap 'echo stopped; exit 0' TERM; echo ready; while :; do sleep 0.01; done").start();
    program.wait_for_line("ready").await;
    program.signal(Signal::TERM);
    program.wait_for_line("stopped").await;
    assert!(program.wait_for_exit().await.success());
}

#[tokio::test]
async fn a_dropped_program_is_gone() {
    let program = shell("exec sleep 600").start();
    let entry = std::path::PathBuf::from(format!("/proc/{}", program.id()));
    assert!(entry.exists());
    drop(program);
    assert!(!entry.exists());
}

/// The children's parent is the process, not the test's thread that started them.
#[tokio::test]
async fn a_program_outlives_the_thread_that_started_it() {
    let mut program = std::thread::spawn(|| shell("echo ready; exec sleep 600").start()).join().unwrap();
    program.wait_for_line("ready").await;
    assert!(program.exit_status().is_none());
}

#[test]
#[should_panic(expected = "no-such-program is missing: run `cargo build --workspace` first")]
fn a_binary_that_was_not_built_is_named() {
    Program::of_workspace("no-such-program");
}

#[tokio::test]
#[should_panic(expected = "in vain: the sky falls")]
async fn waiting_ends_at_the_deadline_even_within_a_poll() {
    until(Duration::from_millis(20), "the sky falls", async || std::future::pending::<Option<()>>().await)
        .await;
}

#[tokio::test]
async fn waiting_returns_what_the_condition_gives() {
    let mut polls = 0;
    let value = until(PATIENCE, "three polls", async || {
        polls += 1;
        (polls == 3).then_some("value")
    })
    .await;
    assert_eq!((value, polls), ("value", 3));
}
