use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use axum::response::sse::Event;
use tokio::sync::OwnedSemaphorePermit;

use super::super::Http;
use super::super::events::{self, Events};
use super::super::problem::Problem;
use super::overview;

const EVERY: Duration = Duration::from_secs(2);

/// The overview again and again, as server-sent events, until the reader goes or the server stops.
pub(super) async fn live(State(http): State<Http>) -> Result<Response, Problem> {
    let place = http.live.clone().try_acquire_owned();
    let place = place.map_err(|_| events::full("as many pages are live as may be"))?;
    events::stream(&http, |events| tell(http.clone(), place, events)).await
}

async fn tell(http: Http, _place: OwnedSemaphorePermit, events: Events) {
    loop {
        // A store that is lost for a while is no reason to end; what is on the page is old meanwhile.
        let event = match overview::main(&http).await {
            Ok(main) => Event::default().data(main),
            Err(error) => Event::default().event("old").data(error.to_string()),
        };
        if events.send(Ok(event)).await.is_err() {
            return;
        }
        tokio::time::sleep(EVERY).await;
    }
}
