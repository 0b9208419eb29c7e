//! The service that is killed, and comes back where it was.

use std::time::Duration;

use quota_client::{Client, Request};
use quota_tests::ports::Port;
use quota_tests::server::ServerProcess;
use quota_tests::wait::PATIENCE;

/// The one RPC that is asked about.
pub(crate) const RPC: &str = "/gitaly.SmartHTTPService/PostUploadPackWithSidechannel";

/// The repository of every request.
pub(crate) const REPO: &str = "project-42";

/// From one report of a client to the next.
pub(crate) const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// A variable of the environment, and its value.
pub(crate) type Setting = (&'static str, String);

/// A server with ports of its own, whether it runs or not.
pub(crate) struct Service {
    process: ServerProcess,
    settings: Vec<Setting>,
    grpc: Port,
    _http: Port,
}

impl Service {
    pub(crate) async fn start(mut settings: Vec<Setting>) -> Self {
        let [http, grpc] = [Port::free(), Port::free()];
        let ports = [("QUOTA__HTTP__LISTEN", &http), ("QUOTA__GRPC__LISTEN", &grpc)];
        let ports = ports.map(|(key, port)| (key, format!("127.0.0.1:{}", port.number())));
        settings.extend(ports);
        Self { process: launch(&settings).await, settings, grpc, _http: http }
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.process.process.kill();
    }

    /// Starts it again on the same ports, and waits until it listens.
    pub(crate) async fn restart(&mut self) {
        self.process = launch(&self.settings).await;
    }

    /// What a user has used of CPU.
    pub(crate) async fn used(&self, user: &str) -> Duration {
        let standing = self.process.http.account("user", user).await.json();
        Duration::from_secs_f64(standing["resources"]["cpu"]["used"].as_f64().unwrap())
    }

    /// Where gRPC is answered.
    pub(crate) fn port(&self) -> u16 {
        self.grpc.number()
    }
}

/// A client of the server on a port.
pub(crate) fn client(port: u16, node: &str) -> Client {
    Client::builder()
        .endpoints([format!("http://127.0.0.1:{port}")])
        .node(node)
        // No machine is so slow: what is not answered was killed.
        .deadline(PATIENCE)
        .report_interval(REPORT_INTERVAL)
        .build()
        .unwrap()
}

async fn launch(settings: &[Setting]) -> ServerProcess {
    let settings: Vec<_> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    ServerProcess::start(&settings).await
}

/// A request of a user.
pub(crate) fn by(user: &str) -> Request {
    Request::rpc(RPC).repo(REPO).user(user)
}
