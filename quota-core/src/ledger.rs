use std::time::Duration;

use crate::{Bound, Cost, Mark, Marks, PerResource, Tick, Timestamp, Usage, Window, WindowLength, marks};

/// What is kept of an account: its window, and which reports are already in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    window: Window,
    marks: Marks,
}

/// A cost, and how long ago it was spent, by the caller's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Less than the window's length: what is older does not count any more.
    pub age: Duration,
    /// What was spent.
    pub cost: Cost,
}

/// Part of a reservation, given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The bucket that it was reserved in.
    pub tick: Tick,
    /// How much.
    pub amounts: Cost,
}

/// What became of a report on one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was counted.
    Applied {
        /// How many releases asked for more than their bucket held.
        excess_releases: u32,
    },
    /// It had been counted before; nothing changed.
    Duplicate,
    /// The account remembers as many sources as it can; nothing changed.
    TooManySources,
}

impl Ledger {
    /// The window, as of the last [`advance`](Self::advance).
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// The bucket to take as now for all accounts of a call: the clock's, or the newest mark that is ahead of it by
    /// no more than the tolerance. A mark further ahead does not count, and is rebased.
    pub fn now<'a>(
        clock: Timestamp,
        length: WindowLength,
        ledgers: impl IntoIterator<Item = &'a Self>,
    ) -> Tick {
        let clock = length.tick(clock);
        let ahead = clock..=clock + length.tolerance();
        ledgers
            .into_iter()
            .map(|ledger| ledger.window.mark())
            .filter(|mark| ahead.contains(mark))
            .fold(clock, Tick::max)
    }

    /// Brings window and marks to `now`. Returns whether they were rebased, since the clock had stepped back.
    pub fn advance(&mut self, now: Tick) -> bool {
        let rebased_by = self.window.advance(now);
        self.marks.rebase(rebased_by);
        self.marks.advance(now);
        rebased_by > 0
    }

    /// Counts a report, once: releases first, then charges. [`advance`](Self::advance) comes before.
    pub fn settle(
        &mut self,
        mark: Option<Mark>,
        charges: &[Charge],
        releases: &[Release],
        clock: Timestamp,
        length: WindowLength,
    ) -> Settled {
        match mark.map(|mark| self.marks.standing(mark)) {
            Some(marks::Standing::Duplicate) => return Settled::Duplicate,
            Some(marks::Standing::Full) => return Settled::TooManySources,
            Some(marks::Standing::New) | None => {}
        }
        let mut excess_releases = 0;
        for release in releases {
            excess_releases += u32::from(self.window.release(release.tick, release.amounts));
        }
        for charge in charges {
            self.window.add(length.tick(clock.before(charge.age)), charge.cost);
        }
        if let Some(mark) = mark {
            self.marks.set(mark, self.window.mark());
        }
        Settled::Applied { excess_releases }
    }

    /// Whether nothing would be lost if it were dropped: no cost in the window, no mark alive.
    pub fn is_idle(&self) -> bool {
        *self.window.usage() == Usage::default() && self.marks.is_empty()
    }
}

/// Compares all accounts of a request with their enforced limits, and where all are below, reserves the price on
/// all of them; else on none. [`Ledger::advance`] comes before. Returns whether the request is allowed.
pub fn admit(accounts: &mut [(&mut Ledger, PerResource<Bound>)], price: Cost) -> bool {
    let refused = accounts.iter().any(|(ledger, bounds)| {
        bounds.iter().any(|(resource, bound)| bound.refuses(ledger.window.usage()[resource]))
    });
    if !refused {
        for (ledger, _) in accounts.iter_mut() {
            let now = ledger.window.mark();
            ledger.window.add(now, price);
        }
    }
    !refused
}

#[cfg(test)]
mod tests;
