use std::process::Stdio;

use quota_client::{Client, Request};

use super::*;

/// Longer than anything takes that is not stuck.
const LONG: Duration = Duration::from_secs(20);

/// Shorter than any test waits.
const SHORT: Duration = Duration::from_millis(20);

async fn git() -> Git {
    let quota = Client::builder().endpoints(["http://127.0.0.1:1"]).build().unwrap();
    let meter = quota.meter(&Request::rpc("/x").user("alice"));
    Git::new(&quota, meter, None).await
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

async fn run<I: AsyncRead + Send + 'static>(
    children: &Children,
    script: &str,
    input: I,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<I> {
    let started = children.run(git().await, shell(script), input, String::new());
    started.unwrap_or_else(|error| panic!("{error}"))
}

async fn assert_all_reaped(children: &Children) {
    timeout(LONG, children.all_reaped()).await.unwrap();
}

#[tokio::test]
async fn f29_a_client_that_takes_nothing_is_given_up_and_told_so() {
    let children = Children::new(SHORT);
    let output = run(&children, "exec cat /dev/zero", tokio::io::empty()).await;
    assert_all_reaped(&children).await;
    let chunks: Vec<_> = output.collect().await;
    assert!(chunks.len() <= 2 && chunks.last().unwrap().is_err(), "{} chunks", chunks.len());
}

#[tokio::test]
async fn a_client_that_sends_nothing_is_given_up_and_told_so() {
    let children = Children::new(SHORT);
    let (_silent, input) = tokio::io::duplex(1);
    let output = run(&children, "trap '' HUP TERM; cat; while :; do :; done", input).await;
    assert_all_reaped(&children).await;
    let chunks: Vec<_> = output.collect().await;
    assert!(chunks.last().unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_git_is_not_idle() {
    let children = Children::new(IDLE);
    let folder = tempfile::tempdir().unwrap();
    let go_on = folder.path().join("go-on");
    let script = format!("echo at work; until [ -e {} ]; do :; done; echo done", go_on.display());
    let mut output = pin!(run(&children, &script, tokio::io::empty()).await);
    assert_eq!(output.next().await.unwrap().unwrap(), "at work\n");
    tokio::time::advance(IDLE * 10).await;
    std::fs::write(go_on, "").unwrap();
    assert_eq!(output.next().await.unwrap().unwrap(), "done\n");
    assert!(output.next().await.is_none());
}

#[tokio::test]
async fn all_are_ended_when_told_whatever_they_wait_for() {
    let children = Children::new(IDLE);
    let (_silent, input) = tokio::io::duplex(1);
    let _unread = run(&children, "exec cat /dev/zero", tokio::io::empty()).await;
    let _unfed = run(&children, "exec cat", input).await;
    let mut closed = pin!(run(&children, "exec >&-; while :; do :; done", tokio::io::empty()).await);
    assert!(closed.next().await.is_none(), "its output has ended, though not the process");
    children.end_all();
    assert_all_reaped(&children).await;
    let _late = run(&children, "exec cat /dev/zero", tokio::io::empty()).await;
    assert_all_reaped(&children).await;
}
