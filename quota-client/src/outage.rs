use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// An outage is over when something worked and nothing has failed for so long: a service that answers every other
/// request is one outage, not thousands.
const QUIET: Duration = Duration::from_secs(1);

/// Tells where an outage begins and where it ends, so that each is logged once and not once a request.
#[derive(Debug, Default)]
pub(crate) struct Outage(Mutex<Option<Since>>);

#[derive(Clone, Copy, Debug)]
struct Since {
    began: Instant,
    failed: Instant,
    failures: u64,
}

/// An outage that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Over {
    pub(crate) lasted: Duration,
    pub(crate) failures: u64,
}

impl Outage {
    /// Something failed. Returns whether an outage begins with it.
    pub(crate) fn failed(&self, now: Instant) -> bool {
        let mut outage = self.0.lock();
        let began = outage.is_none();
        let since = outage.get_or_insert(Since { began: now, failed: now, failures: 0 });
        since.failed = now;
        since.failures += 1;
        began
    }

    /// Something worked. Returns the outage that is over with it.
    pub(crate) fn worked(&self, now: Instant) -> Option<Over> {
        let mut outage = self.0.lock();
        let Since { began, failures, .. } =
            outage.take_if(|since| now.saturating_duration_since(since.failed) >= QUIET)?;
        Some(Over { lasted: now.saturating_duration_since(began), failures })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_begins_once_and_ends_once() {
        let (outage, start) = (Outage::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(outage.worked(at(0)), None);
        assert_eq!([outage.failed(at(1)), outage.failed(at(1)), outage.failed(at(9))], [true, false, false]);
        assert_eq!(outage.worked(at(9)), None, "it may be flapping");
        assert_eq!(outage.worked(at(10)), Some(Over { lasted: Duration::from_secs(9), failures: 3 }));
        assert_eq!(outage.worked(at(11)), None);
        assert!(outage.failed(at(12)));
    }
}
