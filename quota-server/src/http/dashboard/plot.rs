/// Of the drawing, in its own unit.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 40.0;

/// Shares from 0 to 1 over time as a line, the newest at the right end; a gap where nothing was told. `most` is how many fit.
pub(super) fn line(label: &str, values: &[Option<f32>], most: usize) -> String {
    let mut path = String::new();
    let mut is_drawn = false;
    let first = most.saturating_sub(values.len());
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value else {
            is_drawn = false;
            continue;
        };
        let x = WIDTH * (first + at) as f64 / (most.max(2) - 1) as f64;
        // The line has a width of its own, which must fit.
        let y = 1.0 + (HEIGHT - 1.0) * (1.0 - f64::from(value.clamp(0.0, 1.0)));
        path += &format!("{}{x:.1} {y:.1}", if is_drawn { 'L' } else { 'M' });
        is_drawn = true;
    }
    let last = values.last().copied().flatten();
    let now = last.map_or_else(|| "not told".to_owned(), |value| format!("{:.0} %", 100.0 * value));
    format!(
        "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}: {now}\" preserveAspectRatio=\"none\">\
         <path d=\"{path}\"/></svg><figcaption>{label} <b>{now}</b></figcaption></figure>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_at_the_right_end_and_what_was_not_told_is_a_gap() {
        let svg = line("CPU", &[Some(0.0), None, Some(0.5), Some(2.0)], 5);
        assert!(svg.contains("d=\"M60.0 40.0M180.0 20.5L240.0 1.0\""), "{svg}");
        assert!(svg.contains("<b>200 %</b>"), "{svg}");
        assert!(line("CPU", &[Some(0.5), None], 5).contains("<b>not told</b>"));
    }
}
