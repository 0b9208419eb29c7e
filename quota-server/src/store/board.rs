use std::time::Duration;

use quota_core::{Timestamp, WindowLength};

/// Where servers on one store tell each other what each of them saw. It decides nothing: what is lost there is missing in a
/// list for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    /// The heaviest accounts of the last minute.
    Top,
    /// What was denied, and would have been, in the last hours.
    Denials,
}

impl Board {
    /// For how long what was denied is told.
    pub const DENIALS_KEPT: Duration = Duration::from_secs(24 * 3600);

    /// The name in keys.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Top => "top",
            Self::Denials => "denials",
        }
    }

    /// How long a post is kept after it was last written.
    pub(super) fn lifetime(self, window: WindowLength) -> Duration {
        match self {
            Self::Top => (2 * window.length()).max(Duration::from_secs(2)),
            Self::Denials => Self::DENIALS_KEPT,
        }
    }

    /// The most posts: servers, and of denials the parts of a day by them.
    pub const fn most(self) -> usize {
        match self {
            Self::Top => 64,
            Self::Denials => 8192,
        }
    }
}

/// What other servers have posted, at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posts {
    /// When, by the store's clock.
    pub now: Timestamp,
    /// In no order.
    pub contents: Vec<Vec<u8>>,
}
