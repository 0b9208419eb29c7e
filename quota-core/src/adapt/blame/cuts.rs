use std::collections::BTreeMap;

use super::{Blame, Load};
use crate::adapt::Range;
use crate::{Account, PerKind, Ratio, Timestamp};

/// Who is cut on a node, and how deep. Nothing of it where nobody is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// What the node spends within a window, on average over about the last one, in the resource's internal unit.
    pub mean: u64,
    /// The limit that the cut accounts of each kind come to, in the end; 0 where none is cut.
    pub levels: PerKind<u64>,
    /// The accounts that are cut; at most [`Cuts::MOST`].
    pub accounts: BTreeMap<Account, Cut>,
}

/// The limit of a single account on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The most that it may use within a window, in the resource's internal unit.
    pub limit: u64,
    /// When it was cut.
    pub since: Timestamp,
    /// For what reason.
    pub blamed: Blamed,
}

/// What an account was doing when it was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blamed {
    /// What it held of the node's capacity, at the pace that it had.
    pub share: Ratio,
    /// The same in fair shares, in tenths.
    pub tenths_of_fair_share: u32,
    /// The mean pressure of the interval.
    pub pressure: Ratio,
}

impl Cuts {
    /// The most accounts of a node that are cut in one resource: together a thousand.
    pub const MOST: usize = 333;

    /// Whether the rule has nothing left to take: nobody is cut, or all levels have come down to what is left to everybody.
    /// That moves with each account that becomes active, and levels follow it by steps: one that is less than a step above it
    /// has come down.
    pub(in crate::adapt) fn are_at_least(&self, load: &Load, blame: &Blame, ranges: &PerKind<Range>) -> bool {
        self.levels.iter().all(|(kind, level)| {
            let Range { min, max, .. } = ranges[kind];
            let least = load.fair_share(kind, blame.soft_limit).max(min).min(max);
            *level <= least + Blame::GAIN.of(least)
        })
    }

    /// Forgets those whose limit is no longer below the largest of their kind, and of too many those that are cut least; of
    /// several that are cut as little as the first to go, all.
    pub(in crate::adapt) fn forget(&mut self, max: &PerKind<u64>) {
        self.accounts.retain(|account, cut| cut.limit < max[account.kind()]);
        if self.accounts.len() > Self::MOST {
            let lost = |account: &Account, cut: &Cut| max[account.kind()] - cut.limit;
            let mut all: Vec<u64> = self.accounts.iter().map(|(account, cut)| lost(account, cut)).collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            let first_to_go = all[Self::MOST];
            self.accounts.retain(|account, cut| lost(account, cut) > first_to_go);
        }
        self.levels = PerKind::from_fn(|kind| {
            let any = self.accounts.keys().any(|account| account.kind() == kind);
            if any { self.levels[kind] } else { 0 }
        });
    }
}
