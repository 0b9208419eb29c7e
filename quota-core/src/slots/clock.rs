use crate::Timestamp;

/// The store's clock as leases see it: where it steps back, it stands still for that moment and goes on from there. A lease
/// that would last an hour longer, since the clock was set back by one, would hold its slots for that hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SteadyClock {
    last: Timestamp,
    /// How far the clock has stepped back in all, in microseconds.
    behind: u64,
}

impl SteadyClock {
    /// The moment, of what the store's clock says.
    pub(super) fn read(&mut self, clock: Timestamp) -> Timestamp {
        let now = clock.after_micros(self.behind);
        if now < self.last {
            self.behind += self.last.since(now);
        }
        self.last = self.last.max(now);
        self.last
    }
}
