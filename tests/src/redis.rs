//! A real Redis for a test.
//!
//! It runs in a container where a Docker engine answers and has the image [`IMAGE`], and as a local `redis-server`
//! otherwise; `QUOTA_TEST_REDIS=docker` or `=local` insists on one. Nothing is ever pulled. A Cluster and what Sentinels watch
//! are always local processes, whose addresses are the same for each other and for clients.

mod clock;
mod cluster;
mod docker;
mod local;
mod options;
mod sentinel;

use std::env;
use std::net::Ipv4Addr;
use std::path::Path;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult, TlsCertificates, Value};
use tempfile::TempDir;

use crate::certificates::{Certificates, Identity};
use crate::network::Network;
use crate::ports::Port;
use crate::wait::{PATIENCE, until};

pub use cluster::RedisCluster;
pub use docker::IMAGE;
pub use options::RedisOptions;
pub use sentinel::RedisSentinel;

/// A running Redis of the test's own, empty at first and gone when dropped.
#[derive(Debug)]
pub struct RedisServer {
    engine: Engine,
    options: RedisOptions,
    certificates: Option<Certificates>,
    /// Holds the certificates and what the server writes.
    folder: TempDir,
    /// The last field, so that the port is given up after the server has stopped.
    port: Port,
}

#[derive(Debug)]
enum Engine {
    Local(Box<local::Local>),
    Docker(Box<docker::Container>),
}

impl RedisServer {
    /// Starts a Redis without persistence, password or TLS, and waits until it answers.
    pub async fn start() -> Self {
        RedisOptions::default().start().await
    }

    /// The same with further arguments of `redis-server`, such as `["--maxmemory", "10mb"]`.
    pub async fn start_with(args: &[&str]) -> Self {
        RedisOptions::default().args(args).start().await
    }

    /// What to start, to be changed and started.
    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    async fn launch(options: RedisOptions) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = Port::free();
        let certificates = options.tls.then(|| Certificates::in_folder(folder.path()));
        let args = options.command_line(port.number(), certificates.as_ref());
        let engine = if !options.local && in_docker().await {
            let container = docker::Container::start(port.number(), args, certificates.as_ref()).await;
            Engine::Docker(Box::new(container))
        } else {
            let network = if options.own_network { Some(network(&port).await) } else { None };
            let local = local::Local::start(folder.path(), args, options.stepping_clock, network);
            Engine::Local(Box::new(local))
        };
        let mut server = Self { engine, options, certificates, folder, port };
        server.wait_until_ready().await;
        server
    }

    /// The address for a client: with the ACL user's name and password if there is one, else with the password if
    /// there is one; `rediss:` with TLS.
    pub fn url(&self) -> String {
        let credentials = match (&self.options.user, &self.options.password) {
            (Some(user), _) => format!("{}:{}@", user.name, user.password),
            (None, Some(password)) => format!(":{password}@"),
            (None, None) => String::new(),
        };
        self.url_with(&credentials)
    }

    /// The port, the same after a restart.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The file with the certificate authority that signed the server's certificate.
    ///
    /// # Panics
    ///
    /// Panics if the server was started without TLS.
    pub fn ca_file(&self) -> &Path {
        &self.certificates().authority.ca_file
    }

    /// Its certificate, and the authority that signed it.
    ///
    /// # Panics
    ///
    /// Panics if the server was started without TLS.
    pub fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().expect("a server with TLS")
    }

    /// Shows another certificate from now on to who connects. It is told over a connection of before, since a new one may
    /// refuse what is shown.
    pub async fn show(&self, connection: &mut MultiplexedConnection, identity: &Identity) {
        let [cert, key] = [&identity.cert_file, &identity.key_file].map(|file| file.display().to_string());
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg("tls-cert-file").arg(cert).arg("tls-key-file").arg(key);
        set.exec_async(connection).await.expect("a certificate that Redis can read");
    }

    /// The network that it runs in.
    ///
    /// # Panics
    ///
    /// Panics if the server was started without [`RedisOptions::own_network`].
    pub fn network(&self) -> &Network {
        let own = if let Engine::Local(local) = &self.engine { local.network() } else { None };
        own.expect("a server with a network of its own")
    }

    /// A new connection of the default user, who may do everything, whatever ACL user there is.
    pub async fn client(&self) -> MultiplexedConnection {
        self.connect().await.expect("a connection to the test's Redis")
    }

    /// Runs a command whose answer is not of interest.
    pub async fn command(&self, name: &str, args: &[&str]) {
        let done: RedisResult<Value> = redis::cmd(name).arg(args).query_async(&mut self.client().await).await;
        done.unwrap_or_else(|error| panic!("{name} {args:?}: {error}"));
    }

    /// A section of `INFO`.
    pub async fn info(&self, section: &str) -> String {
        redis::cmd("INFO")
            .arg(section)
            .query_async(&mut self.client().await)
            .await
            .expect("a Redis that tells")
    }

    /// Makes it a replica of another, and waits until it has all that the other holds.
    pub async fn follow(&self, primary: &Self) {
        self.command("REPLICAOF", &[&primary.peer_host().await, &primary.port().to_string()]).await;
        until(PATIENCE, "the replica is in step", async || {
            self.info("replication").await.contains("master_link_status:up").then_some(())
        })
        .await;
    }

    /// Where another Redis of a test reaches it.
    async fn peer_host(&self) -> String {
        match &self.engine {
            Engine::Local(local) => local.address().to_string(),
            Engine::Docker(container) => container.bridge_address().await,
        }
    }

    /// Stops it as an operator would (SIGTERM).
    pub async fn stop(&mut self) {
        match &mut self.engine {
            Engine::Local(local) => local.stop().await,
            Engine::Docker(container) => container.stop().await,
        }
    }

    /// Ends it as a crash would (SIGKILL).
    pub async fn kill(&mut self) {
        match &mut self.engine {
            Engine::Local(local) => local.kill(),
            Engine::Docker(container) => container.kill().await,
        }
    }

    /// Starts it again on the same port, after stopping it if it runs, and waits until it answers. Its data are gone
    /// unless it was started with `appendonly`.
    pub async fn restart(&mut self) {
        self.stop().await;
        match &mut self.engine {
            Engine::Local(local) => local.launch(),
            Engine::Docker(container) => container.launch().await,
        }
        self.wait_until_ready().await;
    }

    /// Freezes it: connections stay open and nothing answers.
    pub async fn pause(&mut self) {
        match &mut self.engine {
            Engine::Local(local) => local.pause(),
            Engine::Docker(container) => container.pause().await,
        }
    }

    /// Lets it go on after a pause.
    pub async fn resume(&mut self) {
        match &mut self.engine {
            Engine::Local(local) => local.resume(),
            Engine::Docker(container) => container.resume().await,
        }
    }

    /// Sets its clock so many seconds ahead of this machine's, or back.
    ///
    /// # Panics
    ///
    /// Panics if it was not started with [`RedisOptions::stepping_clock`].
    pub fn set_clock(&self, seconds: i32) {
        assert!(self.options.stepping_clock, "a Redis with a clock of its own");
        clock::set(self.folder.path(), seconds);
    }

    async fn wait_until_ready(&mut self) {
        until(PATIENCE, "redis answers PING", async || {
            match &mut self.engine {
                Engine::Local(local) => local.assert_running(),
                Engine::Docker(container) => container.assert_running().await,
            }
            let mut connection = self.connect().await.ok()?;
            redis::cmd("PING").exec_async(&mut connection).await.ok()
        })
        .await;
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let credentials = self.options.password.as_ref().map(|p| format!(":{p}@")).unwrap_or_default();
        let url = self.url_with(&credentials);
        let client = match &self.certificates {
            Some(Certificates { authority, .. }) => {
                let root_cert = Some(std::fs::read(&authority.ca_file)?);
                Client::build_with_tls(url, TlsCertificates { client_tls: None, root_cert })?
            }
            None => Client::open(url)?,
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    fn url_with(&self, credentials: &str) -> String {
        let scheme = if self.certificates.is_some() { "rediss" } else { "redis" };
        format!("{scheme}://{credentials}{}:{}", self.host(), self.port())
    }

    /// Where clients reach it.
    fn host(&self) -> Ipv4Addr {
        match &self.engine {
            Engine::Local(local) => local.address(),
            Engine::Docker(_) => Ipv4Addr::LOCALHOST,
        }
    }
}

async fn network(port: &Port) -> Network {
    Network::of(port).await.unwrap_or_else(|why| panic!("no network can be made here: {why}"))
}

async fn in_docker() -> bool {
    match env::var("QUOTA_TEST_REDIS").as_deref() {
        Ok("docker") => {
            assert!(
                docker::available().await,
                "no Docker engine here that has the image {IMAGE}: docker pull {IMAGE}"
            );
            true
        }
        Ok("local") => false,
        Ok(other) => panic!("QUOTA_TEST_REDIS is `docker` or `local`, not {other:?}"),
        Err(_) => docker::available().await,
    }
}
