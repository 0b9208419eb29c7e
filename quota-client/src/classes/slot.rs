use std::sync::Arc;

use tokio::time::Instant;

use super::Class;
use crate::Meter;

/// Leave to be in progress, as a request of a class with a cap. Its slot is free again when it is dropped, however the work ended; for
/// a stream, keep it until the stream has ended.
#[must_use = "the slot is free again when this is dropped"]
pub struct Slot {
    class: Arc<Class>,
    key: usize,
}

impl Slot {
    pub(super) fn new(class: &Arc<Class>, key: usize) -> Self {
        Self { class: Arc::clone(class), key }
    }

    /// Whose work it is: where it runs for longer than the class allows, [`Meter::is_shed`] tells it to end.
    pub fn of(&self, meter: &Meter) {
        let late = self.class.holding.lock().attach(self.key, meter);
        if let (Some(denial), Some(work)) = (late, meter.work().upgrade()) {
            // One that was told something already ends anyway.
            let _ = work.end(denial);
        }
    }

    /// Whether the class limits how long a request may run.
    pub(crate) fn is_timed(&self) -> bool {
        self.class.holding.lock().is_timed()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.class.holding.lock().end(self.key, Instant::now());
        self.class.hand_out();
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("class", &self.class.name).finish_non_exhaustive()
    }
}
