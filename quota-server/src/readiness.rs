use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::safety::StoreSafety;
use crate::store::{Store, StoreError};

/// For so long what was seen is told to whoever asks: asking takes no token, and looking is a write to the store.
const FRESH: Duration = Duration::from_millis(100);

/// A look at the store, for all who ask while it lasts and shortly after.
type Look = Shared<BoxFuture<'static, Result<(), StoreError>>>;

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

/// Whether the server takes requests and its store takes writes. Every protocol that says so asks here.
pub(crate) struct Readiness {
    store: Arc<dyn Store>,
    kind: StoreKind,
    safety: StoreSafety,
    draining: watch::Sender<bool>,
    /// What was last seen, for those who follow; gone when the server stops, which ends what they follow.
    seen: Mutex<Option<watch::Sender<bool>>>,
    /// The last look, and when it began.
    look: Mutex<Option<(Instant, Look)>>,
}

/// Why the server is not ready.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotReady {
    #[error("draining: the server stops")]
    Draining,
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl Readiness {
    /// Taking requests.
    pub(crate) fn new(store: Arc<dyn Store>, kind: StoreKind) -> Self {
        let seen = Mutex::new(Some(watch::Sender::new(false)));
        let (safety, draining) = (StoreSafety::default(), watch::Sender::new(false));
        Self { store, kind, safety, draining, seen, look: Mutex::default() }
    }

    /// Where usage is kept.
    pub(crate) const fn store(&self) -> StoreKind {
        self.kind
    }

    /// Looks whether the store may lose what it holds. To be called at the start, and about once a minute.
    pub(crate) async fn look_at_safety(&self, metrics: &Metrics) {
        self.safety.look(&*self.store, metrics).await;
    }

    /// What an operator must know of the store.
    pub(crate) fn detail(&self) -> String {
        let detail = self.kind.detail();
        self.safety.detail().map_or_else(|| detail.to_owned(), |risks| format!("{detail}; {risks}"))
    }

    /// Looks, within the deadline of the store.
    pub(crate) async fn probe(&self) -> Result<(), NotReady> {
        let ready = self.look().await;
        self.tell(ready.is_ok());
        ready
    }

    /// Whether it is ready, now and at each change that is seen, until the server stops; `None` when it has.
    pub(crate) async fn follow(&self) -> Option<watch::Receiver<bool>> {
        // What was seen last may be old: nobody looks while nobody asks.
        let _ = self.probe().await;
        self.seen.lock().as_ref().map(watch::Sender::subscribe)
    }

    /// Looks again if somebody follows. To be called at intervals.
    pub(crate) async fn refresh(&self) {
        let is_followed = self.seen.lock().as_ref().is_some_and(|seen| seen.receiver_count() > 0);
        if is_followed {
            let _ = self.probe().await;
        }
    }

    /// From now on, the server is about to stop.
    pub(crate) fn drain(&self) {
        self.draining.send_replace(true);
        self.tell(false);
    }

    /// Ends when the server is about to stop.
    pub(crate) async fn drained(&self) {
        // The sender lives as long as this.
        let _ = self.draining.subscribe().wait_for(|draining| *draining).await;
    }

    /// Ends what is followed, so that it holds nobody up.
    pub(crate) fn end(&self) {
        self.seen.lock().take();
    }

    async fn look(&self) -> Result<(), NotReady> {
        if self.is_draining() {
            return Err(NotReady::Draining);
        }
        Ok(self.look_at_store().await?)
    }

    fn look_at_store(&self) -> Look {
        let mut last = self.look.lock();
        if let Some((began, look)) = &*last
            && (look.peek().is_none() || began.elapsed() < FRESH)
        {
            return look.clone();
        }
        let store = Arc::clone(&self.store);
        // By a task of its own, so that it goes on when who began it has given up.
        let task = tokio::spawn(async move { store.probe().await });
        let ended = |error: tokio::task::JoinError| Err(StoreError::Unreachable(error.to_string()));
        let look = task.map(move |looked| looked.unwrap_or_else(ended)).boxed().shared();
        *last = Some((Instant::now(), look.clone()));
        look
    }

    fn tell(&self, ready: bool) {
        if let Some(seen) = &*self.seen.lock() {
            // One that looked before the server began to drain may come to tell after.
            let ready = ready && !self.is_draining();
            seen.send_if_modified(|seen| std::mem::replace(seen, ready) != ready);
        }
    }

    fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }
}
