use std::sync::Arc;

use quota_core::{Breach, Mode};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::quota::Label;

/// The most that follow at a time.
const MAX_READERS: usize = 32;

/// Denials that are held for the slowest reader; beyond, it misses the oldest.
const BUFFER: usize = 256;

/// Tells denials as they happen on this server, to those who follow.
pub struct DenialEvents {
    sender: broadcast::Sender<Arc<DenialEvent>>,
    places: Arc<Semaphore>,
}

/// A denial, or what would have been one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialEvent {
    /// The fileserver.
    pub node: Label,
    /// Which RPC.
    pub rpc: Label,
    /// `Enforce` where it was denied, `Shadow` where it would have been.
    pub mode: Mode,
    /// The limit that was reached.
    pub breach: Breach,
}

/// One who follows. The place is free again when it is dropped.
pub struct Listening {
    receiver: broadcast::Receiver<Arc<DenialEvent>>,
    _place: OwnedSemaphorePermit,
}

/// What one who follows is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A denial.
    Denial(Arc<DenialEvent>),
    /// So many were not told, since the reader was too slow.
    Missed(u64),
}

impl Default for DenialEvents {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BUFFER), places: Arc::new(Semaphore::new(MAX_READERS)) }
    }
}

impl DenialEvents {
    /// Begins to follow; `None` where as many follow as may.
    pub fn listen(&self) -> Option<Listening> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(Listening { receiver: self.sender.subscribe(), _place: place })
    }

    /// Tells those who follow; makes nothing where nobody does.
    pub(super) fn tell(&self, event: impl FnOnce() -> DenialEvent) {
        if self.sender.receiver_count() > 0 {
            // The last may have gone in between.
            let _ = self.sender.send(Arc::new(event()));
        }
    }
}

impl Listening {
    /// What comes next; `None` when the server is gone.
    pub async fn next(&mut self) -> Option<Told> {
        match self.receiver.recv().await {
            Ok(event) => Some(Told::Denial(event)),
            Err(RecvError::Lagged(missed)) => Some(Told::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}
