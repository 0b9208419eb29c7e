mod roster;

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use parking_lot::Mutex;
use quota_proto::v1::quota_service_client::QuotaServiceClient;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};

use crate::credential::Credential;
use crate::status::{has_no_store, is_partly_stored, is_transient};
use roster::{Lease, Outcome, Roster};

/// A probe that is longer on its way than this gives its turn to the next, whatever its own deadline: a service that is
/// back is seen within this time.
const PROBE: Duration = Duration::from_secs(1);

/// The service at one endpoint.
pub(crate) type Service = QuotaServiceClient<Channel>;

/// The endpoints of the service, and what is known of each.
pub(crate) struct Pool {
    links: Vec<Link>,
    roster: Mutex<Roster>,
    /// An endpoint that was set aside works again.
    recovered: Notify,
    /// What each request shows.
    pub(crate) credential: Credential,
}

struct Link {
    endpoint: Endpoint,
    /// Connects when first used, and anew when its connection is lost.
    channel: Mutex<Channel>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("no endpoint is due to be asked")]
    AllAside,
    #[error("no answer in time")]
    Late,
    #[error("{:?}: {}", .0.code(), .0.message())]
    Status(Status),
}

impl Pool {
    /// Needs a Tokio runtime. Connects to nothing yet.
    pub(crate) fn new(endpoints: Vec<Endpoint>, credential: Credential) -> Self {
        let roster = Mutex::new(Roster::new(endpoints.len()));
        let link = |endpoint: Endpoint| Link { channel: Mutex::new(endpoint.connect_lazy()), endpoint };
        let links = endpoints.into_iter().map(link).collect();
        Self { links, roster, recovered: Notify::new(), credential }
    }

    /// Sends what `message` makes by `call` to one endpoint, and to the next only while it is certain that it was not
    /// sent; until `deadline`, which nothing outlasts.
    pub(crate) async fn ask<M, R, F>(
        &self,
        message: impl Fn() -> M,
        deadline: Instant,
        call: impl Fn(Service, tonic::Request<M>) -> F,
    ) -> Result<R, NoAnswer>
    where
        F: Future<Output = Result<Response<R>, Status>> + Send + 'static,
        R: Send + 'static,
    {
        let mut unsent = NoAnswer::AllAside;
        while let Some(attempt) = self.pick() {
            let client = Service::new(attempt.channel());
            let deadline =
                if attempt.lease.is_probe { deadline.min(Instant::now() + PROBE) } else { deadline };
            // Where the caller goes, the call goes on to its end or deadline: a stream that is reset costs the service more,
            // and many of them the connection, and so everybody's answers.
            let reply = tokio::spawn(timeout_at(deadline, call(client, self.request(message()))));
            // Nothing in it panics; a runtime that ends drops it.
            let Ok(reply) = reply.await else { return Err(NoAnswer::Late) };
            let status = match reply {
                Ok(Ok(response)) => {
                    attempt.settle(Outcome::Worked);
                    return Ok(response.into_inner());
                }
                Ok(Err(status)) => status,
                Err(_) => {
                    attempt.settle(Outcome::Poor);
                    return Err(NoAnswer::Late);
                }
            };
            attempt.settle(outcome(&status));
            let certainly_unsent = never_connected(&status);
            unsent = NoAnswer::Status(status);
            if !certainly_unsent {
                break;
            }
        }
        Err(unsent)
    }

    /// The endpoint that would be asked now, if one works.
    pub(crate) fn working(&self) -> Option<(usize, Service)> {
        let index = self.roster.lock().working()?;
        Some((index, Service::new(self.links[index].channel.lock().clone())))
    }

    /// Whether another endpoint than this one is asked, which is the first.
    pub(crate) fn has_returned(&self, from: usize) -> bool {
        from != 0 && self.roster.lock().working() == Some(0)
    }

    /// An endpoint says that it is about to stop: another that works is asked before it.
    pub(crate) fn pass_over(&self, index: usize) {
        self.roster.lock().pass_over(index);
    }

    /// Ends when an endpoint that was set aside works again; at once where one has since this was last awaited. For one
    /// task alone.
    pub(crate) async fn recovered(&self) {
        self.recovered.notified().await;
    }

    pub(crate) fn request<M>(&self, message: M) -> tonic::Request<M> {
        let mut request = tonic::Request::new(message);
        if let Some(authorization) = self.credential.header() {
            request.metadata_mut().insert("authorization", authorization);
        }
        request
    }

    fn pick(&self) -> Option<Attempt<'_>> {
        let lease = self.roster.lock().pick(Instant::now())?;
        Some(Attempt { pool: self, lease, settled: false })
    }
}

/// Leave to ask an endpoint once; dropped, nobody waits for its answer.
struct Attempt<'a> {
    pool: &'a Pool,
    lease: Lease,
    settled: bool,
}

impl Attempt<'_> {
    fn channel(&self) -> Channel {
        self.pool.links[self.lease.index].channel.lock().clone()
    }

    fn settle(mut self, outcome: Outcome) {
        self.settled = true;
        self.note(outcome);
    }

    fn note(&self, outcome: Outcome) {
        let aside = self.pool.roster.lock().settle(self.lease, outcome, Instant::now(), fastrand::f64());
        if self.lease.is_probe && outcome == Outcome::Worked {
            self.pool.recovered.notify_one();
        }
        if let Some(aside) = aside {
            let link = &self.pool.links[self.lease.index];
            // Its connection may be half dead: TCP notices a silent peer only after minutes.
            *link.channel.lock() = link.endpoint.connect_lazy();
            tracing::debug!(endpoint = %link.endpoint.uri(), ?outcome, ?aside, "quota service endpoint set aside");
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.note(Outcome::Abandoned);
        }
    }
}

/// What an error says of its endpoint. One that has a cause was made on this side, of a broken connection; the
/// others were answered.
fn outcome(status: &Status) -> Outcome {
    if status.source().is_some() {
        Outcome::Failed
    } else if has_no_store(status) {
        Outcome::Elsewhere
    } else if is_partly_stored(status) {
        Outcome::Worked
    } else if is_transient(status) || status.code() == Code::Unimplemented {
        Outcome::Poor
    } else {
        Outcome::Worked
    }
}

fn never_connected(status: &Status) -> bool {
    let mut error: Option<&(dyn Error + 'static)> = Some(status);
    while let Some(cause) = error {
        if cause.is::<tonic::ConnectError>() {
            return true;
        }
        error = cause.source();
    }
    false
}
