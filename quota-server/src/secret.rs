//! Secrets that are written by people: tokens and keys.

use std::io::{self, Read as _};
use std::path::Path;

use crate::files;

/// What is shorter could be guessed.
const MIN_BYTES: usize = 16;

/// What is longer is no secret, and not worth its digest.
pub(crate) const MAX_BYTES: usize = 1024;

/// Whether a text may be a secret, be it `a token` or `a key`; else what would be one. The text is not repeated.
pub(crate) fn check(text: &[u8], what: &str) -> Result<(), String> {
    if !(MIN_BYTES..=MAX_BYTES).contains(&text.len()) {
        return Err(format!("must be {what} of {MIN_BYTES} to {MAX_BYTES} bytes"));
    }
    if !text.iter().all(u8::is_ascii_graphic) {
        return Err("must be visible ASCII, without spaces".to_owned());
    }
    Ok(())
}

/// The first line of a file, which is a secret.
pub(crate) fn read(file: &Path, what: &str) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // What follows the first line is of no matter, and of any length.
    files::open(file)?.take(2 * MAX_BYTES as u64).read_to_end(&mut text)?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    check(line, what)
        .map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, format!("the first line {reason}")))?;
    Ok(line.to_vec())
}
