use super::refusal::Reason;

/// What one set of limits is doing, and what it did since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// The limit in force, per key.
    pub(crate) limit: usize,
    /// Permits that are held, of all keys together.
    pub(crate) in_flight: usize,
    /// Requests that wait for one, of all keys together.
    pub(crate) queued: usize,
    /// Repositories or addresses that have a request in flight.
    pub(crate) keys: usize,
    /// How many got a permit.
    pub(crate) acquired: u64,
    /// How many got none, in the order of [`Reason::ALL`].
    pub(crate) refused: [u64; Reason::ALL.len()],
}
