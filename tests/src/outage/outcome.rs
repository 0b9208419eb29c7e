use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use super::{CLASSES, Times};
use crate::chart::{Axis, Chart, Line, Scale};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Served, after it had waited for so long.
    Served(Duration),
    /// Told that there is no slot, for good: 503 with Retry-After.
    Refused,
    /// Given up by its caller.
    GivenUp,
}

/// What became of all, by class and by the second in which they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    times: Times,
    seconds: [Vec<Vec<Fate>>; 2],
    /// The most CI calls that were in progress at a time.
    pub most_ci: u32,
}

impl Outcome {
    /// Of nothing yet.
    pub fn new(times: &Times) -> Self {
        let empty = || vec![Vec::new(); times.seconds as usize];
        Self { times: times.clone(), seconds: [empty(), empty()], most_ci: 0 }
    }

    /// Of a request of a class that first came in a second.
    pub fn add(&mut self, class: usize, second: u64, fate: Fate) {
        self.seconds[class][second as usize].push(fate);
    }

    /// The share of a class's requests that were served, of those that came while calls took long.
    pub fn success(&self, class: usize) -> f64 {
        self.success_within(class, self.times.slow.clone())
    }

    /// What 99 of 100 of them that were served waited for at most.
    pub fn p99_wait(&self, class: usize) -> Duration {
        let mut waited: Vec<Duration> = self
            .within(class, self.times.slow.clone())
            .filter_map(|fate| if let Fate::Served(waited) = fate { Some(*waited) } else { None })
            .collect();
        waited.sort_unstable();
        let at = (waited.len() * 99).div_ceil(100).saturating_sub(1);
        waited.get(at).copied().unwrap_or_default()
    }

    /// How many were told that there is no slot, and gave up after that.
    pub fn refused(&self, class: usize) -> usize {
        self.within(class, 0..self.times.seconds).filter(|fate| **fate == Fate::Refused).count()
    }

    /// How long after the outage it was until from then on 99 of 100 of a class were served; nothing where they never were.
    pub fn recovery(&self, class: usize) -> Option<Duration> {
        let Times { slow, seconds } = &self.times;
        let is_good = |second: u64| self.success_within(class, second..second + 1) >= 0.99;
        let last_bad = (slow.end..*seconds).rev().find(|second| !is_good(*second));
        match last_bad {
            None => Some(Duration::ZERO),
            Some(last) if last + 1 == *seconds => None,
            Some(last) => Some(Duration::from_secs(last + 1 - slow.end)),
        }
    }

    fn success_within(&self, class: usize, within: Range<u64>) -> f64 {
        let (mut served, mut all) = (0, 0);
        for fate in self.within(class, within) {
            served += u32::from(matches!(fate, Fate::Served(_)));
            all += 1;
        }
        f64::from(served) / f64::from(all.max(1))
    }

    fn within(&self, class: usize, within: Range<u64>) -> impl Iterator<Item = &Fate> {
        let seconds = self.seconds[class].iter().skip(within.start as usize);
        seconds.take((within.end - within.start) as usize).flatten()
    }
}

/// The worst of some runs, in words: a line for each class, with classes and without.
pub fn tell(with: &[Outcome], without: &[Outcome]) -> String {
    let mut text = String::new();
    for (runs, name) in [(with, "with classes"), (without, "without")] {
        for (class, of_class) in CLASSES.iter().enumerate() {
            let success = runs.iter().map(|outcome| outcome.success(class)).fold(1.0, f64::min);
            let wait = runs.iter().map(|outcome| outcome.p99_wait(class)).max().unwrap_or_default();
            let recovered = runs.iter().map(|outcome| outcome.recovery(class).map(|after| after.as_secs()));
            let recovered = recovered.max_by_key(|seconds| seconds.unwrap_or(u64::MAX)).flatten();
            let recovered =
                recovered.map_or("never again".to_owned(), |seconds| format!("again {seconds} s after it"));
            let (success, wait) = (100.0 * success, wait.as_millis());
            writeln!(
                text,
                "{of_class}, {name}: {success:.2} % served while calls take long, p99 of the wait {wait} ms, 99 % served {recovered}"
            )
            .unwrap_or_else(|_| unreachable!("a string takes any text"));
        }
    }
    text
}

/// What share was served, over time.
pub fn chart(with: &Outcome, without: &Outcome) -> Chart {
    let Times { slow, seconds } = &with.times;
    // Sixty points in all.
    let step = (seconds / 60).max(1);
    let line = |label: &str, outcome: &Outcome, class: usize| Line {
        label: label.to_owned(),
        points: (0..seconds / step)
            .map(|number| number * step)
            .map(|start| (start as f64, 100.0 * outcome.success_within(class, start..start + step)))
            .collect(),
    };
    let ticks = |values: &[u64]| values.iter().map(|value| (*value as f64, value.to_string())).collect();
    Chart {
        title: format!(
            "Requests that were served, by when they came: calls take 500 ms from {} s to {} s",
            slow.start, slow.end
        ),
        x: Axis {
            label: "seconds".to_owned(),
            scale: Scale::Linear,
            ticks: ticks(&[0, slow.start, slow.end, *seconds]),
        },
        y: Axis { label: "% served".to_owned(), scale: Scale::Linear, ticks: ticks(&[0, 25, 50, 75, 100]) },
        lines: vec![
            line("interactive, with classes", with, 0),
            line("interactive, without", without, 0),
            line("CI, with classes", with, 1),
            line("CI, without", without, 1),
        ],
    }
}
