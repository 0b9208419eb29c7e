use quota_proto::Invalid;

/// The longest name of a node or an RPC, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// A name that is no account: of a node, an RPC or a class. Empty is absent; printable, at most [`MAX_NAME_BYTES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label(Option<Box<str>>);

impl Label {
    /// From the text of the field `field`.
    pub fn new(field: &str, text: Option<&str>) -> Result<Self, Invalid> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Self(None)) };
        if text.len() > MAX_NAME_BYTES {
            return Err(Invalid::new(field, format!("must be at most {MAX_NAME_BYTES} bytes")));
        }
        if text.chars().any(char::is_control) {
            return Err(Invalid::new(field, "must not contain control characters"));
        }
        Ok(Self(Some(text.into())))
    }

    /// The name, if there is one.
    pub fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The name, or nothing: for logs.
    pub fn as_str(&self) -> &str {
        self.as_deref().unwrap_or_default()
    }
}
