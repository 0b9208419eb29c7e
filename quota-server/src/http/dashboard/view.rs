use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::header::ACCEPT;
use axum::http::request::Parts;
use axum::response::Response;
use axum::response::sse::Event;
use quota_core::Mode;
use tokio::sync::OwnedSemaphorePermit;

use super::super::Http;
use super::super::events::{self, Events};
use super::failed::Failed;
use super::{html, words};
use crate::quota::{ModeStanding, QuotaError};

/// How long a reader may take for one event.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a page is made anew while somebody looks.
const EVERY: Duration = Duration::from_secs(2);

/// A page. What is around its live part stays as it was loaded, so that nobody loses what is being typed.
pub(super) trait View: Send + Sync + 'static {
    /// Its title.
    fn title(&self) -> String;

    /// The path of the entry in the navigation that it belongs to.
    fn place(&self) -> &'static str;

    /// What is above the live part.
    fn before(&self) -> String {
        String::new()
    }

    /// What is sent anew while somebody looks.
    fn live(&self, http: &Http) -> impl Future<Output = Result<String, QuotaError>> + Send;

    /// What is below the live part.
    fn after(&self) -> String {
        String::new()
    }
}

/// What a page is asked for by: itself, or by the script on it, its live part again and again.
#[derive(Clone, Copy)]
pub(super) enum Wants {
    Page,
    Events,
}

impl<S: Sync> FromRequestParts<S> for Wants {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let events = parts.headers.get(ACCEPT).is_some_and(|accept| accept == "text/event-stream");
        Ok(if events { Self::Events } else { Self::Page })
    }
}

/// Answers with a page, or its live part as server-sent events until the reader goes or the server stops.
pub(super) async fn show(http: Http, wants: Wants, view: impl View) -> Result<Response, Failed> {
    match wants {
        Wants::Page => {
            let live = live(&http, &view).await?;
            let main = format!("{}<div id=\"live\">\n{live}</div>\n{}", view.before(), view.after());
            Ok(super::shell(&view.title(), view.place(), &main))
        }
        Wants::Events => {
            let place = http.live.clone().try_acquire_owned();
            let place = place.map_err(|_| events::full("as many pages are live as may be"))?;
            Ok(events::stream(&http, |events| tell(http.clone(), view, place, events)).await?)
        }
    }
}

async fn live(http: &Http, view: &impl View) -> Result<String, QuotaError> {
    let modes = http.quota.list_modes().await?;
    Ok(warning(&modes) + &view.live(http).await?)
}

async fn tell(http: Http, view: impl View, _place: OwnedSemaphorePermit, events: Events) {
    loop {
        // A store that is lost for a while is no reason to end; what is on the page is old meanwhile.
        let event = match live(&http, &view).await {
            Ok(live) => Event::default().data(live),
            Err(error) => Event::default().event("old").data(html::escape(&error.to_string())),
        };
        // Who does not read gives his place to others.
        let Ok(Ok(())) = tokio::time::timeout(PATIENCE, events.send(Ok(event))).await else { return };
        tokio::time::sleep(EVERY).await;
    }
}

/// That limits are not enforced somewhere, which must not be forgotten.
fn warning(modes: &[ModeStanding]) -> String {
    let down = modes.iter().filter(|mode| mode.setting.mode < Mode::Enforce);
    let down = down.map(|ModeStanding { setting, since }| {
        format!(
            "<p><strong>Switched to {}: {}</strong>. {} ({}, {} ago)</p>\n",
            setting.mode.as_str(),
            html::name(&words::part(&setting.place)),
            html::name(&setting.reason),
            html::name(&setting.author),
            words::duration(*since),
        )
    });
    let down: String = down.collect();
    if down.is_empty() { down } else { format!("<div class=\"warning\">\n{down}</div>\n") }
}
