use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::super::Http;
use super::super::problem::Problem;
use super::overview;

const EVERY: Duration = Duration::from_secs(2);

/// The overview again and again, as server-sent events, until the reader goes or the server stops.
pub(super) async fn live(State(http): State<Http>) -> Response {
    let Ok(place) = http.live.clone().try_acquire_owned() else {
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many", "Too many look at the live page")
            .into_response();
    };
    let Some(mut stopping) = http.readiness.follow().await else {
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", "Not ready").into_response();
    };
    let (events, received) = mpsc::channel::<Result<Event, Infallible>>(1);
    tokio::spawn(async move {
        let _place = place;
        loop {
            // A store that is lost for a while is no reason to end: the page says since when it is old.
            if let Ok(main) = overview::main(&http).await
                && events.send(Ok(Event::default().data(main))).await.is_err()
            {
                return;
            }
            tokio::select! {
                () = events.closed() => return,
                () = stopped(&mut stopping) => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    });
    Sse::new(ReceiverStream::new(received)).into_response()
}

/// The sender is gone when the server stops.
async fn stopped(stopping: &mut tokio::sync::watch::Receiver<bool>) {
    while stopping.changed().await.is_ok() {}
}
