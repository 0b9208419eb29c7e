use std::collections::BTreeMap;

use crate::{Account, Kind, PerKind, Ratio};

/// Who uses how much of a resource on a node, as its report tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// What the node can spend within a window, in the resource's internal unit; at most [`Load::LARGEST`].
    pub capacity: u64,
    /// How many accounts of each kind used something within a window; `None` where that is not told, and then none of the
    /// kind is blamed.
    pub active: PerKind<Option<u32>>,
    /// The heaviest of them.
    pub accounts: BTreeMap<Account, Spending>,
}

/// What an account uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Within a window; at most [`Load::LARGEST`].
    pub used: u64,
    /// What it would use within a window at its present pace; at most [`Load::LARGEST`].
    pub rate: u64,
}

impl Load {
    /// The most of each amount: sums over a report, and twice the capacity, stay below 2^53.
    pub const LARGEST: u64 = 1 << 46;

    /// What an account uses. One that is not among the heaviest uses nothing to speak of.
    pub(super) fn of(&self, account: &Account) -> Spending {
        self.accounts.get(account).copied().unwrap_or_default()
    }

    /// Those of a kind that are known.
    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (&Account, &Spending)> {
        self.accounts.iter().filter(move |(account, _)| account.kind() == kind)
    }

    /// What each active account of a kind may use where all use the same, and together as much as is hot.
    pub(super) fn fair_share(&self, kind: Kind, soft_limit: Ratio) -> u64 {
        soft_limit.of(self.capacity) / u64::from(self.active[kind].unwrap_or_default().max(1))
    }
}
