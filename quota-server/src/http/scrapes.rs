//! `/metrics`: takes no token, and to write it takes many milliseconds where there are many nodes. So it is written once for all who ask at
//! about the same time, aside from what answers requests, and for a tenth of one core at the most.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex as Locked;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use crate::metrics::Metrics;

/// After a text was written, so many times as long as it took nobody writes another.
const REST: u32 = 9;

/// What is written, or why it cannot be.
type Text = Result<Bytes, Arc<str>>;

/// Who asks, and waits for the next text.
#[derive(Default)]
pub(super) struct Scrapes {
    /// Not begun: whoever asks now is told nothing that is older than his question.
    next: Locked<Option<Shared<BoxFuture<'static, Text>>>>,
    /// One writes at a time, not before a moment.
    turn: Mutex<Option<Instant>>,
}

impl Scrapes {
    /// The metrics as they are at some moment after this was asked.
    pub(super) async fn text(self: Arc<Self>, metrics: Arc<Metrics>) -> Text {
        let text = self.next.lock().get_or_insert_with(|| Arc::clone(&self).write(metrics)).clone();
        text.await
    }

    /// By a task of its own, so that it goes on when who began it has given up.
    fn write(self: Arc<Self>, metrics: Arc<Metrics>) -> Shared<BoxFuture<'static, Text>> {
        let task = tokio::spawn(async move {
            let mut turn = self.turn.lock().await;
            if let Some(begin) = *turn {
                sleep_until(begin).await;
            }
            self.next.lock().take();
            let began = Instant::now();
            let text = spawn_blocking(move || metrics.encode()).await;
            let took: Duration = began.elapsed();
            *turn = Some(Instant::now() + took * REST);
            let text = text.map_err(|error| error.to_string())?;
            text.map(Bytes::from).map_err(|error| error.to_string())
        });
        let text = task.map(|ended| ended.map_err(|error| error.to_string()).flatten().map_err(Arc::from));
        text.boxed().shared()
    }
}
