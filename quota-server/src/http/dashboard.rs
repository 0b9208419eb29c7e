//! The dashboard: pages made by the server itself, to be read without any script; with one, they stay live.
//!
//! Nothing on them comes from elsewhere, and the policy that is sent with each allows nothing else. What they change goes
//! through forms, which are taken from these pages alone (decision 16).

mod account;
mod account_plot;
mod classes;
mod denials;
mod failed;
mod history_plot;
mod html;
mod mode_form;
mod override_form;
mod overrides;
mod overview;
mod top;
mod view;
mod words;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};

use super::Route;

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

pub(super) fn routes() -> [Route; 15] {
    [
        super::page("/", overview::page),
        super::page("/dashboard/accounts", account::find),
        super::page("/dashboard/accounts/{kind}/{*id}", account::page),
        super::page("/dashboard/top", top::page),
        super::page("/dashboard/denials", denials::page),
        super::page("/dashboard/classes", classes::page),
        super::page("/dashboard/overrides", overrides::page),
        super::form("/dashboard/overrides", override_form::put),
        super::form("/dashboard/overrides/remove", override_form::remove),
        // Where a browser is when the form below could not be taken.
        super::page("/dashboard/modes", overrides::page),
        super::form("/dashboard/modes", mode_form::put),
        super::form("/dashboard/modes/remove", mode_form::remove),
        super::page("/dashboard/icon.svg", async || {
            asset("image/svg+xml", include_str!("dashboard/icon.svg"))
        }),
        super::page("/dashboard/style.css", async || asset("text/css", include_str!("dashboard/style.css"))),
        super::page("/dashboard/live.js", async || {
            asset("text/javascript", include_str!("dashboard/live.js"))
        }),
    ]
}

/// The pages that each page leads to.
const PLACES: [(&str, &str); 5] = [
    ("/", "Overview"),
    ("/dashboard/top", "Heaviest"),
    ("/dashboard/denials", "Refused"),
    ("/dashboard/classes", "Classes"),
    ("/dashboard/overrides", "Overrides"),
];

/// A page with `main` below its title; `place` is the path of the one of [`PLACES`] that it is.
fn shell(title: &str, place: &str, main: &str) -> Response {
    let title = html::escape(title);
    let links = PLACES.map(|(path, name)| {
        let current = if path == place { " aria-current=\"page\"" } else { "" };
        format!("<a href=\"{path}\"{current}>{name}</a>")
    });
    let body = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} · quota</title>\n\
         <link rel=\"stylesheet\" href=\"/dashboard/style.css\">\n\
         <link rel=\"icon\" href=\"/dashboard/icon.svg\">\n\
         <script src=\"/dashboard/live.js\" defer></script>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">To the content</a>\n\
         <header><nav aria-label=\"Pages\">{}</nav>\n\
         <form class=\"line\" action=\"/dashboard/accounts\" role=\"search\">{}\
         <input name=\"id\" required maxlength=\"1024\" aria-label=\"Name of the account\" placeholder=\"name\">\
         <button>Look up</button></form></header>\n\
         <main id=\"main\" tabindex=\"-1\">\n<h1>{title}</h1>\n{main}</main>\n</body>\n</html>\n",
        links.concat(),
        html::select("kind", "Kind of the account", html::KINDS, "user"),
    );
    protected("text/html; charset=utf-8", "no-store", body)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    protected(kind, "max-age=300", text)
}

fn protected(kind: &'static str, cached: &'static str, body: impl Into<axum::body::Body>) -> Response {
    let headers: [(HeaderName, HeaderValue); 5] = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CACHE_CONTROL, HeaderValue::from_static(cached)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        // Under `no-referrer` a browser would hide the origin of the forms, too.
        (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    ];
    (headers, body.into()).into_response()
}
