use super::aims::SOFT_LIMIT;
use super::scenario::Scenario;
use super::trace::{Second, Trace};

/// What a run shows, in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Of all light requests, those refused.
    pub light_refused_ratio: f64,
    /// 95 % of the light requests that ended while the heavy traffic lasted took less, over the same without heavy traffic.
    pub light_p95_over_idle: f64,
    /// How much of the resource was used, from two minutes after pressure came up until the heavy traffic ended.
    pub used_ratio: f64,
    /// From when pressure reached the soft limit, as a mean of ten seconds, until it was below, in seconds. 0 where it never
    /// came up; `None` where it was above until the heavy traffic ended.
    pub relief_seconds: Option<f64>,
    /// The same where nothing heavy is let in since then: what runs must end.
    pub least_relief_seconds: Option<f64>,
    /// Jain's index over heavy accounts that want the same: 1 where all had the same, 1/n where one of n had all.
    pub jain: f64,
    /// [`Trace::swing`].
    pub limit_swing: f64,
    /// From the end of the heavy traffic until no limit was below its ceiling, in seconds; `None` where one was to the end.
    pub recovery_seconds: Option<f64>,
}

/// Over how many seconds pressure is averaged.
pub(super) const SMOOTH: usize = 10;

/// How long after the onset a steady state is expected, in seconds.
const SETTLED: usize = 120;

/// The time within which 95 % of light requests were done, in seconds; 0 where there were none.
pub fn light_p95(scenario: &Scenario, trace: &Trace) -> f64 {
    let meanwhile = f64::from(scenario.from)..f64::from(scenario.until);
    let light = trace.light.iter().filter(|(at, _)| meanwhile.contains(at));
    let mut took: Vec<f64> = light.map(|(_, took)| *took).collect();
    took.sort_unstable_by(f64::total_cmp);
    took.get(took.len() * 95 / 100).copied().unwrap_or_default()
}

/// [`Figures::relief_seconds`] of a run.
pub fn relief_seconds(scenario: &Scenario, trace: &Trace) -> Option<f64> {
    let seconds = &trace.seconds;
    let Some(onset) = onset(scenario, seconds) else { return Some(0.0) };
    let relief =
        places(scenario).skip_while(|at| *at < onset).find(|at| !is_hot(&seconds[*at..*at + SMOOTH]))?;
    Some((relief - onset) as f64)
}

/// When pressure comes up.
fn onset(scenario: &Scenario, seconds: &[Second]) -> Option<usize> {
    places(scenario).find(|at| is_hot(&seconds[*at..*at + SMOOTH]))
}

/// The seconds of heavy traffic that have enough others after them.
fn places(scenario: &Scenario) -> std::ops::Range<usize> {
    scenario.from as usize..(scenario.until as usize).saturating_sub(SMOOTH)
}

/// Whether pressure is at the soft limit, on average.
pub(super) fn is_hot(seconds: &[Second]) -> bool {
    load(seconds) >= f64::from(SOFT_LIMIT)
}

fn load(seconds: &[Second]) -> f64 {
    seconds.iter().map(|second| second.load).sum::<f64>() / seconds.len() as f64
}

impl Figures {
    /// What a run shows, where light requests alone have the 95th percentile `idle_p95`, and relief takes so long at least.
    pub fn of(scenario: &Scenario, trace: &Trace, idle_p95: f64, least_relief: Option<f64>) -> Self {
        let (from, until) = (scenario.from as usize, scenario.until as usize);
        let seconds = &trace.seconds;
        let onset = onset(scenario, seconds);
        let settled = (onset.unwrap_or(from) + SETTLED).min(until - 1);
        let low = seconds.iter().rposition(|second| second.lowest < 1.0);
        let recovery =
            low.map_or(Some(0), |low| (low + 1 < seconds.len()).then(|| (low + 1).saturating_sub(until)));
        Self {
            light_refused_ratio: light_refused_ratio(seconds),
            light_p95_over_idle: light_p95(scenario, trace) / idle_p95,
            used_ratio: load(&seconds[settled..until]),
            relief_seconds: relief_seconds(scenario, trace),
            least_relief_seconds: least_relief,
            jain: jain(&trace.alike),
            limit_swing: trace.swing,
            recovery_seconds: recovery.map(|seconds| seconds as f64),
        }
    }

    /// The worst of each; `None` of no runs.
    pub fn worst(runs: impl IntoIterator<Item = Self>) -> Option<Self> {
        let longest = |a: Option<f64>, b: Option<f64>| Some(a?.max(b?));
        runs.into_iter().reduce(|a, b| Self {
            light_refused_ratio: a.light_refused_ratio.max(b.light_refused_ratio),
            light_p95_over_idle: a.light_p95_over_idle.max(b.light_p95_over_idle),
            used_ratio: a.used_ratio.min(b.used_ratio),
            relief_seconds: longest(a.relief_seconds, b.relief_seconds),
            least_relief_seconds: longest(a.least_relief_seconds, b.least_relief_seconds),
            jain: a.jain.min(b.jain),
            limit_swing: a.limit_swing.max(b.limit_swing),
            recovery_seconds: longest(a.recovery_seconds, b.recovery_seconds),
        })
    }
}

fn light_refused_ratio(seconds: &[Second]) -> f64 {
    let sum = |of: fn(&Second) -> u32| seconds.iter().map(|second| f64::from(of(second))).sum::<f64>();
    let (refused, admitted) = (sum(|second| second.refused[0]), sum(|second| second.admitted[0]));
    if refused > 0.0 { refused / (refused + admitted) } else { 0.0 }
}

/// 1 of none, and where nobody had anything.
fn jain(amounts: &[f64]) -> f64 {
    let (sum, squares): (f64, f64) =
        (amounts.iter().sum(), amounts.iter().map(|amount| amount * amount).sum());
    if squares > 0.0 { sum * sum / (amounts.len() as f64 * squares) } else { 1.0 }
}
