use super::InvalidAccount;

/// Slashes at the ends, doubled slashes and one trailing `.git` make no new repository. Case and Unicode form
/// are kept, since Git servers disagree about them.
pub(super) fn normalise(id: &str) -> Result<Box<str>, InvalidAccount> {
    let mut segments: Vec<&str> = id.split('/').filter(|segment| !segment.is_empty()).collect();
    if let Some(last) = segments.last_mut()
        && let Some(stem) = last.strip_suffix(".git")
        && !stem.is_empty()
    {
        *last = stem;
    }
    if segments.is_empty() {
        return Err(InvalidAccount::Empty);
    }
    if segments.iter().any(|segment| matches!(*segment, "." | "..")) {
        return Err(InvalidAccount::DotSegment);
    }
    Ok(segments.join("/").into())
}
