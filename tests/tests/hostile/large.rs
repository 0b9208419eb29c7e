//! Requests that are too large to be read.

use std::net::SocketAddr;

use quota_tests::wait::PATIENCE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::Code;

use crate::messages::call;
use crate::victim::Victim;

const CHUNK: usize = 1 << 16;
const BODY: usize = 100 << 20;

/// Sends a head and then so many chunks of a body, as far as the server takes them, and returns what it answers.
///
/// Not by a client library: the server answers and closes while the body is on its way.
async fn send(address: SocketAddr, head: &str, chunk: &[u8], chunks: usize) -> (String, usize) {
    let (mut reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
    let writing = async {
        let mut sent = 0;
        if writer.write_all(head.as_bytes()).await.is_ok() {
            while sent < chunks && writer.write_all(chunk).await.is_ok() {
                sent += 1;
            }
        }
        sent
    };
    let reading = async {
        let mut answer = Vec::new();
        // The answer may be followed by a reset, since the body was not read to its end.
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = reader.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..length]);
        }
        String::from_utf8_lossy(&answer).into_owned()
    };
    let (sent, answer) = tokio::time::timeout(PATIENCE, async { tokio::join!(writing, reading) })
        .await
        .expect("an answer in time");
    (answer, sent)
}

fn assert_too_large((answer, sent): (String, usize)) {
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer:?}");
    assert!(answer.contains("content-type: application/problem+json"), "{answer}");
    assert!(answer.contains("body: must be at most 4194304 bytes"), "{answer}");
    assert!(sent < BODY / CHUNK, "it took all of the body");
}

#[tokio::test]
async fn a_body_of_100_mib_is_refused_before_it_is_read() {
    let mut victim = Victim::in_memory().await;
    let address = victim.server.http.address();
    let body = vec![b' '; CHUNK];
    for path in ["/v1/check", "/v1/report"] {
        let head = format!("POST {path} HTTP/1.1\r\nhost: quota\r\ncontent-length: {BODY}\r\n\r\n");
        assert_too_large(send(address, &head, &body, BODY / CHUNK).await);
        let head = format!("POST {path} HTTP/1.1\r\nhost: quota\r\ntransfer-encoding: chunked\r\n\r\n");
        let chunk = [format!("{CHUNK:x}\r\n").as_bytes(), &body, b"\r\n"].concat();
        assert_too_large(send(address, &head, &chunk, BODY / CHUNK).await);
    }
    victim.assert_untouched("large bodies").await;
    victim.assert_sound().await;
}

#[tokio::test]
async fn a_body_just_within_the_bound_is_read() {
    let victim = Victim::in_memory().await;
    let most = 4 << 20;
    let check = r#"{"accounts":{"user":"u"},"price":{}}"#;
    let padded = |length: usize| check.to_owned() + &" ".repeat(length - check.len());
    assert_eq!(victim.server.http.post_bytes("/v1/check", padded(most)).await.status, 200);
    assert_eq!(victim.server.http.post_bytes("/v1/check", padded(most + 1)).await.status, 413);
}

#[tokio::test]
async fn a_head_of_a_mebibyte_is_refused() {
    let mut victim = Victim::in_memory().await;
    let address = victim.server.http.address();
    let long = "x".repeat(1 << 20);
    for head in [
        format!("GET /v1/accounts/user/{long} HTTP/1.1\r\nhost: quota\r\n\r\n"),
        format!("GET /v1/backoff?user={long} HTTP/1.1\r\nhost: quota\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nhost: quota\r\nx: {long}\r\n\r\n"),
    ] {
        let (answer, _) = send(address, &head, b"", 0).await;
        let refused = ["HTTP/1.1 414 ", "HTTP/1.1 431 "].iter().any(|status| answer.starts_with(status));
        assert!(refused, "{answer:?}");
    }
    victim.assert_sound().await;
}

/// Millions of charges of two or three bytes each would take hundreds of MiB.
#[tokio::test]
async fn a_report_of_millions_of_empty_charges_is_refused_before_it_is_built() {
    let mut victim = Victim::in_memory().await;
    let before = victim.server.process.peak();
    let (most, empty) = (4 << 20, "{},");
    let report = format!("{{\"charges\":[{}{{}}]}}", empty.repeat(most / empty.len() - 8));
    victim.refuses("/v1/report", report, "charges").await;
    let report = b"\x2a\x00".repeat(most / 2 - 8);
    // The same as what a session carries: a message in a message.
    let mut carried = vec![0x12];
    prost::encoding::encode_varint(report.len() as u64, &mut carried);
    carried.extend_from_slice(&report);
    for (method, message) in [("Report", &report), ("Session", &carried)] {
        let path = format!("/quota.v1.QuotaService/{method}");
        let status = call(&victim, &path, message).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{method}: {status:?}");
    }
    let grown = victim.server.process.peak().saturating_sub(before);
    // A few copies of what was sent, and none of what it would become.
    assert!(grown < 64 << 10, "{grown} KiB");
    victim.assert_sound().await;
}
