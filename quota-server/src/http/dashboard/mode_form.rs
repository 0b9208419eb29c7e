use axum::extract::State;
use axum::http::{Extensions, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use quota_proto::Invalid;
use serde::Deserialize;

use super::super::Http;
use super::super::extract::Form;
use super::super::modes::{ModeBody, asked};
use super::failed::Failed;
use super::html::{self, field};
use super::overrides::{Overrides, PATH, Wrong};
use super::view::{Wants, show};
use crate::quota::QuotaError;

/// How far limits are to be enforced, as it was typed.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ModeForm {
    mode: String,
    kind: String,
    node: String,
    reason: String,
}

/// A part that is switched back.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Part {
    kind: String,
    node: String,
}

pub(super) async fn put(
    State(http): State<Http>,
    extensions: Extensions,
    Form(modes): Form<ModeForm>,
) -> Result<Response, Failed> {
    let body = ModeBody {
        mode: modes.mode.clone(),
        node: html::given(&modes.node).map(str::to_owned),
        kind: html::given(&modes.kind).map(str::to_owned),
        reason: modes.reason.clone(),
    };
    let request = match body.read(&extensions) {
        Ok(request) => request,
        Err(wrong) => {
            let view = Overrides {
                may_change: true,
                modes,
                wrong: Some(Wrong::Mode(wrong)),
                ..Overrides::default()
            };
            let page = show(http, Wants::Page, view).await?;
            return Ok((StatusCode::BAD_REQUEST, page).into_response());
        }
    };
    http.quota.put_mode(request).await?;
    Ok(Redirect::to(PATH).into_response())
}

pub(super) async fn remove(
    State(http): State<Http>,
    extensions: Extensions,
    Form(Part { kind, node }): Form<Part>,
) -> Result<Response, Failed> {
    let request = asked(html::given(&node), html::given(&kind), &extensions).map_err(QuotaError::from)?;
    match http.quota.delete_mode(request).await {
        // Somebody was quicker.
        Ok(()) | Err(QuotaError::NothingSaid) => Ok(Redirect::to(PATH).into_response()),
        Err(error) => Err(error.into()),
    }
}

impl ModeForm {
    /// The form; `wrong` says what cannot be taken as it is filled in.
    pub(super) fn html(&self, wrong: Option<&Invalid>) -> String {
        let modes = [
            ("shadow", "shadow: count and tell, refuse nobody"),
            ("off", "off: compare nothing"),
            ("enforce", "enforce: as configured"),
        ];
        let kinds = [("", "all kinds"), ("user", "users"), ("repo", "repositories"), ("ip", "addresses")];
        format!(
            "<section id=\"switch\">\n<h2>Switch</h2>\n{}\
             <form class=\"fields\" method=\"post\" action=\"/dashboard/modes\">\n\
             <label>Mode {}</label>\n<label>Of {}</label>\n{}{}<button>Switch</button>\n</form>\n</section>\n",
            html::complaint(wrong),
            html::select("mode", "Mode", &modes, &self.mode),
            html::select("kind", "Of", &kinds, &self.kind),
            field("Or on one fileserver", "node", &self.node, "all fileservers", wrong, "node"),
            field("Reason", "reason", &self.reason, "why it is switched", wrong, "reason"),
        )
    }
}
