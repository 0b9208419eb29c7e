//! A token in a file is replaced while the server runs.

use std::fs;

use quota_tests::server::{MEMORY, ServerProcess, TestServer};
use quota_tests::wait::{PATIENCE, until};

use crate::grpc::call;
use crate::tokens::configured;

const OLD: &str = "t0ken-that-was-first";
const NEW: &str = "t0ken-that-comes-next";

#[tokio::test]
async fn a_new_token_is_in_force_soon_after_its_file_was_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (path, next) = (folder.path().join("token"), folder.path().join("next"));
    fs::write(&path, OLD).unwrap();
    let server = TestServer::start(MEMORY, &configured("rails", "reader", &format!("file = {path:?}"))).await;
    let status = async |token: &str| server.http.with_token(token).get("/v1/nodes").await.status;
    assert_eq!((status(OLD).await, status(NEW).await), (200, 401));

    fs::write(&next, format!("{NEW}\n")).unwrap();
    fs::rename(&next, &path).unwrap();
    until(PATIENCE, "the new token is known", async || (status(NEW).await == 200).then_some(())).await;
    assert_eq!(status(OLD).await, 401);
}

#[tokio::test]
async fn a_stream_ends_when_its_reader_s_token_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, OLD).unwrap();
    let server = TestServer::start(MEMORY, &configured("rails", "reader", &format!("file = {path:?}"))).await;
    let mut followed = server.http.with_token(OLD).events("/v1/denials/stream").await;
    fs::write(&path, NEW).unwrap();
    let ended = tokio::time::timeout(PATIENCE, followed.next()).await;
    assert!(ended.expect("an end").is_none());
}

#[tokio::test]
async fn tokens_are_in_no_line_of_the_log_and_in_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (path, config) = (folder.path().join("token"), folder.path().join("quota.toml"));
    fs::write(&path, OLD).unwrap();
    fs::write(&config, configured("rails", "reader", &format!("file = {path:?}"))).unwrap();
    let mut server = ServerProcess::listening(
        ServerProcess::program().arg("--config").arg(&config).env("RUST_LOG", "trace").start(),
    )
    .await;
    for (token, status) in [(OLD, 200), (NEW, 401)] {
        assert_eq!(server.http.with_token(token).get("/v1/nodes").await.status, status);
        let answer = call(&server, "/quota.v1.QuotaService/ListNodes", Some(token)).await;
        assert_eq!(answer.is_ok(), status == 200);
        assert!(!server.http.get("/metrics").await.text().contains(token));
    }
    fs::write(&path, "t0ken broken").unwrap();
    server.process.wait_for_line("the file of a token cannot be used").await;
    assert_eq!(server.http.with_token(OLD).get("/v1/nodes").await.status, 200, "the last stays in force");
    fs::write(&path, NEW).unwrap();
    server.process.wait_for_line("a new token is in force").await;
    assert!(!server.process.stderr().contains("t0ken"), "{}", server.process.stderr());
}

#[tokio::test]
async fn a_file_without_a_token_stops_the_start_and_is_told_by_check_config() {
    let folder = tempfile::tempdir().unwrap();
    let (path, config) = (folder.path().join("token"), folder.path().join("quota.toml"));
    fs::write(&path, "short").unwrap();
    fs::write(&config, configured("rails", "reader", &format!("file = {path:?}"))).unwrap();
    for (check, code) in [(true, 2), (false, 1)] {
        let program = ServerProcess::program().arg("--config").arg(&config);
        let program = if check { program.arg("--check-config") } else { program };
        let mut process = program.start();
        assert_eq!(process.wait_for_exit().await.code(), Some(code));
        let said = process.stderr();
        let words =
            ["auth.tokens: ", path.to_str().unwrap(), "the first line must be a token of 16 to 1024 bytes"];
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}
