//! How the limits of a node follow its pressure: the rules, and the controller that applies them.
//!
//! `lua/calibrate.lua` and `lua/blame.lua` hold the same arithmetic inside Redis; a model test keeps the two equal.

mod blame;
mod controller;

use std::time::Duration;

use crate::time::micros;
use crate::{Kind, PerKind, PerResource, Ratio};

pub use blame::{Blame, Blamed, Cut, Cuts, Load, Spending};
pub use controller::{Calibration, Controller, Observation, Observed, Reason};

/// The least, first and most that a limit may be, in the internal unit of its resource: `0 < min <= initial <= max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// No rule sets a lower limit.
    pub min: u64,
    /// The limit of a node that is new, or has been silent for long.
    pub initial: u64,
    /// No rule sets a higher limit.
    pub max: u64,
}

/// What pressure does to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Additive increase, multiplicative decrease: calm, a step is added; hot, the limit is multiplied.
    Aimd {
        /// A mean pressure at or above this is hot.
        soft_limit: Ratio,
        /// What a hot interval leaves of the limit.
        backoff_factor: Ratio,
    },
    /// Below a half the limit is doubled, above 0.8 it is halved, and between it stays.
    DoubleHalve,
    /// The limits of kinds stay at `max`, and single accounts that load the node are cut. Where a node does not tell who uses
    /// what, as `aimd`, but that a cut begins at what the heaviest account uses.
    Blame(Blame),
}

/// How the limits of one resource are adapted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptation {
    /// What pressure does.
    pub rule: Rule,
    /// How often: there is one calibration an interval. At most ten minutes, so that pressure summed over it stays
    /// below 2^53.
    pub interval: Duration,
    /// What is added at a time, as a share of a limit's `max`: by `aimd`, and where a limit returns to `initial`.
    pub step: Ratio,
    /// The limits of each kind of account.
    pub ranges: PerKind<Range>,
}

/// How each resource is adapted; one that is not has no limit of the node.
pub type Adaptations = PerResource<Option<Adaptation>>;

impl Adaptation {
    /// The interval, in microseconds.
    pub fn interval_micros(&self) -> u64 {
        micros(self.interval).max(1)
    }

    /// How many intervals a window has, rounded down, as far as the rule asks; at least 1.
    pub fn intervals_in_window(&self) -> u64 {
        match self.rule {
            Rule::Blame(blame) => (micros(blame.window.length()) / self.interval_micros()).max(1),
            Rule::Aimd { .. } | Rule::DoubleHalve => 1,
        }
    }

    /// What is added at a time to the limit of a kind; at least 1, so that it moves.
    pub fn step(&self, kind: Kind) -> u64 {
        self.step.of(self.ranges[kind].max).max(1)
    }

    /// Limits that no pressure has moved.
    pub fn initial(&self) -> PerKind<u64> {
        PerKind::from_fn(|kind| self.ranges[kind].initial)
    }
}

#[cfg(test)]
mod tests;
