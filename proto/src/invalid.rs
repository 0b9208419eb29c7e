/// A field of a request that is refused, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Invalid {
    /// The path of the field, such as `charges[3].cost.cpu`.
    pub field: String,
    /// What it must be, or must not be.
    pub reason: String,
}

impl Invalid {
    /// From the path of a field and what is wrong with it.
    pub fn new(field: impl Into<String>, reason: impl ToString) -> Self {
        Self { field: field.into(), reason: reason.to_string() }
    }

    /// The same, with the path continued at its front: the field is part of `parent`.
    #[must_use]
    pub fn within(self, parent: &str) -> Self {
        Self { field: format!("{parent}.{}", self.field), ..self }
    }
}
