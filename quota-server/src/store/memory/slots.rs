use std::collections::HashMap;

use parking_lot::Mutex;
use quota_core::{Slots, Timestamp};

use crate::store::SlotCall;

/// The slots of every class that was asked for. Classes are those of the configuration, so that there are few.
pub(super) struct MemorySlots {
    /// What was leased by a process before this one is not known.
    started: Timestamp,
    classes: Mutex<HashMap<Box<str>, Slots>>,
}

impl MemorySlots {
    pub(super) fn new(started: Timestamp) -> Self {
        Self { started, classes: Mutex::default() }
    }

    /// What `act` does with the slots of a class.
    pub(super) fn with<T>(&self, call: SlotCall<'_>, act: impl FnOnce(&mut Slots) -> T) -> T {
        let mut classes = self.classes.lock();
        if let Some(slots) = classes.get_mut(call.class) {
            return act(slots);
        }
        let lasts = u64::try_from(call.terms.lasts.as_micros()).unwrap_or(u64::MAX);
        let mut slots = Slots::opening(self.started.after_micros(lasts));
        let done = act(&mut slots);
        classes.insert(call.class.into(), slots);
        done
    }
}
