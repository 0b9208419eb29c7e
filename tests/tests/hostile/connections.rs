//! Connections that somebody opens who has no token: they are few of an address, and do not last.

use std::net::SocketAddr;

use quota_tests::certificates::Certificates;
use quota_tests::wait::{PATIENCE, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::frames;
use crate::victim::Victim;

/// The most connections of an address.
const MOST: usize = 8;

/// Whether the connection has ended; whatever came before is skipped.
async fn ends(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn who_says_nothing_or_half_of_it_is_cut_off_on_both_ports() {
    let silent = [("QUOTA__HTTP__IDLE_TIMEOUT", "1s"), ("QUOTA__GRPC__IDLE_TIMEOUT", "1s")];
    let mut victim = Victim::with(&silent).await;
    let (http, grpc) = (victim.server.http.address(), victim.server.grpc_address());
    let call = [frames::PREFACE, &frames::settings(), &frames::endless_headers(1, "/x")].concat();
    let beginnings: [(SocketAddr, &[u8]); 7] = [
        (http, b""),
        (http, b"G"),
        (http, b"POST /v1/report HTTP/1.1\r\nhost: quota\r\nx: "),
        (grpc, b""),
        (grpc, &frames::PREFACE[..10]),
        (grpc, frames::PREFACE),
        (grpc, &call),
    ];
    let attack = async {
        for (address, beginning) in beginnings {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(beginning).await.unwrap();
            assert!(ends(&mut stream).await, "{beginning:?} holds a connection");
        }
    };
    victim.bears(8 << 10, attack).await;
}

/// A connection from an address of this machine, as another client.
async fn connect_from(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// Whether the server answers on it.
async fn is_served(stream: &mut TcpStream, asked: &[u8]) -> bool {
    if stream.write_all(asked).await.is_err() {
        return false;
    }
    let mut first = [0];
    timeout(PATIENCE, stream.read_exact(&mut first)).await.expect("an answer, or an end").is_ok()
}

#[tokio::test]
async fn an_address_that_has_all_that_it_may_leaves_the_rest_to_others() {
    const ATTACKER: [u8; 4] = [127, 0, 0, 66];
    let most = MOST.to_string();
    let narrow = ["HTTP", "GRPC"].map(|port| format!("QUOTA__{port}__MAX_CONNECTIONS_PER_ADDRESS"));
    let victim = Victim::with(&narrow.each_ref().map(|name| (&**name, &*most))).await;
    let (http, grpc) = (victim.server.http.address(), victim.server.grpc_address());
    let get = b"GET /healthz HTTP/1.1\r\nhost: quota\r\n\r\n".as_slice();
    let preface = [frames::PREFACE, &frames::settings()].concat();
    for (port, address, asked) in [("http", http, get), ("grpc", grpc, &preface)] {
        let mut held = Vec::new();
        for _ in 0..MOST {
            let mut stream = connect_from(ATTACKER, address).await;
            assert!(is_served(&mut stream, asked).await, "{port}");
            held.push(stream);
        }
        for _ in 0..MOST {
            assert!(!is_served(&mut connect_from(ATTACKER, address).await, asked).await, "{port}");
        }
        assert!(is_served(&mut connect_from([127, 0, 0, 67], address).await, asked).await, "{port}");
        let refused = format!("quota_connections_refused_total{{port=\"{port}\"}} {MOST}");
        let metrics = victim.server.http.get("/metrics").await;
        assert!(metrics.text().lines().any(|line| line == refused), "{refused}: {}", metrics.text());
        drop(held);
        until(PATIENCE, "what has ended makes room", async || {
            is_served(&mut connect_from(ATTACKER, address).await, asked).await.then_some(())
        })
        .await;
    }
}

/// More handshakes than the server once made at a time: who waits behind them would have waited ten seconds for each lot.
#[tokio::test]
async fn handshakes_that_are_not_finished_hold_nobody_up() {
    const STALLED: usize = 300;
    let folder = tempfile::tempdir().unwrap();
    let Certificates { authority, identity } = Certificates::in_folder(folder.path());
    let server = quota_tests::server::TestServer::start(
        quota_tests::server::MEMORY,
        &format!("tls.cert = {:?}\ntls.key = {:?}", identity.cert_file, identity.key_file),
    )
    .await;
    let mut stalled = Vec::new();
    for address in [server.grpc_address(), server.http.address()] {
        for _ in 0..STALLED {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(&[0x16, 3, 1]).await.unwrap();
            stalled.push(stream);
        }
    }
    let client = quota_client::Client::builder()
        .endpoints([format!("https://localhost:{}", server.grpc_address().port())])
        .ca_certificate(std::fs::read(authority.ca_file).unwrap())
        .deadline(PATIENCE)
        .build()
        .unwrap();
    let request = quota_client::Request::rpc("/svc/Method").user("u");
    let quota_client::Decision::Allow(admission) = client.admit(&request).await else { panic!("denied") };
    assert!(admission.checked(), "it was not asked");
    // None of them was given up in the meantime.
    for stream in &mut stalled {
        let mut byte = [0];
        assert!(
            stream.try_read(&mut byte).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        );
    }
}
