use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use quota_core::Timestamp;

/// The clock of a store that has none of its own. It never steps back.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's time at the start, and from then on its monotonic clock.
    Machine {
        /// When the clock was made.
        started: Instant,
        /// Which moment that was.
        at: Timestamp,
    },
    /// One that stands still until it is moved: for tests. Microseconds since the Unix epoch.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's clock.
    pub fn machine() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::Machine { started: Instant::now(), at: Timestamp::from_micros(micros(since_epoch)) }
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(match self {
            Self::Machine { started, at } => at.as_micros().saturating_add(micros(started.elapsed())),
            Self::Manual(micros) => micros.load(Ordering::Relaxed),
        })
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
