//! Whether a browser sends something because a page of this server asks for it. It shows its password to whatever page sends
//! it here, so a page of another site could otherwise change something in an operator's name.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};

/// What a browser says of where a request comes from, unless this server is reached over plain HTTP by another name than
/// localhost: no page can forge it.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// `Sec-Fetch-Site` says so, or where that is missing, `Origin` names the host that was asked. Where neither is there, it is
/// not: browsers send one with each form.
pub(super) fn is_same_origin(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        return site == "same-origin";
    }
    let text = |name| headers.get(name)?.to_str().ok();
    let origin = text(ORIGIN).and_then(|origin| Some(origin.split_once("://")?.1));
    origin.zip(text(HOST)).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(headers: &[(&'static str, &'static str)]) -> bool {
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        is_same_origin(&headers.collect())
    }

    #[test]
    fn either_header_must_say_so() {
        const HOST: (&str, &str) = ("host", "quota.example:8080");
        assert!(judged(&[("sec-fetch-site", "same-origin")]));
        assert!(judged(&[HOST, ("origin", "http://Quota.example:8080")]));
        for other in ["cross-site", "same-site", "none", ""] {
            let same = ("origin", "http://quota.example:8080");
            assert!(!judged(&[HOST, same, ("sec-fetch-site", other)]), "{other}");
        }
        for other in
            ["null", "http://quota.example", "http://quota.example:8080.evil.example", "quota.example:8080"]
        {
            assert!(!judged(&[HOST, ("origin", other)]), "{other}");
        }
        assert!(!judged(&[HOST]) && !judged(&[("origin", "http://quota.example:8080")]) && !judged(&[]));
    }
}
