use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::crowd::Crowd;
use crate::protection::Rule;

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
    /// The time within which such a share of the light users' fetches was done, whole or not, in seconds.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        percentile(&self.samples, share)
    }

    /// The same of those in the second half: what was let in before anything was known has ended.
    fn settled_percentile(&self, share: f64) -> f64 {
        let last = self.samples.last().map_or(Duration::ZERO, |sample| sample.at);
        let settled = self.samples.partition_point(|sample| sample.at < last / 2);
        percentile(&self.samples[settled..], share)
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
            "light_p95_settled_seconds": self.settled_percentile(0.95),
            "light_success_ratio": self.success_ratio(),
            "noisy_refused": self.refused,
            "throttled_ratio": self.throttled_ratio(),
        })
    }
}

fn percentile(samples: &[Sample], share: f64) -> f64 {
    let mut took: Vec<_> = samples.iter().map(|sample| sample.took.as_secs_f64()).collect();
    took.sort_by(f64::total_cmp);
    let at = (share * took.len() as f64).ceil() as usize;
    took[at.clamp(1, took.len()) - 1]
}

/// The runs of a crowd: idle, unprotected, and by each rule.
pub(crate) struct Compared {
    pub(crate) crowd: Crowd,
    pub(crate) runs: Vec<Run>,
}

/// By the name of each run; what is protected by the default rule is called so. The first crowd's stand at the top.
pub(crate) fn json(all: &[Compared]) -> String {
    let mut figures = Map::new();
    for (number, Compared { crowd, runs }) in all.iter().enumerate() {
        let name = |run: &Run| if run.name == Rule::Blame.name() { "protected" } else { run.name }.to_owned();
        let of_crowd: Map<String, Value> = runs.iter().map(|run| (name(run), run.json())).collect();
        if number == 0 {
            figures.extend(of_crowd);
        } else {
            figures.insert(crowd.name().replace(' ', "_"), Value::Object(of_crowd));
        }
    }
    format!("{:#}\n", Value::Object(figures))
}

pub(crate) fn table(Compared { crowd, runs }: &Compared) -> String {
    let idle = runs[0].percentile(0.95);
    let mut table = format!(
        "{}\n{:<12} {:>10} {:>10} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
        crowd.name(),
        "",
        "p50 ms",
        "p95 ms",
        "p95 / idle",
        "settled",
        "succeeded",
        "refused",
        "throttled",
        "CPU s"
    );
    for run in runs {
        writeln!(
            table,
            "{:<12} {:>10.0} {:>10.0} {:>12.1} {:>10.1} {:>9.0}% {:>10} {:>9.0}% {:>10.1}",
            run.name,
            1000.0 * run.percentile(0.5),
            1000.0 * run.percentile(0.95),
            run.percentile(0.95) / idle,
            run.settled_percentile(0.95) / runs[0].settled_percentile(0.95),
            100.0 * run.success_ratio(),
            run.refused,
            100.0 * run.throttled_ratio(),
            run.used.as_secs_f64(),
        )
        .expect("room");
    }
    table
}
