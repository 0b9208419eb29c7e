use crate::Invalid;

/// The longest name of a node, an RPC or a class, in bytes.
pub const MAX_LABEL_BYTES: usize = 256;

/// Refuses what cannot be the name of a node, an RPC or a class, as the field `field` gives it: too long, or with
/// control characters. Empty is absent.
pub fn check_label(field: &str, text: &str) -> Result<(), Invalid> {
    if text.len() > MAX_LABEL_BYTES {
        Err(Invalid::new(field, format!("must be at most {MAX_LABEL_BYTES} bytes")))
    } else if text.chars().any(char::is_control) {
        Err(Invalid::new(field, "must not contain control characters"))
    } else {
        Ok(())
    }
}
