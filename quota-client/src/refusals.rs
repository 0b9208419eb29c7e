//! What is said in the log of requests that got no permit. One that is hammered refuses thousands a second: of those in a
//! second one is told, with the number of the others since the last.

use std::time::Duration;

use parking_lot::Mutex;
use quota_core::Kind;
use tokio::time::Instant;

use crate::{Refusal, Request};

const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    last: Option<Instant>,
    others: u64,
}

impl Refusals {
    pub(crate) fn tell(&self, request: &Request, refusal: &Refusal, now: Instant) {
        if let Some(others) = self.is_due(now) {
            log(request, refusal, others);
        }
    }

    /// How many were not told since the last that was, where one may be told now.
    fn is_due(&self, now: Instant) -> Option<u64> {
        let mut told = self.0.lock();
        if told.last.is_some_and(|last| now.saturating_duration_since(last) < EVERY) {
            told.others += 1;
            return None;
        }
        told.last = Some(now);
        Some(std::mem::take(&mut told.others))
    }
}

/// The fields that operators of Gitaly know.
fn log(request: &Request, refusal: &Refusal, others: u64) {
    tracing::info!(
        limit.concurrency_type = request.rpc_name(),
        limit.repo = request.name(Kind::Repo),
        limit.ip = request.address().map(|ip| ip.to_string()),
        limit.concurrency_queue_length = refusal.queued,
        limit.concurrency_queue_ms = u64::try_from(refusal.waited.as_millis()).unwrap_or(u64::MAX),
        limit.concurrency_in_progress = refusal.in_flight,
        limit.concurrency_dropped = refusal.reason.as_str(),
        limit.authenticated = request.is_authenticated(),
        limit.retry_after = ?refusal.retry_after,
        others,
        "a request got no permit, and was not started"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_a_second_is_told_with_the_number_of_the_others() {
        let start = Instant::now();
        let refusals = Refusals::default();
        let due = |millis| refusals.is_due(start + Duration::from_millis(millis));
        assert_eq!(
            [due(0), due(1), due(999), due(1000), due(1001), due(5000)],
            [Some(0), None, None, Some(2), None, Some(1)]
        );
    }
}
