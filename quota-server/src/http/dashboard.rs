//! The dashboard: pages made by the server itself, to be read without any script; with one, the overview stays live.
//!
//! Nothing on them comes from elsewhere, and the policy that is sent with each allows nothing else.

mod account;
mod html;
mod live;
mod overview;
mod plot;

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};

use super::Route;

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

pub(super) fn routes() -> [Route; 6] {
    [
        super::page("/", overview::page),
        super::page("/dashboard/live", live::live),
        super::page("/dashboard/accounts", account::find),
        super::page("/dashboard/accounts/{kind}/{*id}", account::page),
        super::page("/dashboard/style.css", async || asset("text/css", include_str!("dashboard/style.css"))),
        super::page("/dashboard/live.js", async || {
            asset("text/javascript", include_str!("dashboard/live.js"))
        }),
    ]
}

/// A page with a heading of its own, and `main` in it.
fn page(title: &str, main: &str) -> Response {
    let title = html::escape(title);
    let body = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} · quota</title>\n\
         <link rel=\"stylesheet\" href=\"/dashboard/style.css\">\n\
         <script src=\"/dashboard/live.js\" defer></script>\n</head>\n<body>\n\
         <header><a href=\"/\">quota</a>\n\
         <form action=\"/dashboard/accounts\"><label>Look up <select name=\"kind\"><option>user<option>repo<option>ip</select>\
         </label> <input name=\"id\" required maxlength=\"1024\" aria-label=\"name\" placeholder=\"name\"> <button>Show</button>\
         </form></header>\n<main>\n{main}</main>\n</body>\n</html>\n"
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
        (HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff")),
        (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer")),
    ];
    (headers, body.into()).into_response()
}
