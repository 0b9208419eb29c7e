//! Whether a browser sends something because a page of this server asks for it. It shows its password to whatever page sends
//! it here, so a page of another site could otherwise change something in an operator's name.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};

/// What a browser says of where a request comes from, unless this server is reached over plain HTTP by another name than
/// localhost: no page can forge it.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// From where a browser says that a request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// From a page of this server.
    Same,
    /// From another page.
    Other,
    /// It does not say so. Browsers do, with each form and with whatever a script sends to change something.
    Unsaid,
}

/// By `Sec-Fetch-Site`, or where that is missing, by `Origin`, which names the host that was asked.
pub(super) fn site(headers: &HeaderMap) -> Site {
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        return if site == "same-origin" { Site::Same } else { Site::Other };
    }
    let Some(origin) = headers.get(ORIGIN) else { return Site::Unsaid };
    let origin = origin.to_str().ok().and_then(|origin| Some(origin.split_once("://")?.1));
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    match origin.zip(host) {
        Some((origin, host)) if origin.eq_ignore_ascii_case(host) => Site::Same,
        _ => Site::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(headers: &[(&'static str, &'static str)]) -> Site {
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        site(&headers.collect())
    }

    #[test]
    fn either_header_must_say_so() {
        const HOST: (&str, &str) = ("host", "quota.example:8080");
        assert_eq!(judged(&[("sec-fetch-site", "same-origin")]), Site::Same);
        assert_eq!(judged(&[HOST, ("origin", "http://Quota.example:8080")]), Site::Same);
        for other in ["cross-site", "same-site", "none", ""] {
            let same = ("origin", "http://quota.example:8080");
            assert_eq!(judged(&[HOST, same, ("sec-fetch-site", other)]), Site::Other, "{other}");
        }
        for other in
            ["null", "http://quota.example", "http://quota.example:8080.evil.example", "quota.example:8080"]
        {
            assert_eq!(judged(&[HOST, ("origin", other)]), Site::Other, "{other}");
        }
        assert_eq!(judged(&[("origin", "http://quota.example:8080")]), Site::Other);
        assert_eq!((judged(&[HOST]), judged(&[])), (Site::Unsaid, Site::Unsaid));
    }
}
