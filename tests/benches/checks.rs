//! Questions to a real server over gRPC.

use std::net::SocketAddr;
use std::time::Duration;

use hdrhistogram::Histogram;
use http::uri::PathAndQuery;
use quota_proto::{BoundedCodec, v1};
use quota_tests::server::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, IntoRequest as _};

use crate::workload::Accounts;

/// Users, and as many repositories and addresses, that are asked about.
pub(crate) const REQUESTS: usize = 5_000;

/// A connection of its own.
#[derive(Clone)]
pub(crate) struct Connection(Channel);

impl Connection {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        Self(endpoint.connect().await.expect("a server that listens"))
    }

    /// A check that is allowed.
    pub(crate) async fn check(&self, accounts: Accounts) {
        let answer = Grpc::new(self.0.clone()).check(accounts.check()).await.expect("an answer").into_inner();
        let allowed = answer.decision() == v1::check_response::Decision::Allow;
        assert!(allowed && answer.checked, "no limit is near, and the store is there: {answer:?}");
    }

    /// The same message to a method that does not exist: what gRPC takes where nothing is read or decided.
    pub(crate) async fn nothing(&self, accounts: Accounts) {
        let mut grpc = tonic::client::Grpc::new(self.0.clone());
        grpc.ready().await.expect("a connection");
        let codec = BoundedCodec::<v1::CheckRequest, v1::CheckResponse>::default();
        let path = PathAndQuery::from_static("/quota.v1.QuotaService/Nothing");
        let answer = grpc.unary(accounts.check().into_request(), path, codec).await;
        assert_eq!(answer.expect_err("no such method").code(), Code::Unimplemented);
    }
}

/// Latencies in microseconds, with three digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("a histogram")
}

pub(crate) fn record(histogram: &mut Histogram<u64>, took: Duration) {
    histogram
        .record(u64::try_from(took.as_micros()).expect("a time within reach"))
        .expect("room for any time");
}
