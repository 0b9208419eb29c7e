use parking_lot::Mutex;
use quota_core::Cost;
use tokio::time::Instant;

use super::Hold;
use crate::payers::Payers;
use crate::usage::Usage;

/// A price that counts as used here while the service is asked about a request: what is asked at the same time is compared
/// with it. Given back however that ends, unless it is kept for what then runs.
pub(crate) struct Early<'a> {
    usage: &'a Mutex<Usage>,
    payers: &'a Payers,
    hold: Option<Hold>,
}

impl<'a> Early<'a> {
    pub(crate) const fn new(usage: &'a Mutex<Usage>, payers: &'a Payers, hold: Option<Hold>) -> Self {
        Self { usage, payers, hold }
    }

    pub(crate) fn kept(mut self) -> Option<Hold> {
        self.hold.take()
    }
}

impl Drop for Early<'_> {
    fn drop(&mut self) {
        let release = self.hold.as_mut().and_then(|hold| hold.give_back(Cost::ZERO, true));
        if let Some(release) = release {
            self.usage.lock().release(self.payers, release, Instant::now());
        }
    }
}
