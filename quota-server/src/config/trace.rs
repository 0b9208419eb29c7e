use axum::http::Uri;

use super::error::ConfigError;
use super::layers::Settings;
use super::share;

/// Where traces go, and how many.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The collector, which is told by OTLP over gRPC.
    pub otlp: Uri,
    /// The share that is told of requests whose callers have not decided that, 0 to 1.
    pub sample: f64,
}

impl Trace {
    /// None where nobody is told.
    pub(super) fn read(settings: &Settings) -> Result<Option<Self>, ConfigError> {
        let otlp = settings.text(&["trace", "otlp"], |text| match text {
            "" => Ok(None),
            text => collector(text).map(Some).ok_or_else(|| {
                "must be http://host:port, where a collector takes OTLP over gRPC, such as \
                 \"http://127.0.0.1:4317\""
                    .into()
            }),
        })?;
        let sample = settings.decimal(&["trace", "sample"], share)?;
        Ok(otlp.map(|otlp| Self { otlp, sample }))
    }
}

/// It is shown in the log, so there is no place for a password in it.
fn collector(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    let authority = uri.authority()?;
    let is_plain =
        uri.scheme_str() == Some("http") && matches!(uri.path(), "" | "/") && uri.query().is_none();
    let is_named = !authority.host().is_empty() && authority.port_u16().is_some_and(|port| port > 0);
    (is_plain && is_named && !authority.as_str().contains('@')).then_some(uri)
}
