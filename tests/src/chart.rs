//! Lines over two axes, as SVG.

use crate::svg::{Area, Svg};

/// What is drawn.
#[derive(Debug)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// As many as there are colours at most.
    pub lines: Vec<Line>,
}

/// A direction.
#[derive(Debug)]
pub struct Axis {
    /// What is told along it.
    pub label: String,
    /// How values are spread.
    pub scale: Scale,
    /// Values that are marked, with what is said of them, in rising order: it reaches from the first to the last.
    pub ticks: Vec<(f64, String)>,
}

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithms. All are above 0.
    Logarithmic,
}

/// A line, with its name.
#[derive(Debug)]
pub struct Line {
    /// What it is called.
    pub label: String,
    /// Where it leads. What is beyond an axis is drawn at its end.
    pub points: Vec<(f64, f64)>,
}

/// To be told apart, by those too who see fewer colours, on white.
const COLORS: [&str; 6] = ["#2471a3", "#d35400", "#1e8449", "#7d3c98", "#000000", "#b7950b"];

const PANEL: Area = Area { left: 74.0, top: 44.0, width: 520.0, height: 280.0 };

/// Room for the names of lines, right of the panel.
const LEGEND: f64 = 190.0;

/// Between two names.
const ROW: f64 = 18.0;

impl Axis {
    /// Where a value is, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let scaled = |value: f64| if self.scale == Scale::Logarithmic { value.log10() } else { value };
        let [(first, _), .., (last, _)] = &self.ticks[..] else { panic!("an axis has two ticks at least") };
        ((scaled(value) - scaled(*first)) / (scaled(*last) - scaled(*first))).clamp(0.0, 1.0)
    }
}

impl Chart {
    /// The picture.
    pub fn svg(&self) -> String {
        let Area { left, top, width, height } = PANEL;
        let (right, bottom) = (left + width, top + height);
        let mut svg = Svg::new(right + LEGEND, bottom + 50.0, &self.title);
        let (x, y) =
            (|value| left + width * self.x.place(value), |value| bottom - height * self.y.place(value));
        for (value, label) in &self.x.ticks {
            svg.line("#ddd", [(x(*value), top), (x(*value), bottom)]);
            svg.text_around(x(*value), bottom + 16.0, label);
        }
        for (value, label) in &self.y.ticks {
            svg.line("#ddd", [(left, y(*value)), (right, y(*value))]);
            svg.text_before(left - 6.0, y(*value) + 4.0, label);
        }
        svg.text_around(left + width / 2.0, bottom + 36.0, &self.x.label);
        svg.text(10.0, top - 8.0, &self.y.label);
        svg.frame(PANEL);
        assert!(self.lines.len() <= COLORS.len(), "more lines than colours");
        for (number, (line, color)) in self.lines.iter().zip(COLORS).enumerate() {
            svg.line(color, line.points.iter().map(|(at, value)| (x(*at), y(*value))));
            let row = top + 12.0 + ROW * number as f64;
            svg.line(color, [(right + 12.0, row - 4.0), (right + 30.0, row - 4.0)]);
            svg.text(right + 36.0, row, &line.label);
        }
        svg.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale, ticks: &[f64]) -> Axis {
        let ticks = ticks.iter().map(|value| (*value, value.to_string())).collect();
        Axis { label: "axis".into(), scale, ticks }
    }

    #[test]
    fn values_have_their_places_on_an_axis() {
        let linear = axis(Scale::Linear, &[0.0, 50.0, 200.0]);
        assert_eq!([0.0, 50.0, 200.0, 300.0].map(|value| linear.place(value)), [0.0, 0.25, 1.0, 1.0]);
        let logarithmic = axis(Scale::Logarithmic, &[1.0, 100.0]);
        assert_eq!([1.0, 10.0, 100.0, 0.1].map(|value| logarithmic.place(value)), [0.0, 0.5, 1.0, 0.0]);
    }

    #[test]
    fn a_chart_names_its_lines_and_axes() {
        let lines = vec![Line { label: "a < b & c".into(), points: vec![(0.0, 1.0), (1.0, 10.0)] }];
        let (x, y) = (axis(Scale::Linear, &[0.0, 1.0]), axis(Scale::Logarithmic, &[1.0, 10.0]));
        let svg = Chart { title: "title".into(), x, y, lines }.svg();
        for part in [">title<", ">a &lt; b &amp; c<", ">axis<", "M74.0 324.0L594.0 44.0"] {
            assert!(svg.contains(part), "no {part} in {svg}");
        }
    }
}
