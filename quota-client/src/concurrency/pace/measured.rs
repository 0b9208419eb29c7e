use std::time::Duration;

use tokio::time::Instant;

/// A mean in which what is recent weighs more.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::concurrency) struct Mean {
    seconds: f64,
    samples: u32,
}

impl Mean {
    /// The weight of a new sample is never less than one of so many.
    const MEMORY: u32 = 64;

    pub(in crate::concurrency) fn add(&mut self, sample: Duration) {
        self.samples = (self.samples + 1).min(Self::MEMORY);
        self.seconds += (sample.as_secs_f64() - self.seconds) / f64::from(self.samples);
    }

    pub(super) fn seconds(self) -> Option<f64> {
        (self.samples > 0).then_some(self.seconds)
    }

    /// Weighs as much as one sample.
    pub(super) fn as_first_guess(self) -> Self {
        Self { samples: self.samples.min(1), ..self }
    }
}

/// How often something happens, told of the last span that is complete: what just began says little.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    began: Option<Instant>,
    count: u32,
    last: f64,
}

impl Rate {
    pub(super) fn add(&mut self, now: Instant, span: Duration) {
        self.last = self.per_second(now, span);
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= span) {
            (self.began, self.count) = (Some(now), 0);
        }
        self.count += 1;
    }

    pub(super) fn per_second(&self, now: Instant, span: Duration) -> f64 {
        let passed = self.began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began));
        if passed < span { self.last } else { f64::from(self.count) / passed.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_follows_a_lasting_change() {
        let mut mean = Mean::default();
        assert_eq!(mean.seconds(), None);
        for _ in 0..1_000 {
            mean.add(Duration::from_secs(1));
        }
        for _ in 0..200 {
            mean.add(Duration::from_secs(3));
        }
        let seconds = mean.seconds().unwrap();
        assert!((2.9..3.0).contains(&seconds), "{seconds}");
    }
}
