use std::time::Duration;

use super::no_slot::NoSlotReason;

/// What operators see of a class on this fileserver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassFigures {
    /// Requests in progress.
    pub(crate) in_progress: usize,
    /// Those that wait.
    pub(crate) queued: usize,
    /// Slots that are leased.
    pub(crate) leased: u32,
    /// Requests that had no slot, or ran for too long, by reason.
    pub(crate) refused: [u64; NoSlotReason::ALL.len()],
    /// How long those that ran had waited, and how long those took that have ended, since this was last looked at.
    pub(crate) waited: Vec<Duration>,
    pub(crate) took: Vec<Duration>,
}
