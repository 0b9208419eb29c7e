use quota_proto::{Invalid, check_label};

/// A name that is no account: of a node, an RPC or a class. Empty is absent; [`check_label`] says what it may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label(Option<Box<str>>);

impl Label {
    /// From the text of the field `field`.
    pub fn new(field: &str, text: Option<&str>) -> Result<Self, Invalid> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Self(None)) };
        check_label(field, text)?;
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
