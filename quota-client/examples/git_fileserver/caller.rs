use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quota_client::{Account, Ipv6Prefix, Kind};

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) user: String,
    pub(crate) ip: IpAddr,
}

impl Caller {
    /// The name that HTTP Basic (RFC 7617) gives, without a look at the password: this is a demonstration. A name that
    /// the quota service would not take is nobody's: whoever has it would not be charged.
    pub(crate) fn of(headers: &HeaderMap, ip: IpAddr) -> Option<Self> {
        let (scheme, credentials) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let credentials = String::from_utf8(STANDARD.decode(credentials.trim()).ok()?).ok()?;
        let (user, _) = credentials.split_once(':')?;
        Account::new(Kind::User, user, Ipv6Prefix::default()).ok()?;
        Some(Self { user: user.to_owned(), ip })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn user(authorization: &str) -> Option<String> {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, authorization.parse().unwrap())]);
        Caller::of(&headers, Ipv4Addr::LOCALHOST.into()).map(|caller| caller.user)
    }

    #[test]
    fn the_user_is_the_name_of_http_basic() {
        assert_eq!(user("Basic YWxpY2U6c2VjcmV0").as_deref(), Some("alice"));
        assert_eq!(user("basic YWxpY2U6").as_deref(), Some("alice"));
        for nobody in ["Bearer YWxpY2U6", "Basic", "Basic ?", "Basic YWxpY2U=", "Basic OnNlY3JldA=="] {
            assert_eq!(user(nobody), None, "{nobody}");
        }
        for name in ["a\nb".to_owned(), "x".repeat(1025)] {
            assert_eq!(user(&format!("Basic {}", STANDARD.encode(format!("{name}:")))), None, "{name:?}");
        }
    }
}
