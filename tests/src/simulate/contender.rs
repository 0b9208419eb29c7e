use std::time::Duration;

use quota_core::{Adaptation, Adaptations, Blame, PerKind, PerResource, Range, Ratio, Rule, WindowLength};

use super::aims::SOFT_LIMIT;
use super::scenario::Scenario;

/// A rule with its settings, and what fileservers do beside it.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// What it is called in tables.
    pub name: &'static str,
    /// The rule and its interval, in seconds; without, the limits of accounts everywhere are all there is.
    pub rule: Option<(Rule, u64)>,
    /// What fileservers do by themselves.
    pub kit: Kit,
}

/// What a fileserver does by itself against those who load it.
#[derive(Clone, Copy, Debug)]
pub struct Kit {
    /// What a request of a cut account weighs where processors are short, against 1 of another: that is the weight of its
    /// cgroup. 1 where there are none.
    pub weight: f64,
    /// How many requests of an address run at once; more are refused.
    pub at_once: Option<usize>,
}

impl Kit {
    /// As it is by default, where the fileserver may make cgroups: `cgroup.yield` is a tenth.
    pub const DEFAULT: Self = Self { weight: 0.1, at_once: None };
    /// Nothing.
    pub const NONE: Self = Self { weight: 1.0, at_once: None };
}

impl Contender {
    /// What `limits.<resource>.step` is by default.
    const STEP: Ratio = Ratio::from_millionths(50_000);

    /// Limits that do not move.
    pub const FIXED: Self = Self { name: "fixed", rule: None, kit: Kit::DEFAULT };

    /// The rule `blame` as it is by default, which is held to the aims.
    pub fn blame() -> Self {
        let backoff_factor = Ratio::from_millionths(900_000);
        let blame = Blame { soft_limit: SOFT_LIMIT, backoff_factor, window: WindowLength::default() };
        Self { name: "blame", rule: Some((Rule::Blame(blame), 5)), kit: Kit::DEFAULT }
    }

    /// All that are compared. Under other rules than `blame` nobody is cut, and then all requests weigh the same.
    pub fn all() -> [Self; 7] {
        [
            Self::FIXED,
            Self::aimd("aimd 15 s", 15, 750_000),
            Self::aimd("aimd 60 s", 60, 900_000),
            Self { name: "double-halve", rule: Some((Rule::DoubleHalve, 1)), kit: Kit::DEFAULT },
            Self::blame(),
            Self { name: "blame, no cgroups", kit: Kit::NONE, ..Self::blame() },
            Self { name: "blame, 15 at once", kit: Kit { at_once: Some(15), ..Kit::NONE }, ..Self::blame() },
        ]
    }

    const fn aimd(name: &'static str, interval: u64, backoff_factor: u64) -> Self {
        let backoff_factor = Ratio::from_millionths(backoff_factor);
        let rule = Rule::Aimd { soft_limit: SOFT_LIMIT, backoff_factor };
        Self { name, rule: Some((rule, interval)), kit: Kit::DEFAULT }
    }

    /// How the limits of each resource are adapted.
    pub(super) fn adaptations(&self, scenario: &Scenario) -> Adaptations {
        let ceilings = scenario.ceilings();
        PerResource::from_fn(|resource| {
            let (rule, interval) = self.rule?;
            let ranges = PerKind::from_fn(|kind| {
                let max = ceilings[kind][resource];
                Range { min: max / 100, initial: max, max }
            });
            Some(Adaptation { rule, interval: Duration::from_secs(interval), step: Self::STEP, ranges })
        })
    }
}
