use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The SHA-256 of a token: all that is kept of one. It is not shown, since a short token could be guessed from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// That of a token.
    pub fn of(token: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// As `sha256sum` writes it: 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut digest = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != digest.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in digest.iter_mut().zip(pairs) {
            *byte = (digit(*high)? << 4) | digit(*low)?;
        }
        Some(Self(digest))
    }

    /// Whether both are of the same token; it takes the same time where they are not.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(***)")
    }
}

fn digit(hex: u8) -> Option<u8> {
    char::from(hex).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
