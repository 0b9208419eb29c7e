use std::fmt::Write as _;

use crate::history::{KEPT, Look};

/// Of the drawing, in its own unit.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 40.0;

/// Pressure and the lowest limit of a resource in the last 15 minutes, the newest at the right end.
pub(super) fn history(name: &str, looks: &[Look]) -> String {
    let last = looks.last().copied().unwrap_or_default();
    let pressure = last.pressure.map_or_else(|| "not told".to_owned(), percent);
    let lowest = last.lowest.map_or_else(String::new, |lowest| {
        format!(" <span class=\"limit\">lowest limit {}</span>", percent(lowest))
    });
    format!(
        "<figure class=\"history\"><figcaption><span class=\"used\">{name} <b>{pressure}</b></span>{lowest}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <path class=\"limit\" d=\"{}\"/><path class=\"used\" d=\"{}\"/></svg></figure>",
        line(looks.iter().map(|look| look.lowest)),
        line(looks.iter().map(|look| look.pressure)),
    )
}

fn percent(share: f32) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Shares from 0 to 1 as a line, with a gap where there is none.
fn line(values: impl ExactSizeIterator<Item = Option<f32>>) -> String {
    let mut path = String::new();
    let mut is_drawn = false;
    let first = KEPT.saturating_sub(values.len());
    for (at, value) in values.enumerate() {
        let Some(value) = value else {
            is_drawn = false;
            continue;
        };
        let x = WIDTH * (first + at) as f64 / (KEPT - 1) as f64;
        // The line has a width of its own, which must fit.
        let y = 1.0 + (HEIGHT - 2.0) * (1.0 - f64::from(value.clamp(0.0, 1.0)));
        let step = if is_drawn { 'L' } else { 'M' };
        // Writing to a string cannot fail.
        let _ = write!(path, "{step}{x:.1} {y:.1}");
        is_drawn = true;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_at_the_right_end_and_what_was_not_told_is_a_gap() {
        let values = [Some(0.0), None, Some(0.5), Some(2.0)];
        assert_eq!(line(values.into_iter()), "M236.0 39.0M238.7 20.0L240.0 1.0");
        let look = |pressure, lowest| Look { pressure, lowest };
        let plot = history("cpu", &[look(Some(0.5), Some(1.0)), look(Some(0.93), Some(0.12))]);
        assert!(plot.contains("cpu <b>93 %</b>") && plot.contains("lowest limit 12 %"), "{plot}");
        let plot = history("cpu", &[look(Some(0.5), None), look(None, None)]);
        assert!(plot.contains("<b>not told</b>") && !plot.contains("lowest"), "{plot}");
    }
}
