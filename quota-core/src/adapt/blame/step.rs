use super::{Blame, Blamed, Cut, Cuts, Load, ORDER, Spending};
use crate::{Kind, PerKind, Ratio, Timestamp};

/// One calibration.
#[derive(Clone, Debug)]
pub(in crate::adapt) struct Step<'a> {
    pub(in crate::adapt) blame: &'a Blame,
    pub(in crate::adapt) load: &'a Load,
    /// No account's limit is lower, nor higher; none of a kind is cut where both are the same.
    pub(in crate::adapt) min: PerKind<u64>,
    pub(in crate::adapt) max: PerKind<u64>,
    /// What is added at most to the limit of one that has no use for it.
    pub(in crate::adapt) step: PerKind<u64>,
    /// How many intervals a window has, rounded down; at least 1.
    pub(in crate::adapt) intervals: u64,
    pub(in crate::adapt) pressure: Ratio,
    pub(in crate::adapt) hot: bool,
    /// The kernel killed a process for want of the resource.
    pub(in crate::adapt) killed: bool,
    pub(in crate::adapt) now: Timestamp,
}

impl Step<'_> {
    pub(in crate::adapt) fn take(&self, cuts: &mut Cuts) {
        let spent = self.pressure.of(self.load.capacity);
        self.average(cuts, spent);
        for kind in Kind::ALL {
            self.move_level(cuts, kind);
        }
        let excess = spent.saturating_sub(self.target());
        if self.killed {
            self.blame(cuts, excess.max(spent - self.blame.backoff_factor.of(spent)).max(1));
        } else if self.hot && self.still_running(cuts) < excess {
            self.blame(cuts, excess);
        }
        self.move_limits(cuts);
        cuts.forget(&self.max);
    }

    fn target(&self) -> u64 {
        self.blame.target().of(self.load.capacity)
    }

    /// A mean whose weights fall by half in about the time in which half of a window passes.
    fn average(&self, cuts: &mut Cuts, spent: u64) {
        let parts = (self.intervals / 2).max(1);
        cuts.mean = if cuts.mean == 0 { spent } else { cuts.mean - cuts.mean / parts + spent / parts };
    }

    /// Moves a level towards what the cut accounts of a kind may use, each the same, beside what all others do.
    fn move_level(&self, cuts: &mut Cuts, kind: Kind) {
        let held: Vec<u64> = cuts
            .accounts
            .iter()
            .filter(|(account, _)| account.kind() == kind)
            .map(|(account, cut)| (self.load.of(account).used, cut.limit))
            // Who comes near the limit wants more.
            .filter(|(used, limit)| *used >= limit - limit / 4)
            .map(|(used, _)| used)
            .collect();
        if held.is_empty() {
            return;
        }
        let (count, sum) = (held.len() as u64, held.iter().sum::<u64>());
        let others = cuts.mean.saturating_sub(sum);
        let ideal = self.target().saturating_sub(others) / count;
        let level = cuts.levels[kind];
        // What was in flight at a cut, or is dearer than was reserved, goes beyond the limit.
        let holds = level.max(sum / count);
        let moved = if ideal > holds {
            level + Blame::GAIN.of(ideal - holds)
        } else {
            level.saturating_sub(Blame::GAIN.of(holds - ideal))
        };
        cuts.levels[kind] = self.within(kind, moved);
    }

    /// What accounts spend that are over their limit, beyond their level: it ends by itself, since nothing more of theirs
    /// is admitted.
    fn still_running(&self, cuts: &Cuts) -> u64 {
        let of_kind = |kind| {
            let (mut rates, mut levels) = (0, 0);
            for (account, cut) in cuts.accounts.iter().filter(|(account, _)| account.kind() == kind) {
                let Spending { used, rate } = self.load.of(account);
                if used >= cut.limit {
                    rates += rate;
                    levels += cuts.levels[kind];
                }
            }
            u64::saturating_sub(rates, levels)
        };
        Kind::ALL.into_iter().map(of_kind).max().unwrap_or_default()
    }

    /// Cuts accounts of the kind whose heaviest would keep the most, in fair shares: they can bear it best.
    fn blame(&self, cuts: &mut Cuts, need: u64) {
        let can_give = |kind: Kind| cuts.levels[kind] > self.within(kind, 0);
        // As long as the accounts of a kind that are cut can give more, no other kind is to blame.
        let any_can_give = ORDER.into_iter().any(can_give);
        let mut chosen: Option<(u64, Kind, u64)> = None;
        for kind in ORDER {
            let can_be_cut = self.load.active[kind].is_some() && self.min[kind] < self.max[kind];
            if !can_be_cut || any_can_give && !can_give(kind) {
                continue;
            }
            let rates = self.load.of_kind(kind).map(|(_, spending)| spending.rate).collect();
            let level = level(rates, need);
            let height = (level / self.fair_share(kind).max(1)).min(Blame::ENOUGH);
            if chosen.is_none_or(|(highest, ..)| height > highest) {
                chosen = Some((height, kind, self.within(kind, level)));
            }
        }
        let Some((_, kind, found)) = chosen else { return };
        let level = &mut cuts.levels[kind];
        if *level == 0 {
            *level = found;
        } else if cuts.mean >= self.blame.soft_limit.of(self.load.capacity) {
            // It has been too high for long: all that is too much is taken at once.
            *level = found.min(*level);
        }
        let level = *level;
        for (account, spending) in self.load.of_kind(kind) {
            if spending.rate > level && self.stands_out(kind, spending) {
                // It goes on from what it has used at the pace of the level.
                cuts.accounts.entry(account.clone()).or_insert_with(|| Cut {
                    limit: self.within(kind, spending.used.min(level)),
                    since: self.now,
                    blamed: self.blamed(kind, spending),
                });
            }
        }
    }

    /// A single request of somebody who uses little may run fast, too: more than what is fair must have been used.
    fn stands_out(&self, kind: Kind, spending: &Spending) -> bool {
        let fair = self.fair_share(kind);
        spending.used >= fair + Blame::BEYOND.of(fair)
    }

    fn blamed(&self, kind: Kind, spending: &Spending) -> Blamed {
        let millionths = u128::from(spending.rate) * 1_000_000 / u128::from(self.load.capacity.max(1));
        let tenths = u128::from(spending.rate) * 10 / u128::from(self.fair_share(kind).max(1));
        Blamed {
            share: Ratio::from_millionths(u64::try_from(millionths).unwrap_or(u64::MAX)),
            tenths_of_fair_share: u32::try_from(tenths).unwrap_or(u32::MAX),
            pressure: self.pressure,
        }
    }

    fn move_limits(&self, cuts: &mut Cuts) {
        // Far below what is hot nothing speaks against whole steps.
        let is_idle = cuts.mean < self.blame.soft_limit.of(self.load.capacity) / 2;
        for (account, cut) in &mut cuts.accounts {
            let kind = account.kind();
            let level = self.within(kind, cuts.levels[kind]);
            let Spending { used, rate } = self.load.of(account);
            cut.limit = if used < level - level / 4 && rate <= level {
                let step = if is_idle { self.step[kind] } else { self.step[kind].min(cut.limit / 4).max(1) };
                cut.limit.saturating_add(step)
            } else if self.hot {
                // The fair share may have grown since.
                cut.limit.max(self.within(kind, 0)).min(level)
            } else if cut.limit > level {
                // It has risen while it was not used.
                cut.limit - Blame::GAIN.of(cut.limit - level)
            } else {
                // At the level's pace, a window from nothing to the level.
                (cut.limit + level / self.intervals).min(level)
            };
        }
    }

    fn fair_share(&self, kind: Kind) -> u64 {
        self.load.fair_share(kind, self.blame.soft_limit)
    }

    /// Never below the fair share.
    fn within(&self, kind: Kind, limit: u64) -> u64 {
        limit.max(self.fair_share(kind)).max(self.min[kind]).min(self.max[kind])
    }
}

/// Down to where the highest must be brought so that together they lose `need`, which is more than 0; 0 where all are less
/// than that.
pub(super) fn level(mut amounts: Vec<u64>, need: u64) -> u64 {
    amounts.sort_unstable_by(|a, b| b.cmp(a));
    let mut above = 0;
    for (count, amount) in amounts.iter().enumerate() {
        let count = count as u64;
        // All before this one, brought down to it, lose:
        if above - count * amount >= need {
            return (above - need) / count;
        }
        above += amount;
    }
    u64::saturating_sub(above, need).checked_div(amounts.len() as u64).unwrap_or_default()
}
