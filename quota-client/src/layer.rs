//! The client as a [tower] layer, for HTTP services such as those of tonic and axum.

mod body;
mod deadline;
mod endable;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http_body::Body;
use tokio::time::Instant;
use tonic::Status;
use tower::{Layer, Service};

pub use body::{MeteredBody, ResponseBody};

use crate::{Client, Decision, Denial, Meter, Permit, Request, Slot};
use endable::Endable;

/// What is to be done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Classification {
    /// Ask whether it may be executed, wait for a permit where its RPC is limited, and meter it.
    Check(Request),
    /// Meter it, as a part of work that was admitted before: it must not be refused half-way. A handler that wants a permit
    /// all the same [asks](Client::acquire) for it.
    MeterOnly(Request),
    /// Neither, as for a health check.
    Skip,
}

/// Checks, limits and meters the requests of the services within.
///
/// A refused request does not reach the service: a gRPC request is answered with the [`Status`] of the [`Denial`],
/// any other with its 429 or 503. Of the others the bytes of both bodies are counted, until the body of the response has
/// ended or is dropped; that is how long a permit is held, too. The [`Meter`] is among the request's extensions, so that
/// the service can add its children. Where a request says in its headers which trace it is a part of, the question to the quota
/// service says so too, unless the classifier has [named another place in it](Request::trace).
///
/// A request that is ended, since the machine is overloaded, is answered like a refused one where the service has not
/// answered yet. Else its body ends: of gRPC with the trailers of the status, of others with an error, so that it does not
/// look whole. One that is nearly done is spared, by what [`Meter::announce`] was told: by this layer where the length is
/// known, and of a gRPC stream, whose length never is, by its handler or by nobody.
///
/// What follows a `101 Switching Protocols` of HTTP/1, as of WebSocket, is no body: the permit is free with the 101, and
/// the layer neither counts nor ends what is sent after it. A handler that upgrades keeps the meter, tells it the bytes,
/// ends when [it is shed](Meter::is_shed), and takes a [permit](Client::acquire) for as long as it talks, in the name of an
/// RPC that the classifier gives to no request.
#[derive(Clone, Debug)]
pub struct QuotaLayer<F> {
    client: Client,
    classify: F,
}

impl<F: Fn(&Parts) -> Classification> QuotaLayer<F> {
    /// A layer that asks `classify` what each request is.
    pub const fn new(client: Client, classify: F) -> Self {
        Self { client, classify }
    }
}

impl<S, F: Clone> Layer<S> for QuotaLayer<F> {
    type Service = Quota<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        Quota { inner, client: self.client.clone(), classify: self.classify.clone() }
    }
}

/// A service whose requests are checked, limited and metered; [`QuotaLayer`] makes it.
#[derive(Clone, Debug)]
pub struct Quota<S, F> {
    inner: S,
    client: Client,
    classify: F,
}

impl<S, F, B, R> Service<http::Request<B>> for Quota<S, F>
where
    S: Service<http::Request<MeteredBody<B>>, Response = http::Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    F: Fn(&Parts) -> Classification,
    B: Send + 'static,
    R: Body + Send + 'static,
{
    type Response = http::Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        // It is this instance that is ready; its clone need not be.
        let clone = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, clone);
        let client = self.client.clone();
        let (mut parts, body) = request.into_parts();
        let classification = (self.classify)(&parts);
        let is_grpc = is_grpc(&parts.headers);
        Box::pin(async move {
            let deadline = deadline::of(&parts.headers);
            // Held until there is a response, since the service may drop the request before.
            let admitted = admit(&client, classification, &parts.headers, deadline).await;
            let Admitted { slot, meter, permit } = match admitted {
                Ok(admitted) => admitted,
                Err(denial) => return Ok(refusal(denial, is_grpc)),
            };
            if let Some(meter) = &meter {
                parts.extensions.insert(meter.clone());
            }
            let body = MeteredBody::received(body, meter.clone());
            let answering = inner.call(http::Request::from_parts(parts, body));
            let may_end = client.sheds() || slot.as_ref().is_some_and(Slot::is_timed);
            let ended = meter.clone().filter(|_| may_end);
            let leave = Leave { _slot: slot, _permit: permit };
            let response = match &ended {
                None => answering.await?,
                Some(meter) => tokio::select! {
                    response = answering => response?,
                    denial = meter.is_shed() => return Ok(refusal(denial, is_grpc)),
                },
            };
            if let (Some(meter), Some(bytes)) = (&meter, length(&response)) {
                meter.announce(bytes);
            }
            Ok(response.map(|body| {
                let body = MeteredBody::sent(body, meter);
                match ended {
                    None => ResponseBody::new(body, leave),
                    Some(meter) => ResponseBody::endable(Endable::new(body, leave, meter, is_grpc)),
                }
            }))
        })
    }
}

/// Leave to run, and what meters it.
#[derive(Default)]
struct Admitted {
    slot: Option<Slot>,
    meter: Option<Meter>,
    permit: Option<Permit>,
}

/// What is held for as long as the request runs.
#[derive(Debug, Default)]
struct Leave {
    _slot: Option<Slot>,
    _permit: Option<Permit>,
}

async fn admit(
    client: &Client,
    classification: Classification,
    headers: &HeaderMap,
    deadline: Option<Instant>,
) -> Result<Admitted, Denial> {
    match classification {
        Classification::Check(request) => {
            let request = request.trace_unless_said(headers);
            // First, so that nothing is reserved for one that waits.
            let slot = client.slot(&request, deadline).await?;
            match client.admit(&request).await {
                Decision::Allow(admission) => {
                    let (slot, permit) = permitted(client, &request, slot, deadline).await?;
                    let meter = admission.meter();
                    if let Some(slot) = &slot {
                        slot.of(&meter);
                    }
                    Ok(Admitted { slot, meter: Some(meter), permit })
                }
                Decision::Deny(denial) => Err(denial),
            }
        }
        Classification::MeterOnly(request) => {
            Ok(Admitted { meter: Some(client.meter(&request)), ..Admitted::default() })
        }
        Classification::Skip => {
            client.shared().count(|stats| stats.skipped += 1);
            Ok(Admitted::default())
        }
    }
}

/// Waits for a permit, without the slot: those who queue for one repository must not keep a class from all others.
async fn permitted(
    client: &Client,
    request: &Request,
    slot: Option<Slot>,
    deadline: Option<Instant>,
) -> Result<(Option<Slot>, Option<Permit>), Denial> {
    let mut acquiring = pin!(client.acquire(request, deadline));
    if let Poll::Ready(permit) = poll_fn(|cx| Poll::Ready(acquiring.as_mut().poll(cx))).await {
        return Ok((slot, permit?));
    }
    let had_slot = slot.is_some();
    drop(slot);
    let permit = acquiring.await?;
    let slot = if had_slot { client.slot(request, deadline).await? } else { None };
    Ok((slot, permit))
}

fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// How long the body will be. The header may be left to the server to set, by what the body knows.
fn length<R: Body>(response: &http::Response<R>) -> Option<u64> {
    let header = response.headers().get(CONTENT_LENGTH);
    header.and_then(|value| value.to_str().ok()?.parse().ok()).or_else(|| response.body().size_hint().exact())
}

fn refusal<R>(denial: Denial, is_grpc: bool) -> http::Response<ResponseBody<R>> {
    if is_grpc { Status::from(denial).into_http::<String>().map(ResponseBody::from) } else { denial.into() }
}
