use http::HeaderMap;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};

/// W3C Trace Context, level 1: where in which trace, and what tracing systems add.
const HEADERS: [&str; 2] = ["traceparent", "tracestate"];

/// The longest that is handed on: what the standard wants of `tracestate`. What comes from a client of the fileserver must
/// not make the question too large to be asked.
const MOST_BYTES: usize = 512;

/// The trace that a request is a part of. It is handed on as it is, and not understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TraceContext(Vec<(&'static str, AsciiMetadataValue)>);

impl TraceContext {
    /// As headers tell it. The second is of no use without the first.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let read = |name| {
            let text = headers.get(name)?.to_str().ok().filter(|text| text.len() <= MOST_BYTES)?;
            Some((name, text.parse().ok()?))
        };
        Self(HEADERS.into_iter().map_while(read).collect())
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn write(&self, metadata: &mut MetadataMap) {
        for (name, value) in &self.0 {
            metadata.insert(*name, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn written(headers: &[(&'static str, &[u8])]) -> Vec<(String, String)> {
        let headers =
            headers.iter().map(|(name, value)| ((*name).try_into().unwrap(), (*value).try_into().unwrap()));
        let mut metadata = MetadataMap::new();
        TraceContext::of(&headers.collect()).write(&mut metadata);
        let written = metadata.into_headers();
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        written.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
    }

    #[test]
    fn what_tells_of_a_trace_is_handed_on_and_nothing_else() {
        let told = [("traceparent", PARENT.as_bytes()), ("tracestate", b"a=1,b=2"), ("baggage", b"c=3")];
        let expected = [("traceparent", PARENT), ("tracestate", "a=1,b=2")];
        assert_eq!(written(&told), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(written(&told[1..]), []);
        assert_eq!(written(&[]), []);
    }

    #[test]
    fn what_is_too_long_or_no_text_is_left_out() {
        let long = [b'a'; MOST_BYTES + 1];
        let parent = ("traceparent", PARENT.as_bytes());
        assert_eq!(written(&[parent, ("tracestate", &long)]).len(), 1);
        assert_eq!(written(&[parent, ("tracestate", &long[1..])]).len(), 2);
        assert_eq!(written(&[("traceparent", &long)]), []);
        assert_eq!(written(&[("traceparent", b"\xfc")]), []);
    }
}
