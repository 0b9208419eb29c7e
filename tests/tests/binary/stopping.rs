//! How the server stops: at once where nothing is in flight, and within the grace where something is.

use quota_tests::process::Signal;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const BODY: &str = r#"{"accounts":{"user":"alice"}}"#;

/// A request that the server waits for: it has said that it wants the body.
async fn in_flight(server: &ServerProcess) -> TcpStream {
    let mut stream = TcpStream::connect(server.http.address()).await.unwrap();
    let head = format!(
        "POST /v1/check HTTP/1.1\r\nhost: quota\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        BODY.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

async fn rest(mut stream: TcpStream) -> String {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    String::from_utf8(rest).unwrap()
}

#[tokio::test]
async fn an_idle_server_stops_when_told() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = ServerProcess::start(&[("QUOTA__SHUTDOWN__GRACE", "10m")]).await;
        // Idle connections are no reason to stay.
        assert_eq!(server.http.get("/healthz").await.status, 200);
        server.process.signal(signal);
        assert_eq!(server.process.wait_for_exit().await.code(), Some(0));
        assert_eq!(server.log("cut off"), Vec::<String>::new());
    }
}

#[tokio::test]
async fn while_it_drains_it_takes_requests_and_says_that_it_is_not_ready() {
    let mut server = ServerProcess::start(&[("QUOTA__SHUTDOWN__DRAIN", "10m")]).await;
    assert_eq!(server.http.get("/readyz").await.status, 200);
    server.process.signal(Signal::TERM);
    let unready = until(PATIENCE, "it is not ready", async || {
        let answer = server.http.get("/readyz").await;
        (answer.status == 503).then_some(answer)
    });
    assert!(unready.await.text().contains("draining"));
    assert_eq!(server.http.post_bytes("/v1/check", BODY).await.status, 200);
}

#[tokio::test]
async fn a_request_in_flight_is_answered_and_no_other_is_taken() {
    let mut server = ServerProcess::start(&[("QUOTA__SHUTDOWN__GRACE", "10m")]).await;
    let mut stream = in_flight(&server).await;
    server.process.signal(Signal::TERM);
    server.process.wait_for_line("stopping").await;
    for address in [server.http.address(), server.grpc_address()] {
        until(PATIENCE, "the port is closed", async || TcpStream::connect(address).await.err()).await;
    }
    stream.write_all(BODY.as_bytes()).await.unwrap();
    let answer = rest(stream).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains(r#""decision":"allow""#),
        "{answer}"
    );
    assert_eq!(server.process.wait_for_exit().await.code(), Some(0));
    assert_eq!(server.log("cut off"), Vec::<String>::new());
}

#[tokio::test]
async fn a_request_that_takes_longer_than_the_grace_is_cut_off() {
    let mut server = ServerProcess::start(&[("QUOTA__SHUTDOWN__GRACE", "100ms")]).await;
    let stream = in_flight(&server).await;
    server.process.signal(Signal::TERM);
    assert_eq!(server.process.wait_for_exit().await.code(), Some(0));
    assert_eq!(rest(stream).await, "");
    assert_eq!(server.log("requests in flight were cut off grace=100ms").len(), 1);
}
