use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use quota_core::{Comparison, Limit, Resource};
use serde::Deserialize;

use super::super::Http;
use super::super::extract::{Params, Segments};
use super::super::problem::Problem;
use super::super::standing::{self, StandingParams};
use super::html;
use crate::quota::{Standing, limit_in_words};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    kind: String,
    id: String,
}

/// The form of the page's head, which knows no paths.
pub(super) async fn find(Params(Wanted { kind, id }): Params<Wanted>) -> Response {
    Redirect::to(&format!("/dashboard/accounts/{}/{}", html::in_path(&kind), html::in_path(&id)))
        .into_response()
}

pub(super) async fn page(
    State(http): State<Http>,
    Segments((kind, id)): Segments<(String, String)>,
    Params(params): Params<StandingParams>,
) -> Result<Response, Problem> {
    let standing = standing::find(&http, &kind, &id, params).await?;
    Ok(super::page(&standing.account.to_string(), &render(&standing, http.quota.window.length())))
}

fn render(standing: &Standing, window: Duration) -> String {
    let rows = Resource::ALL.map(|resource| {
        let (used, Comparison { ceiling, here }) = standing.resources[resource];
        let amount = |limit| match limit {
            Limit::At(amount) => limit_in_words(resource, amount, window),
            Limit::Unlimited => "unlimited".to_owned(),
        };
        vec![
            resource.as_str().to_owned(),
            amount(Limit::At(used)),
            amount(ceiling.limit),
            ceiling.mode.as_str().to_owned(),
            here.map(|here| amount(here.limit)).unwrap_or_default(),
        ]
    });
    let table = html::table(&["Resource", "Used", "Limit", "Mode", "Limit on the fileserver"], rows, "");
    let state = if standing.over {
        format!("over its limit for {} s", standing.retry_after.as_secs_f64().ceil())
    } else {
        "below its limits".to_owned()
    };
    let why: String = standing
        .own
        .iter()
        .filter_map(|(_, own)| own.as_ref())
        .map(|own| format!("<p>{}</p>\n", html::escape(&own.why.to_string())))
        .collect();
    format!("<h1>{}</h1>\n<p>It is {state}.</p>\n{table}{why}", html::escape(&standing.account.to_string()))
}
