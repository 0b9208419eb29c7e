use std::time::Duration;

use tonic::Status;

use crate::Denial;

/// No permit was given: the request was not started, and may be tried again.
///
/// As a [`Denial`](crate::Denial) it becomes the answer of a gRPC or HTTP service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// After this long a place is kept for the caller, as far as can be known from how fast slots become free.
    pub retry_after: Duration,
    /// How long the request had waited.
    pub waited: Duration,
    /// The limit of the repository or address.
    pub limit: usize,
    /// How many of its requests were in flight.
    pub in_flight: usize,
    /// How many of its requests were waiting.
    pub queued: usize,
}

/// Reason a permit was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// As many as may wait were waiting already.
    QueueFull,
    /// The request waited as long as the settings allow.
    WaitedTooLong,
    /// The caller's own deadline passed.
    DeadlinePassed,
}

impl Reason {
    /// Every reason, in the order in which they are counted.
    pub(crate) const ALL: [Self; 3] = [Self::QueueFull, Self::WaitedTooLong, Self::DeadlinePassed];

    /// The name in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::WaitedTooLong => "waited_too_long",
            Self::DeadlinePassed => "deadline_passed",
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { waited, limit, in_flight, queued, .. } = self;
        match self.reason {
            Reason::QueueFull => f.write_str("maximum queue size reached")?,
            Reason::WaitedTooLong => write!(f, "maximum time in concurrency queue reached, {waited:.1?}")?,
            Reason::DeadlinePassed => write!(f, "deadline passed in concurrency queue after {waited:.1?}")?,
        }
        write!(f, ": not started; {in_flight} in flight of {limit}, {queued} queued")
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for Status {
    /// As that of the [`Denial`].
    fn from(refusal: Refusal) -> Self {
        Denial::from(refusal).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_that_nothing_was_started() {
        let refusal = |reason| Refusal {
            reason,
            retry_after: Duration::from_millis(1_001),
            waited: Duration::from_millis(2_000),
            limit: 10,
            in_flight: 11,
            queued: 50,
        };
        assert_eq!(
            refusal(Reason::QueueFull).to_string(),
            "maximum queue size reached: not started; 11 in flight of 10, 50 queued"
        );
        assert_eq!(
            Status::from(refusal(Reason::WaitedTooLong)).message(),
            "maximum time in concurrency queue reached, 2.0s: not started; 11 in flight of 10, 50 queued; \
             try again in 2 s"
        );
    }
}
