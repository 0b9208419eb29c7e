//! What arrives at the gRPC port and is no message of the service.

use quota_tests::wait::PATIENCE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Status};

use crate::victim::Victim;

/// Bytes as they are.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, bytes: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put_slice(buffer, &bytes);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        let length = bytes::Buf::remaining(buffer);
        bytes::Buf::advance(buffer, length);
        Ok(Some(()))
    }
}

pub(crate) async fn call(victim: &Victim, path: &str, message: &[u8]) -> Result<(), Status> {
    let address = format!("http://{}", victim.server.grpc_address());
    let channel = tonic::transport::Endpoint::from_shared(address).unwrap().connect_lazy();
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.unwrap();
    let path = http::uri::PathAndQuery::try_from(path).unwrap();
    grpc.unary(tonic::Request::new(message.to_vec()), path, Raw).await.map(|_| ())
}

const CHECK: &str = "/quota.v1.QuotaService/Check";

#[tokio::test]
async fn broken_messages_are_errors() {
    let mut victim = Victim::in_memory().await;
    // Field 3 is the accounts, of which field 2 is the user.
    call(&victim, CHECK, b"\x1a\x03\x12\x01u").await.expect("the well-formed message");
    let before = victim.server.http.account("user", "u").await.text().to_owned();
    for (what, message) in [
        ("not UTF-8", &b"\x1a\x03\x12\x01\xff"[..]),
        ("cut off", b"\x1a\x05\x12\x03u"),
        ("a length of 2^64 - 1", b"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("a number where a message belongs", b"\x18\x01"),
        ("no tag", b"\x00\x00\x00"),
        ("noise", b"\xde\xad\xbe\xef\xde\xad\xbe\xef"),
    ] {
        let status = call(&victim, CHECK, message).await.expect_err(what);
        assert!(matches!(status.code(), Code::Internal | Code::InvalidArgument), "{what}: {status:?}");
    }
    assert_eq!(victim.server.http.account("user", "u").await.text(), before);
    victim.assert_sound().await;
}

#[tokio::test]
async fn other_protocols_end_their_own_connection_only() {
    let mut victim = Victim::in_memory().await;
    for address in [victim.server.grpc_address(), victim.server.http.address()] {
        for noise in [
            &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
            b"\0\0\0\0\0\0\0\0",
            b"PING\r\n\r\n",
            b"GET /\r\n\r\n",
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(noise).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut rest = Vec::new();
            // Whether it is told off or cut off: the connection ends.
            let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
            assert!(ended.is_ok(), "{noise:?} holds a connection");
        }
    }
    victim.assert_untouched("noise").await;
    victim.assert_sound().await;
}
