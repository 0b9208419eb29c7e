//! limitador, a server that counts requests in Redis, as a peer: <https://github.com/Kuadrant/limitador>. It is asked as Envoy
//! asks it, over gRPC, so that a caller does the same as for a check.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::ports::Port;
use crate::process::{Process, Program};
use crate::wait::{PATIENCE, until};
use http::uri::PathAndQuery;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tonic::transport::Channel;
use tonic::{IntoRequest as _, Status};
use tonic_prost::ProstCodec;

/// Where counters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In memory alone.
    Memory,
    /// In Redis.
    Redis,
    /// In memory, told to Redis once a second.
    RedisCached,
}

impl Mode {
    /// Each.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Redis, Self::RedisCached];

    /// As its command line calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redis => "redis",
            Self::RedisCached => "redis_cached",
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct Limitador {
    _process: Process,
    /// Where gRPC is answered.
    pub address: SocketAddr,
    _limits: TempDir,
    _ports: [Port; 2],
}

/// More counters than there are accounts: none is evicted.
const COUNTERS: &str = "100000";

impl Limitador {
    /// Starts the built binary with a limit of requests a minute for each of these variables.
    pub async fn start(program: &Path, mode: Mode, redis_url: &str, variables: &[&str], limit: u64) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut limits = String::new();
        for variable in variables {
            write!(
                limits,
                "- namespace: {DOMAIN}\n  max_value: {limit}\n  seconds: 60\n  conditions: []\n  \
                 variables: [\"descriptors[0].{variable}\"]\n"
            )
            .expect("room");
        }
        let file = folder.path().join("limits.yaml");
        std::fs::write(&file, limits).expect("a file of limits");
        let ports = [Port::free(), Port::free()];
        let [grpc, http] = [&ports[0], &ports[1]].map(|port| port.number().to_string());
        let program = Program::new(program)
            .args(["--rls-ip", "127.0.0.1", "--rls-port", &grpc])
            .args(["--http-ip", "127.0.0.1", "--http-port", &http])
            .arg(&file);
        let mut process = match mode {
            Mode::Memory => program.args(["memory", "--cache", COUNTERS]),
            Mode::Redis => program.args(["redis", redis_url]),
            Mode::RedisCached => program.args(["redis_cached", "--max-cached", COUNTERS, redis_url]),
        }
        .start();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports[0].number()));
        until(PATIENCE, "limitador listens", async || {
            assert!(process.exit_status().is_none(), "limitador ended: {}", process.stderr());
            TcpStream::connect(address).await.ok()
        })
        .await;
        Self { _process: process, address, _limits: folder, _ports: ports }
    }

    /// The binary: this, or what was built for release in a source tree.
    pub fn program(path: &Path) -> PathBuf {
        let built = path.join("target/release/limitador-server");
        let program = if path.is_dir() { built } else { path.to_owned() };
        assert!(program.is_file(), "{} is missing: build limitador-server for release", program.display());
        program
    }
}

const DOMAIN: &str = "bench";

/// `envoy.service.ratelimit.v3.RateLimitRequest`, as far as it is needed.
#[derive(Clone, PartialEq, prost::Message)]
struct RateLimitRequest {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(message, repeated, tag = "2")]
    descriptors: Vec<Descriptor>,
    #[prost(uint32, tag = "3")]
    hits_addend: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// `envoy.service.ratelimit.v3.RateLimitResponse`, as far as it is needed.
#[derive(Clone, PartialEq, prost::Message)]
struct RateLimitResponse {
    #[prost(int32, tag = "1")]
    overall_code: i32,
}

/// `RateLimitResponse.Code`.
const OK: i32 = 1;
const OVER_LIMIT: i32 = 2;

/// Asks about a request with these keys and values, which counts where it is allowed.
///
/// # Errors
///
/// What the server answered instead, or that it did not answer.
pub async fn is_allowed(channel: Channel, descriptor: Vec<(&'static str, String)>) -> Result<bool, Status> {
    let entries = descriptor.into_iter().map(|(key, value)| Entry { key: key.to_owned(), value }).collect();
    let descriptors = vec![Descriptor { entries }];
    let request = RateLimitRequest { domain: DOMAIN.to_owned(), descriptors, hits_addend: 1 };
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let codec = ProstCodec::<RateLimitRequest, RateLimitResponse>::default();
    let path = PathAndQuery::from_static("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit");
    let answer = grpc.unary(request.into_request(), path, codec).await?.into_inner();
    match answer.overall_code {
        OK => Ok(true),
        OVER_LIMIT => Ok(false),
        unknown => panic!("no code of an answer: {unknown}"),
    }
}
