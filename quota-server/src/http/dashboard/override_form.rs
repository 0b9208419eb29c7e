use axum::extract::State;
use axum::http::{Extensions, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use quota_proto::Invalid;
use serde::Deserialize;

use super::super::Http;
use super::super::extract::Form;
use super::super::object::Object;
use super::super::overrides::{EXPIRES, LimitsBody, OverrideBody, asked};
use super::account::Named;
use super::failed::Failed;
use super::html::{self, field};
use super::overrides::{Overrides, PATH, Wrong};
use super::view::{Wants, show};
use crate::quota::{PutOverride, Quota, QuotaError};

/// What is to be said of an account, as it was typed.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OverrideForm {
    kind: String,
    id: String,
    word: String,
    weight: String,
    cpu: String,
    memory: String,
    network: String,
    expires_in_seconds: String,
    reason: String,
}

/// How long an override may last, as the form offers it.
const LASTS: [(&str, &str); 7] = [
    ("900", "in 15 minutes"),
    ("3600", "in an hour"),
    ("14400", "in 4 hours"),
    ("86400", "in a day"),
    ("604800", "in a week"),
    ("2592000", "in 30 days"),
    ("", "never"),
];

pub(super) async fn put(
    State(http): State<Http>,
    extensions: Extensions,
    Form(form): Form<OverrideForm>,
) -> Result<Response, Failed> {
    let said = match form.read(&http.quota, &extensions) {
        Ok(said) => said,
        Err(wrong) => {
            let view = Overrides {
                may_change: true,
                form,
                wrong: Some(Wrong::Override(wrong)),
                ..Overrides::default()
            };
            let page = show(http, Wants::Page, view).await?;
            return Ok((StatusCode::BAD_REQUEST, page).into_response());
        }
    };
    http.quota.put_override(said).await?;
    Ok(Redirect::to(PATH).into_response())
}

pub(super) async fn remove(
    State(http): State<Http>,
    extensions: Extensions,
    Form(Named { kind, id }): Form<Named>,
) -> Result<Response, Failed> {
    let asked = asked(&http.quota, &kind, &id, &extensions).map_err(QuotaError::from)?;
    match http.quota.delete_override(asked).await {
        // Somebody was quicker, or it has ended: it is as it was meant.
        Ok(()) | Err(QuotaError::NothingSaid) => Ok(Redirect::to(PATH).into_response()),
        Err(error) => Err(error.into()),
    }
}

impl OverrideForm {
    /// Of an account, with nothing said of it yet.
    pub(super) fn of(kind: String, id: String) -> Self {
        Self { kind, id, ..Self::default() }
    }

    fn read(&self, quota: &Quota, of: &Extensions) -> Result<PutOverride, Invalid> {
        let limit = |text: &str| html::typed(text).map(str::to_owned);
        let is = |word| self.word == word;
        let weight =
            || number("weight", &self.weight)?.ok_or_else(|| Invalid::new("weight", "must be given"));
        let limits = || LimitsBody {
            cpu: limit(&self.cpu),
            memory: limit(&self.memory),
            network: limit(&self.network),
        };
        let body = OverrideBody {
            weight: is("weight").then(weight).transpose()?,
            limits: is("limits").then(limits).map(Object),
            exempt: is("exempt").then_some(true),
            blocked: is("blocked").then_some(true),
            reason: self.reason.clone(),
            expires_in_seconds: number(EXPIRES, &self.expires_in_seconds)?,
        };
        body.read(asked(quota, &self.kind, &self.id, of)?, quota.window.length())
    }

    /// The form; `wrong` says what cannot be taken as it is filled in.
    pub(super) fn html(&self, wrong: Option<&Invalid>) -> String {
        let words = [
            ("blocked", "Block", "it is refused at once"),
            ("exempt", "Exempt", "it is charged, and compared with nothing"),
            ("weight", "Weight", "it may use so many times what others may"),
            ("limits", "Limits", "limits of its own"),
        ];
        let chosen = html::given(&self.word).unwrap_or("blocked");
        let words = words.map(|(value, name, meaning)| {
            let checked = if value == chosen { " checked" } else { "" };
            format!(
                "<label class=\"choice\"><input type=\"radio\" name=\"word\" value=\"{value}\"{checked}> {name} \
                 <small>{meaning}</small></label>\n"
            )
        });
        let lasts = if wrong.is_some() { &*self.expires_in_seconds } else { "3600" };
        format!(
            "<section id=\"say\">\n<h2>Say something of an account</h2>\n{}\
             <form class=\"fields\" method=\"post\" action=\"{PATH}\">\n\
             <label>Kind {}</label>\n{}\
             <fieldset><legend>What</legend>\n{}</fieldset>\n\
             <div class=\"weight\">{}</div>\n<div class=\"limits\">{}{}{}</div>\n\
             <label>Ends {}</label>\n{}<button>Say it</button>\n</form>\n</section>\n",
            html::complaint(wrong),
            html::select("kind", "Kind", html::KINDS, &self.kind),
            field("Account", "id", &self.id, "name or address", wrong, "id"),
            words.concat(),
            field("Weight", "weight", &self.weight, "2", wrong, "weight"),
            field("CPU", "cpu", &self.cpu, "10s", wrong, "limits.cpu"),
            field("Memory", "memory", &self.memory, "512MiB", wrong, "limits.memory"),
            field("Network", "network", &self.network, "1GiB", wrong, "limits.network"),
            html::select(EXPIRES, "Ends", &LASTS, lasts),
            field("Reason", "reason", &self.reason, "as the end user may read it", wrong, "reason"),
        )
    }
}

/// A number that was typed; none where nothing was.
fn number(field: &str, text: &str) -> Result<Option<f64>, Invalid> {
    let number = html::typed(text).map(str::parse).transpose();
    number.map_err(|_| Invalid::new(field, "must be a number"))
}
