use std::fmt::Write as _;

use quota_core::Mode;

/// Of the drawings, in their own unit: what was used added up, and second by second.
const WIDTH: f64 = 600.0;
const SUM_HEIGHT: f64 = 100.0;
const BARS_HEIGHT: f64 = 36.0;

/// What an account used of a resource within the window, the oldest bucket first, and what it may use.
pub(super) struct Minute<'a> {
    pub(super) spent: &'a [u64],
    pub(super) limit: Option<u64>,
    pub(super) mode: Mode,
}

impl Minute<'_> {
    /// What is used added up from the oldest second on, so that it ends at what counts now, with the limit as a line; below
    /// it each second by itself, on a scale of its own.
    pub(super) fn svg(&self) -> String {
        let used: u64 = self.spent.iter().sum();
        let limit = self.limit.filter(|_| self.mode != Mode::Off);
        let most = used.max(limit.unwrap_or_default()).max(1) as f64;
        // Some room above what is highest.
        let y = |amount: u64| SUM_HEIGHT * (1.0 - 0.92 * amount as f64 / most);
        let limit = limit.map_or_else(String::new, |limit| {
            format!("<path class=\"limit {}\" d=\"M0 {y:.1}H{WIDTH}\"/>", self.mode.as_str(), y = y(limit))
        });
        let (mut line, mut sum) = (format!("M0 {SUM_HEIGHT}"), 0);
        let step = WIDTH / self.spent.len().max(1) as f64;
        for (at, spent) in self.spent.iter().enumerate() {
            sum += spent;
            // Writing to a string cannot fail.
            let _ = write!(line, "V{:.1}H{:.1}", y(sum), step * (at + 1) as f64);
        }
        format!(
            "<svg class=\"sum\" viewBox=\"0 0 {WIDTH} {SUM_HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <path class=\"area\" d=\"{line}V{SUM_HEIGHT}Z\"/><path class=\"used\" d=\"{line}\"/>{limit}</svg>\
             <svg class=\"seconds\" viewBox=\"0 0 {WIDTH} {BARS_HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <path class=\"used\" d=\"{}\"/></svg>",
            self.bars(step),
        )
    }

    /// The most that was spent in a bucket.
    pub(super) fn peak(&self) -> u64 {
        self.spent.iter().copied().max().unwrap_or_default()
    }

    fn bars(&self, step: f64) -> String {
        let most = self.peak().max(1) as f64;
        let mut bars = String::new();
        for (at, spent) in self.spent.iter().enumerate().filter(|(_, spent)| **spent > 0) {
            // What is little is seen as well.
            let height = (BARS_HEIGHT * *spent as f64 / most).max(1.0);
            let (x, width) = (step * at as f64 + 0.1 * step, 0.8 * step);
            let _ = write!(bars, "M{x:.1} {BARS_HEIGHT}v-{height:.1}h{width:.1}v{height:.1}Z");
        }
        bars
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_at_what_is_used_and_the_limit_is_a_line() {
        let minute = Minute { spent: &[10, 0, 30], limit: Some(80), mode: Mode::Enforce };
        let svg = minute.svg();
        // 40 of 80: half of the height below the room at the top.
        assert!(svg.contains("d=\"M0 100V88.5H200.0V88.5H400.0V54.0H600.0V100Z\""), "{svg}");
        assert!(svg.contains("<path class=\"limit enforce\" d=\"M0 8.0H600\"/>"), "{svg}");
        assert!(svg.contains("d=\"M20.0 36v-12.0h160.0v12.0ZM420.0 36v-36.0h160.0v36.0Z\""), "{svg}");
        assert_eq!(minute.peak(), 30);
    }

    #[test]
    fn what_is_not_compared_has_no_line() {
        for (limit, mode) in [(Some(80), Mode::Off), (None, Mode::Enforce)] {
            let svg = Minute { spent: &[0; 60], limit, mode }.svg();
            assert!(!svg.contains("limit") && !svg.contains("NaN"), "{svg}");
        }
    }
}
