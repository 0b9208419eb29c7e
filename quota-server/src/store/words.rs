use std::time::Duration;

use quota_core::{Book, Said, Timestamp};

/// What operators have said, at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// When, by the store's clock.
    pub now: Timestamp,
    /// All of it; `None` where it is the version that was known.
    pub book: Option<Book>,
    /// How many words were left out, since they cannot be read.
    pub unreadable: u32,
}

/// What an operator says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saying<'a> {
    /// Of what: at most [`Saying::MAX_NAME_BYTES`], with a `:` in it.
    pub name: &'a str,
    /// At most [`Saying::MAX_TEXT_BYTES`], and not empty; `None` withdraws what holds.
    pub text: Option<&'a [u8]>,
    /// For how long; `None`: for ever.
    pub lasts: Option<Duration>,
}

impl Saying<'_> {
    /// The longest name.
    pub const MAX_NAME_BYTES: usize = 256;

    /// The longest text.
    pub const MAX_TEXT_BYTES: usize = 4096;
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When, by the store's clock.
    pub now: Timestamp,
    /// Whether it holds.
    pub said: Said,
}
