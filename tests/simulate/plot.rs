//! What a scenario looks like under each rule over time: a column for each rule, a row for each quantity.

use quota_tests::simulate::{Scenario, Second, Trace};
use quota_tests::svg::{Area, Svg};

use crate::job::{Compared, Outcome};

/// Of a panel, in pixels.
const WIDTH: f64 = 170.0;
const HEIGHT: f64 = 90.0;
const GAP: f64 = 14.0;
const LEFT: f64 = 90.0;
const TOP: f64 = 56.0;

/// A point stands for so many seconds.
const BIN: usize = 15;

/// What is drawn.
struct Row {
    label: &'static str,
    /// The upper end of the scale; `None`: the largest value of the row.
    most: Option<(f64, &'static str)>,
    /// Of some seconds, from the first until before the second.
    value: fn(&Trace, usize, usize) -> f64,
}

const ROWS: [Row; 4] = [
    Row { label: "limit", most: Some((1.0, "max")), value: lowest },
    Row { label: "pressure", most: Some((1.0, "1")), value: pressure },
    Row { label: "light p95", most: None, value: latency },
    Row { label: "refused", most: Some((0.5, "50 %")), value: refused },
];

/// The lowest limit of any account or kind.
fn lowest(trace: &Trace, from: usize, until: usize) -> f64 {
    trace.seconds[from..until].iter().map(|second| second.lowest).fold(1.0, f64::min)
}

fn pressure(trace: &Trace, from: usize, until: usize) -> f64 {
    trace.seconds[from..until].iter().map(|second| second.load).sum::<f64>() / (until - from) as f64
}

/// Of light requests that ended, in seconds.
fn latency(trace: &Trace, from: usize, until: usize) -> f64 {
    let meanwhile = from as f64..until as f64;
    let ended = trace.light.iter().filter(|(at, _)| meanwhile.contains(at));
    let mut took: Vec<f64> = ended.map(|(_, took)| *took).collect();
    took.sort_unstable_by(f64::total_cmp);
    took.get(took.len() * 95 / 100).copied().unwrap_or_default()
}

/// Of light requests.
fn refused(trace: &Trace, from: usize, until: usize) -> f64 {
    let sum =
        |of: fn(&Second) -> u32| trace.seconds[from..until].iter().map(|it| f64::from(of(it))).sum::<f64>();
    let (refused, admitted) = (sum(|second| second.refused[0]), sum(|second| second.admitted[0]));
    refused / (refused + admitted).max(1.0)
}

pub(crate) fn svg(compared: &Compared<'_>) -> String {
    let width = LEFT + compared.outcomes.len() as f64 * (WIDTH + GAP);
    let height = TOP + ROWS.len() as f64 * (HEIGHT + GAP) + 20.0;
    let mut svg = Svg::new(width, height, &compared.scenario.title);
    for (number, outcome) in compared.outcomes.iter().enumerate() {
        let left = LEFT + number as f64 * (WIDTH + GAP);
        svg.text(left, TOP - 10.0, outcome.contender.name);
        for (at, row) in ROWS.iter().enumerate() {
            let top = TOP + at as f64 * (HEIGHT + GAP);
            let (most, label) = row.most.map_or_else(
                || (largest(row, &compared.outcomes), None),
                |(most, label)| (most, Some(label.to_owned())),
            );
            if number == 0 {
                svg.text(4.0, top + HEIGHT / 2.0, row.label);
                svg.text(LEFT - 30.0, top + 10.0, &label.unwrap_or_else(|| format!("{most:.0} s")));
            }
            let area = Area { left, top, width: WIDTH, height: HEIGHT };
            panel(&mut svg, area, compared.scenario);
            curve(&mut svg, area, most, row, &outcome.trace);
        }
    }
    svg.finish()
}

fn largest(row: &Row, outcomes: &[Outcome]) -> f64 {
    let values = outcomes.iter().flat_map(|outcome| values(row, &outcome.trace));
    values.fold(1.0, f64::max).ceil()
}

fn values<'a>(row: &'a Row, trace: &'a Trace) -> impl Iterator<Item = f64> + 'a {
    let bins = trace.seconds.len() / BIN;
    (0..bins).map(|bin| (row.value)(trace, bin * BIN, (bin + 1) * BIN))
}

/// A frame, in which the time of heavy traffic is grey.
fn panel(svg: &mut Svg, area: Area, scenario: &Scenario) {
    let x = |seconds: u32| area.width * f64::from(seconds) / f64::from(scenario.seconds);
    let (from, until) = (x(scenario.from), x(scenario.until));
    svg.shade(Area { left: area.left + from, width: until - from, ..area });
    svg.frame(area);
}

fn curve(svg: &mut Svg, area: Area, most: f64, row: &Row, trace: &Trace) {
    let bins = (trace.seconds.len() / BIN) as f64;
    let point = |(bin, value): (usize, f64)| {
        let x = area.left + area.width * (bin as f64 + 0.5) / bins;
        (x, area.top + area.height * (1.0 - (value / most).min(1.0)))
    };
    svg.line("#2471a3", values(row, trace).enumerate().map(point));
}
