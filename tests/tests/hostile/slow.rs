//! Those who take their time: with a body, or with reading what they are answered.

use std::net::SocketAddr;
use std::time::Duration;

use prost::Message as _;
use quota_proto::v1::{Hello, SessionRequest, session_request};
use quota_tests::wait::PATIENCE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::frames;
use crate::victim::Victim;

/// As often something comes, so that no connection is silent.
const PACE: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_body_that_trickles_in_is_given_up() {
    let mut victim = Victim::in_memory().await;
    let (http, grpc) = (victim.server.http.address(), victim.server.grpc_address());
    let over_http = async {
        let (mut reader, mut writer) = TcpStream::connect(http).await.unwrap().into_split();
        let head = "POST /v1/report HTTP/1.1\r\nhost: quota\r\ncontent-length: 1000000\r\n\r\n";
        writer.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        tokio::select! {
            () = async { while writer.write_all(b" ").await.is_ok() { sleep(PACE).await; } } => {}
            read = reader.read_exact(&mut answer) => drop(read.unwrap()),
        }
        assert_eq!(&answer, b"HTTP/1.1 408");
    };
    // Its headers are the answer to a check; those of a session came with its first message, and others end it.
    let check = trickle(grpc, "/quota.v1.QuotaService/Check", Vec::new(), 1);
    let session = trickle(grpc, "/quota.v1.QuotaService/Session", frames::data(1, &hello()), 2);
    let attack = async {
        timeout(PATIENCE, async { tokio::join!(over_http, check, session) }).await.expect("they are given up")
    };
    victim.bears(8 << 10, attack).await;
    victim.assert_untouched("slow bodies").await;
}

/// A call that begins with this, and goes on with a message that never ends, until the server has sent so many headers.
async fn trickle(address: SocketAddr, method: &str, begin: Vec<u8>, headers: usize) {
    let (mut reader, mut writer) = frames::connect(address).await.into_split();
    // A message of 1,000 bytes is to follow.
    let begin = [frames::call(1, method), begin, frames::data(1, &[0, 0, 0, 3, 232])].concat();
    writer.write_all(&begin).await.unwrap();
    let more = async {
        while writer.write_all(&frames::data(1, &[0])).await.is_ok() {
            sleep(PACE).await;
        }
    };
    let answer = frames::count(&mut reader, |counts| counts[1] >= headers);
    let counts = tokio::select! {
        () = more => None,
        counts = answer => Some(counts),
    };
    assert!(counts.is_some_and(|counts| counts[1] >= headers), "{method}: {counts:?}");
}

/// The first message of a session.
fn hello() -> Vec<u8> {
    let hello = Hello { node: "gitaly-01".to_owned(), ..Hello::default() };
    let message = SessionRequest { message: Some(session_request::Message::Hello(hello)) }.encode_to_vec();
    [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat()
}

/// Whether the server gives a connection up, of which nothing is read and on which this is sent again and again.
async fn is_given_up(mut stream: TcpStream, again: &[u8]) -> bool {
    let sending = async { while stream.write_all(again).await.is_ok() {} };
    timeout(PATIENCE, sending).await.is_ok()
}

#[tokio::test]
async fn who_reads_nothing_of_the_answers_is_cut_off() {
    let mut victim =
        Victim::with(&[("QUOTA__HTTP__UNREAD_TIMEOUT", "1s"), ("QUOTA__GRPC__UNREAD_TIMEOUT", "1s")]).await;
    let (http, grpc) = (victim.server.http.address(), victim.server.grpc_address());
    let get = b"GET /openapi.json HTTP/1.1\r\nhost: quota\r\n\r\n".repeat(100);
    let pings = frames::ping().repeat(1000);
    let attack = async {
        let streams = (TcpStream::connect(http).await.unwrap(), frames::connect(grpc).await);
        tokio::join!(is_given_up(streams.0, &get), is_given_up(streams.1, &pings))
    };
    assert_eq!(victim.bears(16 << 10, attack).await, (true, true));
}
