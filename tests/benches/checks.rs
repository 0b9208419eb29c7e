//! Questions to a real server over gRPC.

use std::net::SocketAddr;

use http::uri::PathAndQuery;
use quota_proto::{BoundedCodec, v1};
use quota_tests::server::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, IntoRequest as _};

use crate::workload::Accounts;
use quota_tests::limitador;

/// Users, and as many repositories and addresses, that are asked about.
pub(crate) const REQUESTS: usize = 5_000;

/// What is asked.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    /// A check that is allowed.
    Check,
    /// The same message to a method that does not exist: what gRPC takes where nothing is read or decided.
    Nothing,
    /// The same accounts, of limitador.
    Limitador,
}

/// A connection of its own.
#[derive(Clone)]
pub(crate) struct Connection(Channel);

impl Connection {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        Self(endpoint.connect().await.expect("a server that listens"))
    }

    pub(crate) async fn call(&self, call: Call, accounts: Accounts) {
        match call {
            Call::Check => {
                let answer = self.check(accounts.check()).await;
                let allowed = answer.decision() == v1::check_response::Decision::Allow;
                assert!(allowed && answer.checked, "no limit is near, and the store is there: {answer:?}");
            }
            Call::Nothing => self.nothing(accounts).await,
            Call::Limitador => {
                let allowed =
                    limitador::is_allowed(self.0.clone(), accounts.descriptor()).await.expect("an answer");
                assert!(allowed, "no limit is near");
            }
        }
    }

    pub(crate) async fn check(&self, question: v1::CheckRequest) -> v1::CheckResponse {
        Grpc::new(self.0.clone()).check(question).await.expect("an answer").into_inner()
    }

    /// Whether limitador admits a request with these keys and values.
    pub(crate) async fn is_allowed_by_limitador(&self, descriptor: Vec<(&'static str, String)>) -> bool {
        limitador::is_allowed(self.0.clone(), descriptor).await.expect("an answer")
    }

    async fn nothing(&self, accounts: Accounts) {
        let mut grpc = tonic::client::Grpc::new(self.0.clone());
        grpc.ready().await.expect("a connection");
        let codec = BoundedCodec::<v1::CheckRequest, v1::CheckResponse>::default();
        let path = PathAndQuery::from_static("/quota.v1.QuotaService/Nothing");
        let answer = grpc.unary(accounts.check().into_request(), path, codec).await;
        assert_eq!(answer.expect_err("no such method").code(), Code::Unimplemented);
    }
}
