//! HTTP/2 frame by frame (RFC 9113), as no client library would send it.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A header, written out (RFC 7541, 6.2.2).
fn header(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        assert!(text.len() < 127);
        [&[text.len() as u8], text.as_bytes()].concat()
    };
    [&[0][..], &text(name), &text(value)].concat()
}

/// The headers of a call of this method.
pub(crate) fn headers(path: &str) -> Vec<u8> {
    let all = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "quota"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    all.into_iter().flat_map(|(name, value)| header(name, value)).collect()
}

/// The begin of a call, whose message is to follow.
pub(crate) fn call(stream: u32, path: &str) -> Vec<u8> {
    frame(1, END_HEADERS, stream, &headers(path))
}

/// The headers of a call that never end.
pub(crate) fn endless_headers(stream: u32, path: &str) -> Vec<u8> {
    frame(1, 0, stream, &headers(path))
}

pub(crate) fn continuation(stream: u32) -> Vec<u8> {
    frame(9, 0, stream, &[header("x", &"y".repeat(100)).repeat(100)].concat())
}

/// More of a call.
pub(crate) fn data(stream: u32, payload: &[u8]) -> Vec<u8> {
    frame(0, 0, stream, payload)
}

/// An empty message, which ends the call.
pub(crate) fn message(stream: u32) -> Vec<u8> {
    frame(0, END_STREAM, stream, &[0; 5])
}

pub(crate) fn reset(stream: u32) -> Vec<u8> {
    frame(3, 0, stream, &8_u32.to_be_bytes())
}

pub(crate) fn ping() -> Vec<u8> {
    frame(6, 0, 0, &[7; 8])
}

pub(crate) fn settings() -> Vec<u8> {
    frame(4, 0, 0, &[])
}

/// A connection after its preface.
pub(crate) async fn connect(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&[PREFACE, &settings()].concat()).await.unwrap();
    stream
}

/// How many frames of each kind came.
pub(crate) type Counts = [usize; 256];

/// Reads what comes until that is enough, or the connection ends.
pub(crate) async fn count(reader: &mut OwnedReadHalf, is_enough: impl Fn(&Counts) -> bool) -> Counts {
    let (mut counts, mut head) = ([0; 256], [0; 9]);
    while !is_enough(&counts) && reader.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        if reader.read_exact(&mut payload).await.is_err() {
            break;
        }
        counts[usize::from(head[3])] += 1;
    }
    counts
}
