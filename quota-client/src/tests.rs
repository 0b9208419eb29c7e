//! What a client does, against a service that is told what to answer.

mod admit;
mod build;
mod cgroups;
mod children;
mod cut;
mod documented;
mod fake;
mod guard;
mod layer;
mod machine;
mod metering;
mod metrics;
mod permits;
mod pressure;
mod report;
mod session;
mod settings;
mod shares;
mod shedding;
mod without;

use std::time::Duration;

use fake::Fake;

use crate::{Admission, Builder, Client, Decision, Request};

/// An RPC.
const FETCH: &str = "/gitaly.SSHService/SSHUploadPack";

/// Longer than anything takes that is not stuck.
const LONG: Duration = Duration::from_secs(20);

/// A client that asks these and reports often.
fn builder<'a>(fakes: impl IntoIterator<Item = &'a Fake>) -> Builder {
    Client::builder()
        .endpoints(fakes.into_iter().map(Fake::endpoint))
        .node("gitaly-01")
        .deadline(LONG)
        .report_interval(Duration::from_millis(10))
}

fn fetch() -> Request {
    Request::rpc(FETCH).repo("project-42").user("user-7")
}

async fn allowed(client: &Client, request: &Request) -> Admission {
    match client.admit(request).await {
        Decision::Allow(admission) => admission,
        Decision::Deny(denial) => panic!("{denial}"),
    }
}
