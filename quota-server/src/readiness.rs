use std::sync::atomic::{AtomicBool, Ordering};

/// Where usage is kept, as far as an operator must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// In this process.
    Memory,
    /// In a Redis.
    Redis,
}

impl StoreKind {
    /// The name in logs and answers.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redis => "redis",
        }
    }

    /// What follows for more than one server.
    pub(crate) const fn detail(self) -> &'static str {
        match self {
            Self::Memory => {
                "usage is kept in this process: lost when it stops, and not shared with another server"
            }
            Self::Redis => "usage is kept in Redis: every server on it counts together",
        }
    }
}

/// Whether the server takes requests, and where it keeps usage.
pub(crate) struct Readiness {
    draining: AtomicBool,
    store: StoreKind,
}

impl Readiness {
    /// Taking requests.
    pub(crate) const fn new(store: StoreKind) -> Self {
        Self { draining: AtomicBool::new(false), store }
    }

    /// From now on, it takes no more.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether it is about to stop.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Where usage is kept.
    pub(crate) const fn store(&self) -> StoreKind {
        self.store
    }
}
