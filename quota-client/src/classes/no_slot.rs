use std::sync::Arc;
use std::time::Duration;

/// There was no slot for a request of its class: it was not started, and may be tried again. That is no fault of its accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoSlot {
    /// The name of the class.
    pub class: Arc<str>,
    /// Why.
    pub reason: NoSlotReason,
    /// When to try again.
    pub retry_after: Duration,
}

/// Reason that there was no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoSlotReason {
    /// As many requests of the class are in progress as may be, everywhere, and those of this class do not wait.
    AtCap,
    /// The same of this fileserver.
    AtNodeCap,
    /// The service does not know yet who holds its slots, since its store was started.
    Opening,
    /// As many leases of the class are kept as may be.
    TooManyLeases,
    /// As many wait as may.
    QueueFull,
    /// It waited as long as requests of the class may.
    WaitedTooLong,
    /// The caller's own deadline passed.
    DeadlinePassed,
    /// The service does not answer, and what it leased has ended.
    Away,
    /// It has run for as long as requests of the class may, and is told to stop.
    RanTooLong,
}

impl NoSlotReason {
    /// Every reason, in the order in which they are counted.
    pub(crate) const ALL: [Self; 9] = [
        Self::AtCap,
        Self::AtNodeCap,
        Self::Opening,
        Self::TooManyLeases,
        Self::QueueFull,
        Self::WaitedTooLong,
        Self::DeadlinePassed,
        Self::Away,
        Self::RanTooLong,
    ];

    /// The name in metrics, logs and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AtCap => "at_cap",
            Self::AtNodeCap => "at_node_cap",
            Self::Opening => "opening",
            Self::TooManyLeases => "too_many_leases",
            Self::QueueFull => "queue_full",
            Self::WaitedTooLong => "waited_too_long",
            Self::DeadlinePassed => "deadline_passed",
            Self::Away => "away",
            Self::RanTooLong => "ran_too_long",
        }
    }
}

impl std::fmt::Display for NoSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let why = match self.reason {
            NoSlotReason::AtCap => "all its slots are in use",
            NoSlotReason::AtNodeCap => "all its slots of this fileserver are in use",
            NoSlotReason::Opening => "it is not known yet who holds its slots",
            NoSlotReason::TooManyLeases => "as many leases are kept as may be",
            NoSlotReason::QueueFull => "all its slots are in use, and as many requests wait as may",
            NoSlotReason::WaitedTooLong => "no slot became free in time",
            NoSlotReason::DeadlinePassed => "no slot became free before the deadline",
            NoSlotReason::Away => "the quota service does not answer",
            NoSlotReason::RanTooLong => "it ran for too long",
        };
        write!(f, "no slot for a request of class {}: {why}", self.class)
    }
}
