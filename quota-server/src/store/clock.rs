use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use quota_core::Timestamp;

/// The clock of a store that has none of its own.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's.
    #[default]
    System,
    /// One that stands still until it is moved: for tests. Microseconds since the Unix epoch.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The present moment.
    pub fn now(&self) -> Timestamp {
        let micros = match self {
            Self::System => SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX)),
            Self::Manual(micros) => micros.load(Ordering::Relaxed),
        };
        Timestamp::from_micros(micros)
    }

    /// Moves a manual clock forward; the machine's goes by itself.
    pub fn advance(&self, by: Duration) {
        if let Self::Manual(micros) = self {
            micros.fetch_add(u64::try_from(by.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }
}
