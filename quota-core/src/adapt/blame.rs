//! The rule `blame`: cut those who load the node, as deep as is needed, and spare everyone else.
//!
//! `docs/adaptation.md` explains it in words and shows what it does to traffic.

mod cuts;
mod load;
mod step;

pub use cuts::{Blamed, Cut, Cuts};
pub use load::{Load, Spending};
pub(super) use step::Step;

use crate::{Kind, Ratio, WindowLength};

/// What the rule `blame` is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blame {
    /// A mean pressure at or above this is hot.
    pub soft_limit: Ratio,
    /// What a hot interval leaves of the limits of kinds, of a node that does not tell who uses what.
    pub backoff_factor: Ratio,
    /// How long usage counts.
    pub window: WindowLength,
}

impl Blame {
    /// The rule steers for this much less than its soft limit, so that ordinary fluctuation is not hot. Closer, and intervals
    /// are hot by chance; further away, and capacity lies idle.
    pub const MARGIN: Ratio = Ratio::from_millionths(30_000);

    /// How far a level goes in an interval towards where it should be. The effect of a step shows within a window, which is
    /// a dozen intervals: quicker, and levels swing; slower, and the node is busy, or idle, for longer.
    pub const GAIN: Ratio = Ratio::from_millionths(150_000);

    /// An account stands out that has used a fair share and this part of one. Less, and light ones are cut who are a little
    /// above the others by chance; more, and many medium ones together are cut late or, on a saturated node, never.
    pub const BEYOND: Ratio = Ratio::from_millionths(600_000);

    /// Accounts that keep so many fair shares can bear a cut, whatever their kind.
    pub const ENOUGH: u64 = 4;

    /// What the rule steers for.
    pub const fn target(&self) -> Ratio {
        Ratio::from_millionths(self.soft_limit.millionths().saturating_sub(Self::MARGIN.millionths()))
    }
}

/// Who is cut first where several kinds of account can bear it alike: an address or a repository may be shared.
const ORDER: [Kind; 3] = [Kind::User, Kind::Ip, Kind::Repo];

#[cfg(test)]
mod tests;
