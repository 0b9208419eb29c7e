use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

/// One fetch of the light user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// When it began, since the start.
    pub(crate) at: Duration,
    pub(crate) took: Duration,
    pub(crate) succeeded: bool,
}

/// What was seen while one load lasted.
pub(crate) struct Run {
    pub(crate) name: &'static str,
    pub(crate) samples: Vec<Sample>,
    /// Clones of noisy clients that were refused.
    pub(crate) refused: u64,
    /// CPU time of the fileserver and its git processes.
    pub(crate) used: Duration,
    /// Periods of the cgroup in which something ran, and those of them in which it was throttled.
    pub(crate) periods: u64,
    pub(crate) throttled: u64,
}

impl Run {
    /// The time within which such a share of the light user's fetches was done, whole or not, in seconds.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let mut took: Vec<_> = self.samples.iter().map(|sample| sample.took.as_secs_f64()).collect();
        took.sort_by(f64::total_cmp);
        let at = (share * took.len() as f64).ceil() as usize;
        took[at.clamp(1, took.len()) - 1]
    }

    fn success_ratio(&self) -> f64 {
        let succeeded = self.samples.iter().filter(|sample| sample.succeeded).count();
        succeeded as f64 / self.samples.len() as f64
    }

    fn throttled_ratio(&self) -> f64 {
        self.throttled as f64 / self.periods.max(1) as f64
    }

    fn json(&self) -> Value {
        json!({
            "light_p50_seconds": self.percentile(0.5),
            "light_p95_seconds": self.percentile(0.95),
            "light_success_ratio": self.success_ratio(),
        })
    }
}

pub(crate) fn json(idle: &Run, unprotected: &Run, protected: &Run) -> String {
    let mut with_protection = protected.json();
    with_protection["noisy_refused"] = protected.refused.into();
    with_protection["throttled_ratio"] = protected.throttled_ratio().into();
    let figures =
        json!({ "idle": idle.json(), "unprotected": unprotected.json(), "protected": with_protection });
    format!("{figures:#}\n")
}

pub(crate) fn table(runs: &[Run]) -> String {
    let idle = runs[0].percentile(0.95);
    let mut table = format!(
        "{:<12} {:>10} {:>10} {:>12} {:>10} {:>10} {:>10} {:>10}\n",
        "", "p50 ms", "p95 ms", "p95 / idle", "succeeded", "refused", "throttled", "CPU s"
    );
    for run in runs {
        writeln!(
            table,
            "{:<12} {:>10.0} {:>10.0} {:>12.1} {:>9.0}% {:>10} {:>9.0}% {:>10.1}",
            run.name,
            1000.0 * run.percentile(0.5),
            1000.0 * run.percentile(0.95),
            run.percentile(0.95) / idle,
            100.0 * run.success_ratio(),
            run.refused,
            100.0 * run.throttled_ratio(),
            run.used.as_secs_f64(),
        )
        .expect("room");
    }
    table
}
