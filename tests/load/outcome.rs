use std::fmt::{self, Display, Formatter};

use hdrhistogram::Histogram;
use quota_tests::latency::histogram;
use serde_json::{Value, json};

/// What became of all calls.
pub(crate) struct Outcome {
    /// From the scheduled moment to the answer, microseconds.
    pub(crate) checks: Histogram<u64>,
    pub(crate) reports: Histogram<u64>,
    /// How much later than scheduled checks were sent: this machine's, and part of their latencies.
    pub(crate) late: Histogram<u64>,
    pub(crate) counts: Counts,
    /// How long it took, in seconds.
    pub(crate) seconds: f64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Checks that were due.
    pub(crate) scheduled: u64,
    /// Not sent, since as many as may be were in flight.
    pub(crate) unsent: u64,
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
    /// Allowed although the store did not answer.
    pub(crate) unchecked: u64,
    /// Answered by an error, or not at all.
    pub(crate) failed: u64,
    pub(crate) reports: u64,
    pub(crate) reports_failed: u64,
    /// Costs that were reported.
    pub(crate) charges: u64,
    /// Costs that were given up: too many waited, or the report failed.
    pub(crate) charges_given_up: u64,
}

impl Default for Outcome {
    fn default() -> Self {
        let (checks, reports, late) = (histogram(), histogram(), histogram());
        Self { checks, reports, late, counts: Counts::default(), seconds: 0.0 }
    }
}

impl Outcome {
    /// Adds what another fileserver saw.
    pub(crate) fn add(&mut self, other: &Self) {
        for (own, other) in [
            (&mut self.checks, &other.checks),
            (&mut self.reports, &other.reports),
            (&mut self.late, &other.late),
        ] {
            own.add(other).expect("histograms of one kind");
        }
        let (own, other) = (&mut self.counts, other.counts);
        own.scheduled += other.scheduled;
        own.unsent += other.unsent;
        own.allowed += other.allowed;
        own.denied += other.denied;
        own.unchecked += other.unchecked;
        own.failed += other.failed;
        own.reports += other.reports;
        own.reports_failed += other.reports_failed;
        own.charges += other.charges;
        own.charges_given_up += other.charges_given_up;
    }

    pub(crate) fn json(&self, seed: u64) -> String {
        let it = &self.counts;
        let figures = json!({
            "seed": seed,
            "seconds": self.seconds,
            "checks": {
                "scheduled": it.scheduled,
                "unsent": it.unsent,
                "allowed": it.allowed,
                "denied": it.denied,
                "unchecked": it.unchecked,
                "failed": it.failed,
                "us": quantiles(&self.checks),
                "late_us": quantiles(&self.late),
            },
            "reports": {
                "sent": it.reports,
                "failed": it.reports_failed,
                "charges": it.charges,
                "charges_given_up": it.charges_given_up,
                "us": quantiles(&self.reports),
            },
        });
        format!("{figures:#}\n")
    }
}

const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999), ("max", 1.0)];

fn quantiles(histogram: &Histogram<u64>) -> Value {
    let quantiles = QUANTILES
        .map(|(name, quantile)| (name.to_owned(), Value::from(histogram.value_at_quantile(quantile))));
    Value::Object(quantiles.into_iter().collect())
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let it = &self.counts;
        writeln!(
            f,
            "{} checks in {:.1} s: {} allowed, {} denied, {} unchecked, {} failed, {} not sent",
            it.scheduled, self.seconds, it.allowed, it.denied, it.unchecked, it.failed, it.unsent
        )?;
        writeln!(
            f,
            "{} reports: {} failed, {} costs told, {} given up",
            it.reports, it.reports_failed, it.charges, it.charges_given_up
        )?;
        write!(f, "{:10}", "us")?;
        for (name, _) in QUANTILES {
            write!(f, " {name:>9}")?;
        }
        writeln!(f)?;
        for (name, histogram) in
            [("checks", &self.checks), ("reports", &self.reports), ("sent late", &self.late)]
        {
            write!(f, "{name:10}")?;
            for (_, quantile) in QUANTILES {
                write!(f, " {:>9}", histogram.value_at_quantile(quantile))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
