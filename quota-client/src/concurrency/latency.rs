//! Whether requests take longer because too many run at once, told from their latency alone.
//!
//! Like Gradient2 it compares what is recent with what is usual, and like Vegas it asks how many requests' worth of
//! waiting that makes: `in_flight * (1 - usual / recent)`. Both are geometric means, which a few very long requests
//! do not move much, and the difference must stand out from the spread of the samples: so there is no threshold to
//! configure.
//!
//! What is usual, the baseline, must not learn from overload, or a limit would follow its own harm upwards. So it
//! falls whenever requests take less, but rises only while hardly anybody waits, and then slowly. Where the work
//! has become slower for good, the limit is cut down to its minimum and the latency is still the same: that is the
//! probe. After some intervals there, what is measured is taken as usual. How many is spread, so that not all
//! fileservers try it at once.

use std::time::Duration;

/// With fewer samples an interval gives no verdict, and is joined to the next.
const MIN_SAMPLES: u32 = 20;

/// By so much longer (ln 1.5) is an event, if it stands out.
const TOLERANCE: f64 = 0.405;

/// It stands out if it is so many standard errors of the mean.
const STANDARD_ERRORS: f64 = 3.0;

/// Less than this many requests' worth of waiting is none.
const QUEUE: f64 = 1.0;

/// How much of the way the baseline goes down in an interval.
const FALL: f64 = 0.25;

/// What is further below the baseline than this (ln 1.5) counts as that: an interval of requests that do next to nothing,
/// such as those that fail at once, must not drag it down.
const MOST_BELOW: f64 = 0.405;

/// How far the baseline rises in an interval at most (ln 1.02).
const MAX_RISE: f64 = 0.02;

/// Up to here (ln 1.1) the latency is as usual, and a probe begins anew.
const AS_USUAL: f64 = 0.095;

/// How many intervals a probe lasts: so many, and up to as many again.
const PROBE: f64 = 10.0;

/// What is known of the latency of one RPC.
#[derive(Debug)]
pub(super) struct Latency {
    current: Samples,
    /// The logarithm of what is usual, in seconds.
    baseline: Option<f64>,
    /// Intervals at the minimum since the latency was last as usual.
    probed: u32,
    probe: u32,
}

/// What an interval says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Too many run at once.
    pub(super) is_event: bool,
    /// What requests took in this interval.
    pub(super) short_term: Duration,
    /// What they usually take.
    pub(super) long_term: Duration,
}

#[derive(Debug, Default)]
struct Samples {
    count: u32,
    logarithms: f64,
    squares: f64,
    in_flight: f64,
}

impl Latency {
    /// `jitter`, from 0 to 1, spreads the probes.
    pub(super) fn new(jitter: f64) -> Self {
        let probe = (PROBE * (1.0 + jitter.clamp(0.0, 1.0))) as u32;
        Self { current: Samples::default(), baseline: None, probed: 0, probe }
    }

    /// A request took so long, from its start on, when so many were in flight, itself among them.
    pub(super) fn add(&mut self, latency: Duration, in_flight: usize) {
        let logarithm = latency.as_secs_f64().max(1e-6).ln();
        let current = &mut self.current;
        current.count = current.count.saturating_add(1);
        current.logarithms += logarithm;
        current.squares += logarithm * logarithm;
        current.in_flight += in_flight as f64;
    }

    /// Ends an interval, in which the machine was `overloaded` as other signals tell, and the limit was `at_min` or
    /// not. Nothing where there were too few requests.
    pub(super) fn end_interval(&mut self, overloaded: bool, at_min: bool) -> Option<Verdict> {
        if self.current.count < MIN_SAMPLES {
            return None;
        }
        let current = std::mem::take(&mut self.current);
        let (recent, error) = (current.mean(), current.standard_error());
        let Some(usual) = self.baseline else {
            self.baseline = (!overloaded).then_some(recent);
            return None;
        };
        let excess = recent - usual;
        let queue = current.mean_in_flight() * (1.0 - (-excess).exp());
        self.learn(Observed { recent, excess, error, queue, overloaded, at_min });
        Some(Verdict {
            is_event: excess > TOLERANCE.max(STANDARD_ERRORS * error) && queue >= QUEUE,
            short_term: seconds(recent),
            long_term: seconds(usual),
        })
    }

    fn learn(&mut self, Observed { recent, excess, error, queue, overloaded, at_min }: Observed) {
        if excess <= AS_USUAL {
            self.probed = 0;
        }
        let baseline = recent - excess;
        if excess < 0.0 {
            // Below by less than one standard error is chance, and would pull the baseline below what is usual.
            self.baseline = Some(baseline + FALL * (excess + error).clamp(-MOST_BELOW, 0.0));
        } else if overloaded {
            // What is slow now is no measure.
        } else if queue < QUEUE {
            self.baseline = Some(baseline + excess.min(MAX_RISE));
        } else if at_min && excess > AS_USUAL {
            self.probed += 1;
            if self.probed >= self.probe {
                (self.baseline, self.probed) = (Some(recent), 0);
            }
        }
    }
}

struct Observed {
    recent: f64,
    excess: f64,
    error: f64,
    queue: f64,
    overloaded: bool,
    at_min: bool,
}

impl Samples {
    fn mean(&self) -> f64 {
        self.logarithms / f64::from(self.count)
    }

    fn mean_in_flight(&self) -> f64 {
        self.in_flight / f64::from(self.count)
    }

    fn standard_error(&self) -> f64 {
        let variance = (self.squares / f64::from(self.count) - self.mean().powi(2)).max(0.0);
        (variance / f64::from(self.count)).sqrt()
    }
}

fn seconds(logarithm: f64) -> Duration {
    Duration::try_from_secs_f64(logarithm.exp()).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests;
