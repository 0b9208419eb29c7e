//! Server-sent events: streams that end with their reader, and with the server.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::Http;
use super::problem::Problem;
use crate::quota::{QuotaError, Retry};

/// How often a stream on which nothing happens shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Takes the events of a stream, one at a time.
pub(super) type Events = mpsc::Sender<Result<Event, Infallible>>;

/// Streams what `tell` hands on, until that ends, the reader goes, others are known than before, or the server stops.
pub(super) async fn stream<F>(http: &Http, tell: impl FnOnce(Events) -> F) -> Result<Response, Problem>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut alive = http.readiness.follow().await.ok_or_else(|| full("the server stops"))?;
    let mut known = http.auth.changes();
    let (events, told) = mpsc::channel(1);
    let telling = tell(events.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = telling => {}
            () = events.closed() => {}
            // Whoever reads may not be known any more. One who is comes back.
            _ = known.changed() => {}
            // Its sender is gone when the server stops.
            () = async { while alive.changed().await.is_ok() {} } => {}
        }
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(ReceiverStream::new(told)).keep_alive(keep_alive).into_response())
}

/// No more can follow.
pub(super) fn full(detail: &str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-more-readers", "No more can follow now")
        .with("detail", detail)
        .retry(Retry { after: QuotaError::RETRY_AFTER, permanent: false })
}
