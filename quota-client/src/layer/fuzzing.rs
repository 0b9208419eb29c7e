use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

/// A header `grpc-timeout`.
///
/// Whatever it says: it is a moment that has not passed, and no longer from now than its digits can say in hours.
pub(crate) fn deadline(value: &str) {
    const MOST_HOURS: u64 = 99_999_999;
    let Ok(value) = HeaderValue::from_str(value) else { return };
    let began = Instant::now();
    let deadline = super::deadline::of(&HeaderMap::from_iter([(
        http::header::HeaderName::from_static("grpc-timeout"),
        value,
    )]));
    let Some(deadline) = deadline else { return };
    assert!(deadline >= began);
    assert!(deadline.duration_since(Instant::now()).as_secs() <= MOST_HOURS * 3600);
}
