use super::part::Part;

/// What another server has denied.
///
/// Whatever it says: it is read as it was written.
pub(crate) fn post(content: &[u8]) {
    let Some(part) = Part::read(content) else { return };
    assert_eq!(Part::read(&part.write()).as_ref(), Some(&part));
    part.denials().for_each(drop);
}
