use std::net::{Ipv4Addr, TcpStream};

use quota_tests::git::{Git, git};
use quota_tests::http::Http;
use quota_tests::ports::Port;

use crate::compose::Compose;

/// Everything that `docker-compose.yml` runs, on ports of the test's own.
pub(crate) struct Stack {
    pub(crate) replicas: [Replica; 2],
    pub(crate) fileservers: [Fileserver; 2],
    pub(crate) prometheus: Http,
    compose: Compose,
    /// The last field: given up when nothing listens there any more.
    _ports: Vec<Port>,
}

/// A quota-server.
pub(crate) struct Replica {
    pub(crate) name: &'static str,
    pub(crate) http: Http,
}

/// A git fileserver with one repository.
pub(crate) struct Fileserver {
    pub(crate) node: &'static str,
    port: u16,
    repository: &'static str,
}

impl Stack {
    /// Returns when all are healthy.
    pub(crate) async fn up() -> Self {
        let mut ports = Vec::new();
        let mut environment = Vec::new();
        let mut published = |variable| {
            let port = Port::free();
            let number = port.number();
            ports.push(port);
            environment.push((variable, number.to_string()));
            number
        };
        let http = |port| Http::new((Ipv4Addr::LOCALHOST, port).into());
        let replicas = [("quota-1", "QUOTA_1_HTTP_PORT"), ("quota-2", "QUOTA_2_HTTP_PORT")]
            .map(|(name, variable)| Replica { name, http: http(published(variable)) });
        let fileservers = [
            ("gitaly-01", "GITALY_01_PORT", "project-1.git"),
            ("gitaly-02", "GITALY_02_PORT", "project-2.git"),
        ]
        .map(|(node, variable, repository)| Fileserver {
            node,
            port: published(variable),
            repository,
        });
        let prometheus = http(published("PROMETHEUS_PORT"));
        // Not asked here, and published all the same.
        for variable in ["QUOTA_1_GRPC_PORT", "QUOTA_2_GRPC_PORT"] {
            published(variable);
        }

        let compose = Compose::up(environment).await;
        let all = ["redis", "quota-1", "quota-2", "gitaly-01", "gitaly-02", "prometheus"];
        compose.until_healthy(&all).await;
        Self { replicas, fileservers, prometheus, compose, _ports: ports }
    }

    /// Ends a replica as a crash would, for good: nothing starts it again.
    pub(crate) async fn kill(&self, replica: &Replica) {
        self.compose.kill(replica.name).await;
        assert!(TcpStream::connect(replica.http.address()).is_err(), "{} listens on", replica.name);
    }

    /// Starts it again, and returns when it is healthy.
    pub(crate) async fn start(&self, replica: &Replica) {
        self.compose.start(replica.name).await;
        self.compose.until_healthy(&[replica.name]).await;
    }
}

impl Fileserver {
    /// Clones its repository, into a folder that is gone afterwards.
    pub(crate) async fn clone_as(&self, user: &str) -> Git {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("http://{user}:any@127.0.0.1:{}/{}", self.port, self.repository);
        git(folder.path(), &["clone", &url, "clone"]).await
    }
}
