use super::InvalidAccount;

/// Slashes at the ends, doubled slashes and one trailing `.git` make no new repository. Case and Unicode form
/// are kept, since Git servers disagree about them. A name that would still end with `.git` is kept whole: what is
/// listed, and typed in again, must not become another repository.
pub(super) fn normalise(id: &str) -> Result<Box<str>, InvalidAccount> {
    let mut segments = id.split('/').filter(|segment| !segment.is_empty()).peekable();
    let mut name = String::with_capacity(id.len());
    while let Some(segment) = segments.next() {
        let stem = segment.strip_suffix(".git").filter(|stem| !stem.is_empty() && !stem.ends_with(".git"));
        let stem = stem.filter(|_| segments.peek().is_none());
        let segment = stem.unwrap_or(segment);
        if matches!(segment, "." | "..") {
            return Err(InvalidAccount::DotSegment);
        }
        if !name.is_empty() {
            name.push('/');
        }
        name.push_str(segment);
    }
    if name.is_empty() { Err(InvalidAccount::Empty) } else { Ok(name.into()) }
}
