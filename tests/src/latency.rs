//! How long calls take: histograms, and what they look like.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::chart::{Axis, Chart, Line, Scale};

/// Of microseconds, with three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("a histogram")
}

/// Counts a latency.
pub fn record(histogram: &mut Histogram<u64>, took: Duration) {
    histogram
        .record(u64::try_from(took.as_micros()).expect("a time within reach"))
        .expect("room for any time");
}

/// Of so many, one is above the percentile that is named so.
const PERCENTILES: [(f64, &str); 5] =
    [(2.0, "50 %"), (10.0, "90 %"), (100.0, "99 %"), (1e3, "99.9 %"), (1e4, "99.99 %")];

/// In nanoseconds.
const TIMES: [(f64, &str); 9] = [
    (1e1, "10 ns"),
    (1e2, "100 ns"),
    (1e3, "1 us"),
    (1e4, "10 us"),
    (1e5, "100 us"),
    (1e6, "1 ms"),
    (1e7, "10 ms"),
    (1e8, "100 ms"),
    (1e9, "1 s"),
];

/// Points of a line between two percentiles that are marked.
const STEPS: u32 = 40;

/// Within which time which part of the calls was answered. Each histogram comes with its name and its unit in nanoseconds.
pub fn chart(title: &str, histograms: &[(&str, &Histogram<u64>, f64)]) -> Chart {
    let lines: Vec<Line> = histograms.iter().map(|(label, of, unit)| line(label, of, *unit)).collect();
    let times = || lines.iter().flat_map(|line| &line.points).map(|(_, time)| *time);
    let least = times().fold(f64::INFINITY, f64::min);
    let most = times().fold(0.0, f64::max);
    let first = TIMES.iter().rposition(|(time, _)| *time <= least).unwrap_or(0).min(TIMES.len() - 2);
    let last = TIMES.iter().position(|(time, _)| *time >= most).unwrap_or(TIMES.len() - 1).max(first + 1);
    let ticks = |ticks: &[(f64, &str)]| ticks.iter().map(|(at, label)| (*at, (*label).to_owned())).collect();
    Chart {
        title: title.to_owned(),
        x: Axis {
            label: "of the calls were answered".to_owned(),
            scale: Scale::Logarithmic,
            ticks: ticks(&PERCENTILES),
        },
        y: Axis { label: "within".to_owned(), scale: Scale::Logarithmic, ticks: ticks(&TIMES[first..=last]) },
        lines,
    }
}

fn line(label: &str, histogram: &Histogram<u64>, unit: f64) -> Line {
    let [(first, _), .., (last, _)] = PERCENTILES;
    let decades = (last / first).log10();
    let steps = (f64::from(STEPS) * decades) as u32;
    let points = (0..=steps).map(|step| {
        let one_in = first * 10_f64.powf(decades * f64::from(step) / f64::from(steps));
        let value = histogram.value_at_quantile(1.0 - 1.0 / one_in) as f64 * unit;
        (one_in, value.max(TIMES[0].0))
    });
    Line { label: label.to_owned(), points: points.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_reaches_from_the_least_to_the_longest() {
        let mut latencies = histogram();
        for micros in 1..=15_000 {
            record(&mut latencies, Duration::from_micros(micros));
        }
        let chart = chart("title", &[("calls", &latencies, 1e3)]);
        let ends = [chart.y.ticks.first(), chart.y.ticks.last()].map(|tick| tick.unwrap().1.as_str());
        assert_eq!(ends, ["1 ms", "100 ms"], "from 7.5 ms, which half took less than, to 15 ms");
        let [(_, half), .., (_, most)] = chart.lines[0].points[..] else { panic!("{chart:?}") };
        assert!((7.4e6..7.6e6).contains(&half) && (14.9e6..15.1e6).contains(&most), "{half} {most}");
    }
}
