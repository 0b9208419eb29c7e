//! The service under test: in this process, or the binary as a child.

use std::net::SocketAddr;
use std::ops::Deref;

use quota_core::Resource;
use quota_proto::v1::quota_service_client::QuotaServiceClient;
use quota_server::Server;
use quota_server::config::Config;
use serde_json::Value;
use tonic::transport::{Channel, Endpoint};

use crate::http::Http;
use crate::process::{Process, Program};

/// The store of a server that shares nothing.
pub const MEMORY: &str = "memory://";

/// Where the deadline of the store is not the subject: no machine is so slow.
const DEADLINE: &str = "5s";

/// A client of the gRPC API.
pub type Grpc = QuotaServiceClient<Channel>;

/// Clients of one server, for both protocols.
#[derive(Clone, Debug)]
pub struct Clients {
    /// HTTP.
    pub http: Http,
    /// gRPC; cloned for each call, since a call borrows it.
    pub grpc: Grpc,
    /// The connection of `grpc`, for further services on it.
    pub channel: Channel,
}

impl Clients {
    fn new(http: SocketAddr, grpc: SocketAddr) -> Self {
        let channel = Endpoint::from_shared(format!("http://{grpc}")).expect("an address").connect_lazy();
        Self { http: Http::new(http), grpc: Grpc::new(channel.clone()), channel }
    }
}

/// A server in this process, on free ports.
pub struct TestServer {
    server: Server,
    clients: Clients,
}

impl TestServer {
    /// Starts one on a store, with further settings in lines such as `limits.user.cpu.initial = "10s"`. Limits that these
    /// name no rule for stay as they are set.
    pub async fn start(store: &str, settings: &str) -> Self {
        let rules: String = Resource::ALL
            .iter()
            .map(|resource| format!("adapt.{resource}.rule = "))
            .filter(|rule| !settings.contains(rule.as_str()))
            .map(|rule| format!("{rule}\"fixed\"\n"))
            .collect();
        let text = format!(
            "http.listen = \"127.0.0.1:0\"\ngrpc.listen = \"127.0.0.1:0\"\n\
             store.url = \"{store}\"\nstore.deadline = \"{DEADLINE}\"\n{rules}{settings}"
        );
        let config = Config::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let server = Server::start(config).await.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let clients = Clients::new(server.http_address(), server.grpc_address());
        Self { server, clients }
    }

    /// Where gRPC is answered.
    pub fn grpc_address(&self) -> SocketAddr {
        self.server.grpc_address()
    }

    /// Stops it as the binary does.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

impl Deref for TestServer {
    type Target = Clients;

    fn deref(&self) -> &Clients {
        &self.clients
    }
}

/// The built `quota-server`, with a log to look at.
#[derive(Debug)]
pub struct ServerProcess {
    /// The child.
    pub process: Process,
    clients: Clients,
    grpc: SocketAddr,
}

impl ServerProcess {
    /// The binary with what every test wants: free ports, a store that may take its time, and limits that stay as they are
    /// set unless a rule is named.
    pub fn program() -> Program {
        let rules = ["QUOTA__ADAPT__CPU__RULE", "QUOTA__ADAPT__MEMORY__RULE", "QUOTA__ADAPT__NETWORK__RULE"];
        let program = Program::of_workspace("quota-server");
        let program = rules.into_iter().fold(program, |program, rule| program.env(rule, "fixed"));
        program
            .env("QUOTA__HTTP__LISTEN", "127.0.0.1:0")
            .env("QUOTA__GRPC__LISTEN", "127.0.0.1:0")
            .env("QUOTA__STORE__DEADLINE", DEADLINE)
    }

    /// Starts it with settings such as `("QUOTA__STORE__URL", "redis://…")`, and waits until it listens.
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        let program = settings.iter().fold(Self::program(), |program, (key, value)| program.env(key, value));
        Self::listening(program.start()).await
    }

    /// Waits until a started binary listens, and reads in its log, of text or JSON, where.
    pub async fn listening(mut process: Process) -> Self {
        let line = process.wait_for_line("listening").await;
        let object: Option<Value> = serde_json::from_str(&line).ok();
        let address = |field: &str| {
            let mut words = line.split_whitespace().rev();
            let value = match &object {
                Some(object) => object[field].as_str(),
                None => words.find_map(|word| word.strip_prefix(field)?.strip_prefix('=')),
            };
            value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {field} in {line:?}"))
        };
        let grpc = address("grpc");
        Self { process, clients: Clients::new(address("http"), grpc), grpc }
    }

    /// Where gRPC is answered.
    pub fn grpc_address(&self) -> SocketAddr {
        self.grpc
    }

    /// The lines of its log that contain `text`.
    pub fn log(&self, text: &str) -> Vec<String> {
        self.process.stderr().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}

impl Deref for ServerProcess {
    type Target = Clients;

    fn deref(&self) -> &Clients {
        &self.clients
    }
}
