mod at_min;

use std::collections::BTreeMap;

use super::blame::{Blame, Cut, Cuts, Load, Step};
use super::{Adaptation, Range, Rule};
use crate::time::TOLERANCE_MICROS;
use crate::{Account, PerKind, Ratio, Timestamp};

/// A node that has told nothing for this many intervals is silent: its limits return to `initial`.
const SILENT_INTERVALS: u64 = 3;

/// The rule `double-halve` doubles below the one and halves above the other.
const COLD: Ratio = Ratio::from_millionths(500_000);
const HOT: Ratio = Ratio::from_millionths(800_000);

/// The limits of one resource on a node, and what is known of the pressure since they were last calibrated.
///
/// The pressure that counts is the mean over the interval, by time: each report stands for the time since the one
/// before it, so that the number of reports and replicas does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// The limit of each kind of account.
    pub limits: PerKind<u64>,
    /// When the interval began.
    pub since: Timestamp,
    /// When pressure was last told.
    pub seen: Timestamp,
    /// Pressure times time in this interval, in millionths times microseconds.
    pub area: u64,
    /// The time that `area` covers, in microseconds.
    pub span: u64,
    /// An OOM kill happened in this interval, too soon after a cut to count at once.
    pub killed: bool,
    /// The last calibration.
    pub last: Option<Calibration>,
    /// The limits of single accounts, under the rule `blame`.
    pub cuts: Cuts,
}

/// What a report tells of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// How loaded the node is; `None` where that is not known, which is not the same as healthy.
    pub pressure: Option<Ratio>,
    /// The kernel killed a process for want of this resource.
    pub oom_kill: bool,
    /// What the heaviest account of each kind used on the node, where it tells.
    pub heaviest: PerKind<Option<u64>>,
    /// Who used how much, where it tells and the rule asks.
    pub load: Option<Load>,
}

/// What followed from a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Whether the limits were calibrated.
    pub calibrated: bool,
    /// Whether the clock had stepped back, so that the interval was dated anew.
    pub rebased: bool,
}

/// A step of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// When.
    pub at: Timestamp,
    /// For what reason.
    pub reason: Reason,
    /// The mean pressure of the interval that ended.
    pub pressure: Ratio,
    /// The limits before it. Those after it are the controller's, until the next.
    pub old: PerKind<u64>,
}

/// Reason limits were calibrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The mean pressure called for lower limits.
    Hot,
    /// The kernel killed a process for want of memory.
    OomKill,
    /// The mean pressure allowed for higher limits.
    Calm,
    /// The mean pressure called for neither.
    Steady,
    /// The node had told nothing for more than three intervals.
    Silent,
}

impl Reason {
    /// Every reason, in the order in which stores number them from 1.
    pub const ALL: [Self; 5] = [Self::Hot, Self::OomKill, Self::Calm, Self::Steady, Self::Silent];

    /// The name in the API, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::OomKill => "oom_kill",
            Self::Calm => "calm",
            Self::Steady => "steady",
            Self::Silent => "silent",
        }
    }

    const fn is_cut(self) -> bool {
        matches!(self, Self::Hot | Self::OomKill)
    }
}

impl Controller {
    /// Of a node that is new.
    pub fn new(now: Timestamp, adaptation: &Adaptation) -> Self {
        Self {
            limits: adaptation.initial(),
            since: now,
            seen: now,
            area: 0,
            span: 0,
            killed: false,
            last: None,
            cuts: Cuts::default(),
        }
    }

    /// The limits as they are at a moment: those of a node that has been silent for more than three intervals have
    /// taken a step towards `initial` in each further one.
    pub fn limits_at(&self, now: Timestamp, adaptation: &Adaptation) -> PerKind<u64> {
        let steps = self.silent_steps(now, adaptation);
        PerKind::from_fn(|kind| {
            let range = adaptation.ranges[kind];
            let limit = self.limits[kind].clamp(range.min, range.max);
            let by = steps.saturating_mul(adaptation.step(kind));
            if limit < range.initial {
                limit.saturating_add(by).min(range.initial)
            } else {
                limit.saturating_sub(by).max(range.initial)
            }
        })
    }

    /// The limits of single accounts as they are at a moment: those of a silent node rise by a step in each interval after
    /// the third, until they are forgotten.
    pub fn cuts_at(&self, now: Timestamp, adaptation: &Adaptation) -> BTreeMap<Account, Cut> {
        let mut raised = Self { cuts: self.cuts.clone(), ..*self };
        raised.raise_cuts(self.silent_steps(now, adaptation), adaptation);
        raised.cuts.accounts
    }

    /// Raises the limits of single accounts by so many steps.
    fn raise_cuts(&mut self, steps: u64, adaptation: &Adaptation) {
        for (account, cut) in &mut self.cuts.accounts {
            cut.limit = cut.limit.saturating_add(steps.saturating_mul(adaptation.step(account.kind())));
        }
        self.cuts.forget(&PerKind::from_fn(|kind| adaptation.ranges[kind].max));
    }

    /// In how many intervals a silent node's limits have taken a step.
    fn silent_steps(&self, now: Timestamp, adaptation: &Adaptation) -> u64 {
        let silent = now.as_micros().saturating_sub(self.seen.as_micros());
        (silent / adaptation.interval_micros()).saturating_sub(SILENT_INTERVALS)
    }

    /// Takes a report in, and calibrates the limits where an interval is over, or at once after an OOM kill unless they
    /// were cut within an interval.
    pub fn observe(
        &mut self,
        clock: Timestamp,
        observation: &Observation,
        adaptation: &Adaptation,
    ) -> Observed {
        if observation.pressure.is_none() && !observation.oom_kill {
            return Observed::default();
        }
        let rebased = self.rebase(clock);
        // A little ahead of the clock is now.
        let now = clock.max(self.seen);
        let interval = adaptation.interval_micros();
        let passed = now.since(self.seen);
        if passed / interval >= SILENT_INTERVALS {
            let calibrated = passed / interval > SILENT_INTERVALS;
            self.resume(now, observation.oom_kill, calibrated, adaptation);
            return Observed { calibrated, rebased };
        }
        if let Some(pressure) = observation.pressure {
            let spanned = passed.min(interval);
            self.area += pressure.millionths() * spanned;
            self.span += spanned;
        }
        self.seen = now;
        self.killed |= observation.oom_kill;
        let calibrated = self.is_due(now, interval);
        if calibrated {
            self.calibrate(now, observation, adaptation);
        }
        Observed { calibrated, rebased }
    }

    /// Dates everything anew where it is from after now, since the clock has stepped back.
    fn rebase(&mut self, clock: Timestamp) -> bool {
        let rebased = self.seen.since(clock) > TOLERANCE_MICROS;
        if rebased {
            self.start_interval(clock);
            self.seen = clock;
            if let Some(last) = &mut self.last {
                last.at = last.at.min(clock);
            }
            for cut in self.cuts.accounts.values_mut() {
                cut.since = cut.since.min(clock);
            }
        }
        rebased
    }

    /// Begins anew after a silence, from the limits that it has led to.
    fn resume(&mut self, now: Timestamp, killed: bool, calibrated: bool, adaptation: &Adaptation) {
        let old = self.limits;
        self.limits = self.limits_at(now, adaptation);
        self.raise_cuts(self.silent_steps(now, adaptation), adaptation);
        self.start_interval(now);
        self.seen = now;
        self.killed = killed;
        if calibrated {
            self.last =
                Some(Calibration { at: now, reason: Reason::Silent, pressure: Ratio::default(), old });
        }
    }

    fn start_interval(&mut self, at: Timestamp) {
        (self.since, self.area, self.span, self.killed) = (at, 0, 0, false);
    }

    /// An interval ends at its time, though not right after a late end of the one before: calibrations are seven eighths of
    /// an interval apart at least.
    fn is_due(&self, now: Timestamp, interval: u64) -> bool {
        let ended = now.since(self.since) >= interval;
        match &self.last {
            None => ended || self.killed,
            Some(last) => {
                let ago = now.since(last.at);
                ended && ago >= interval - interval / 8
                    || self.killed && (!last.reason.is_cut() || ago >= interval)
            }
        }
    }

    fn calibrate(&mut self, now: Timestamp, observation: &Observation, adaptation: &Adaptation) {
        let pressure = Ratio::from_millionths(self.area.checked_div(self.span).unwrap_or_default());
        let reason = if self.killed { Reason::OomKill } else { adaptation.rule.judge(pressure) };
        let old = self.limits;
        let blamed = self.blame(now, pressure, reason, observation, adaptation);
        self.limits = PerKind::from_fn(|kind| {
            let Range { min, max, .. } = adaptation.ranges[kind];
            let limit = old[kind];
            let heaviest = observation.heaviest[kind];
            let moved = match (reason, adaptation.rule) {
                // Single accounts are cut instead.
                (_, Rule::Blame(_)) if blamed => limit.saturating_add(adaptation.step(kind)),
                (Reason::Hot | Reason::OomKill, Rule::Aimd { backoff_factor, .. }) => {
                    backoff_factor.of(limit)
                }
                // A limit above what anybody uses holds nobody: cut is what binds.
                (Reason::Hot | Reason::OomKill, Rule::Blame(blame)) => {
                    blame.backoff_factor.of(heaviest.unwrap_or(limit).min(limit))
                }
                (Reason::Hot | Reason::OomKill, Rule::DoubleHalve) => limit / 2,
                // A limit that nobody comes near is not raised: it would protect nothing when the load comes.
                (Reason::Calm, Rule::Aimd { .. }) if is_far_below(heaviest, limit) => limit,
                (Reason::Calm, Rule::Aimd { .. } | Rule::Blame(_)) => {
                    limit.saturating_add(adaptation.step(kind))
                }
                (Reason::Calm, Rule::DoubleHalve) => limit.saturating_mul(2),
                (Reason::Steady | Reason::Silent, _) => limit,
            };
            moved.clamp(min, max)
        });
        // An interval on, so that reports that come a little late do not lengthen it; what is longer past is not made up for.
        let interval = adaptation.interval_micros();
        let ended = now.since(self.since) >= interval;
        let since =
            if ended { now.before(adaptation.interval).max(self.since.after_micros(interval)) } else { now };
        self.start_interval(since);
        self.last = Some(Calibration { at: now, reason, pressure, old });
    }

    /// Cuts and raises single accounts, under the rule `blame` and where the node tells who uses what. Returns whether it
    /// did.
    fn blame(
        &mut self,
        now: Timestamp,
        pressure: Ratio,
        reason: Reason,
        observation: &Observation,
        adaptation: &Adaptation,
    ) -> bool {
        let Rule::Blame(blame) = &adaptation.rule else {
            self.cuts = Cuts::default();
            return false;
        };
        let Some(load) = &observation.load else {
            self.raise_cuts(1, adaptation);
            return false;
        };
        let step = Step {
            blame,
            load,
            min: PerKind::from_fn(|kind| adaptation.ranges[kind].min),
            max: PerKind::from_fn(|kind| adaptation.ranges[kind].max),
            step: PerKind::from_fn(|kind| adaptation.step(kind)),
            intervals: adaptation.intervals_in_window(),
            pressure,
            hot: reason.is_cut(),
            killed: reason == Reason::OomKill,
            now,
        };
        step.take(&mut self.cuts);
        true
    }
}

/// Whether the heaviest account is known, and below half of the limit.
fn is_far_below(heaviest: Option<u64>, limit: u64) -> bool {
    heaviest.is_some_and(|used| used < limit.div_ceil(2))
}

impl Rule {
    fn judge(self, pressure: Ratio) -> Reason {
        let (cold, hot) = match self {
            // What is not hot is calm.
            Self::Aimd { soft_limit, .. } | Self::Blame(Blame { soft_limit, .. }) => {
                (soft_limit, pressure >= soft_limit)
            }
            Self::DoubleHalve => (COLD, pressure > HOT),
        };
        match (hot, pressure < cold) {
            (true, _) => Reason::Hot,
            (false, true) => Reason::Calm,
            (false, false) => Reason::Steady,
        }
    }
}

#[cfg(test)]
mod tests;
