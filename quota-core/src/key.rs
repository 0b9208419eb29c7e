use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Longer names are held as a digest.
const MAX_PLAIN_BYTES: usize = 40;

/// Bytes of SHA-256 kept of a long name: 160 bits, as many as nobody finds two names for.
const DIGEST_BYTES: usize = 20;

/// `<prefix>:<id>`. Everything but printable ASCII, and `{`, `}`, `%` and `#`, is percent-encoded, so that no name
/// can end a hash tag or look like another; a long name is `#` and its digest, which no short one can spell.
pub(crate) fn encode(prefix: &str, id: &str) -> String {
    let mut key = String::with_capacity(prefix.len() + 1 + MAX_PLAIN_BYTES);
    key.push_str(prefix);
    key.push(':');
    if id.len() > MAX_PLAIN_BYTES {
        key.push('#');
        Sha256::digest(id.as_bytes()).iter().take(DIGEST_BYTES).for_each(|byte| hex(&mut key, *byte));
        return key;
    }
    for byte in id.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}' | b'%' | b'#') {
            key.push(char::from(byte));
        } else {
            key.push('%');
            hex(&mut key, byte);
        }
    }
    key
}

fn hex(text: &mut String, byte: u8) {
    // Writing to a String does not fail.
    let _ = write!(text, "{byte:02x}");
}
