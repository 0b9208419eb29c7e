use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many large bodies are read at a time, whoever sends them; of further ones a beginning waits.
const MOST: usize = 32;

/// Bodies of which few are read at a time: each is kept as a whole until it is answered.
#[derive(Clone)]
pub(crate) struct Large(Arc<Semaphore>);

impl Large {
    /// What has more bytes is large: a report of a hundred requests is not.
    pub(crate) const BYTES: usize = 64 << 10;

    /// Waits for a place. It is never closed.
    pub(crate) async fn enter(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_owned().await.ok()
    }
}

impl Default for Large {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}
