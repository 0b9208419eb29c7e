//! Tests of the harness' proxy: that each fault is the fault it says.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::net::Ipv4Addr;
use std::time::Duration;

use quota_tests::proxy::{Fault, Proxy};
use quota_tests::wait::PATIENCE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

/// Long enough for what passes to have passed.
const A_WHILE: Duration = Duration::from_millis(100);

/// A port, and the server's side of each connection to it.
struct Server(TcpListener);

impl Server {
    async fn start() -> Self {
        Self(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap())
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// A connection through a proxy to this server, both ends of it.
    async fn connection(&self, proxy: &Proxy) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port()));
        let (client, server) = tokio::join!(client, self.0.accept());
        (client.unwrap(), server.unwrap().0)
    }
}

async fn server_and_proxy() -> (Server, Proxy) {
    let server = Server::start().await;
    let proxy = Proxy::to(server.port()).await;
    (server, proxy)
}

async fn assert_passes(from: &mut TcpStream, to: &mut TcpStream, bytes: &[u8]) {
    from.write_all(bytes).await.unwrap();
    assert_arrives(to, bytes).await;
}

async fn assert_arrives(to: &mut TcpStream, bytes: &[u8]) {
    let mut read = vec![0; bytes.len()];
    timeout(PATIENCE, to.read_exact(&mut read)).await.expect("bytes that arrive").unwrap();
    assert_eq!(read, bytes);
}

/// Neither bytes nor the connection's end arrive.
async fn assert_silent(to: &mut TcpStream) {
    let read = timeout(A_WHILE, to.read_u8()).await;
    assert!(read.is_err(), "{read:?}");
}

async fn assert_ends(to: &mut TcpStream) {
    let read = timeout(PATIENCE, to.read_u8()).await.expect("the connection's end");
    assert!(read.is_err(), "{read:?}");
}

#[tokio::test]
async fn all_arrives_in_order_both_ways_and_an_end_too() {
    let (server, proxy) = server_and_proxy().await;
    let (mut client, mut served) = server.connection(&proxy).await;
    let long: Vec<u8> = (0..1_000_000).map(|number| (number % 251) as u8).collect();
    let (mut reads, mut writes) = client.split();
    let sent = async {
        writes.write_all(&long).await.unwrap();
        writes.write_all(b"last").await.unwrap();
    };
    let mut arrived = vec![0; long.len() + 4];
    let (_, read) = tokio::join!(sent, served.read_exact(&mut arrived));
    read.unwrap();
    assert!(arrived == [&long[..], b"last"].concat());
    served.write_all(b"reply").await.unwrap();
    let mut reply = [0; 5];
    reads.read_exact(&mut reply).await.unwrap();
    assert_eq!((&reply, proxy.accepted()), (b"reply", 1));
    drop(client);
    assert_ends(&mut served).await;
}

#[tokio::test]
async fn a_delay_holds_each_way_and_keeps_the_order() {
    let (server, proxy) = server_and_proxy().await;
    let (mut client, mut served) = server.connection(&proxy).await;
    let delay = Duration::from_millis(50);
    proxy.set(Fault::Delay(delay));
    for _ in 0..2 {
        let started = Instant::now();
        client.write_all(b"one").await.unwrap();
        client.write_all(b"two").await.unwrap();
        assert_arrives(&mut served, b"onetwo").await;
        assert!(started.elapsed() >= delay);
        std::mem::swap(&mut client, &mut served);
    }
}

#[tokio::test]
async fn what_was_frozen_arrives_when_the_fault_ends() {
    let (server, proxy) = server_and_proxy().await;
    let (mut client, mut served) = server.connection(&proxy).await;
    proxy.set(Fault::Freeze);
    let (mut later, mut served_later) = server.connection(&proxy).await;
    for (from, to) in [(&mut client, &mut served), (&mut served_later, &mut later)] {
        from.write_all(b"held").await.unwrap();
        assert_silent(to).await;
    }
    drop(client);
    assert_silent(&mut served).await;
    proxy.set(Fault::None);
    assert_arrives(&mut served, b"held").await;
    assert_ends(&mut served).await;
    assert_arrives(&mut later, b"held").await;
    assert_passes(&mut later, &mut served_later, b"on").await;
}

#[tokio::test]
async fn stranded_connections_stay_open_and_dead_and_new_ones_are_good() {
    let (server, proxy) = server_and_proxy().await;
    let (mut client, mut served) = server.connection(&proxy).await;
    proxy.strand();
    let (mut later, mut served_later) = server.connection(&proxy).await;
    client.write_all(b"lost").await.unwrap();
    assert_passes(&mut later, &mut served_later, b"good").await;
    assert_silent(&mut served).await;
}

#[tokio::test]
async fn cut_connections_end_on_both_sides_and_new_ones_are_good() {
    let (server, proxy) = server_and_proxy().await;
    let (mut client, mut served) = server.connection(&proxy).await;
    proxy.cut();
    assert_ends(&mut client).await;
    assert_ends(&mut served).await;
    let (mut later, mut served_later) = server.connection(&proxy).await;
    assert_passes(&mut later, &mut served_later, b"good").await;
}

/// One direction is lost, the other passes, and a stream with a gap is never gone on with.
#[tokio::test]
async fn one_direction_is_dropped_and_its_connections_end_with_the_fault() {
    let (server, proxy) = server_and_proxy().await;
    for fault in [Fault::DropRequests, Fault::DropReplies] {
        let (mut client, mut served) = server.connection(&proxy).await;
        let (mut idle, mut served_idle) = server.connection(&proxy).await;
        proxy.set(fault);
        let (lost_from, lost_to) = match fault {
            Fault::DropRequests => (&mut client, &mut served),
            _ => (&mut served, &mut client),
        };
        lost_from.write_all(b"lost").await.unwrap();
        assert_silent(lost_to).await;
        assert_passes(lost_to, lost_from, b"good").await;
        proxy.set(Fault::None);
        assert_ends(&mut client).await;
        assert_ends(&mut served).await;
        assert_passes(&mut idle, &mut served_idle, b"nothing was lost").await;
        assert_passes(&mut served_idle, &mut idle, b"nothing was lost").await;
    }
}

#[tokio::test]
async fn the_reply_to_one_request_is_dropped_with_its_connection() {
    let (server, proxy) = server_and_proxy().await;
    let (mut client, mut served) = server.connection(&proxy).await;
    let (mut other, mut served_other) = server.connection(&proxy).await;
    proxy.drop_reply_to("SCRIPT");
    assert_passes(&mut other, &mut served_other, b"a request").await;
    // In two pieces.
    assert_passes(&mut client, &mut served, b"a SCR").await;
    assert_passes(&mut client, &mut served, b"IPT").await;
    assert_passes(&mut other, &mut served_other, b"SCRIPT").await;
    served.write_all(b"reply").await.unwrap();
    assert_ends(&mut client).await;
    assert_passes(&mut served_other, &mut other, b"reply").await;
    assert_eq!(proxy.dropped(), 1);
}

#[tokio::test]
async fn further_connections_lead_elsewhere_and_those_of_now_go_on() {
    let (server, proxy) = server_and_proxy().await;
    let (mut client, mut served) = server.connection(&proxy).await;
    let elsewhere = Server::start().await;
    proxy.lead_to(elsewhere.port());
    let (mut later, mut served_later) = elsewhere.connection(&proxy).await;
    assert_passes(&mut client, &mut served, b"here").await;
    assert_passes(&mut later, &mut served_later, b"there").await;
}
