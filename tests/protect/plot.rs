//! How long the light user's fetches took, over the time of the runs: a dot each, on a logarithmic scale.

use std::fmt::Write as _;

use crate::figures::Compared;

/// Of the area of the dots, in pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;
/// From one panel to the next.
const PANEL: f64 = TOP + HEIGHT + 60.0;

/// The scale, in seconds.
const LEAST: f64 = 0.01;
const MOST: f64 = 100.0;

/// Of the runs, in their order.
const COLOURS: [&str; 5] = ["#888", "#c0392b", "#2471a3", "#ca6f1e", "#1e8449"];

/// A panel for each crowd, one below the other.
pub(crate) fn svg(all: &[Compared]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        LEFT + WIDTH + 20.0,
        all.len() as f64 * PANEL,
    );
    for (number, compared) in all.iter().enumerate() {
        writeln!(svg, "<g transform=\"translate(0 {})\">", number as f64 * PANEL).expect("room");
        panel(&mut svg, compared);
        svg.push_str("</g>\n");
    }
    svg + "</svg>\n"
}

fn panel(svg: &mut String, Compared { crowd, runs }: &Compared) {
    let title = format!("What a fetch of a light user takes, beside {}", crowd.name());
    text(svg, LEFT, 20.0, "black", &title);
    for (seconds, label) in [(0.01, "10 ms"), (0.1, "100 ms"), (1.0, "1 s"), (10.0, "10 s"), (100.0, "100 s")]
    {
        line(svg, y(seconds), "#ddd", "");
        text(svg, 10.0, y(seconds) + 4.0, "black", label);
    }
    let last = runs.iter().flat_map(|run| &run.samples).map(|sample| sample.at.as_secs_f64());
    let last = last.fold(1.0, f64::max);
    line(svg, y(runs[0].percentile(0.95)), "#888", " stroke-dasharray=\"4 4\"");
    let mut legend = LEFT;
    for (run, colour) in runs.iter().zip(COLOURS) {
        for sample in &run.samples {
            let x = LEFT + WIDTH * sample.at.as_secs_f64() / last;
            let fill = if sample.succeeded { colour } else { "none" };
            let y = y(sample.took.as_secs_f64());
            writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{fill}\" stroke=\"{colour}\"/>"
            )
            .expect("room");
        }
        text(svg, legend, TOP + HEIGHT + 40.0, colour, &format!("● {}", run.name));
        legend += 95.0;
    }
    text(svg, legend, TOP + HEIGHT + 40.0, "black", "○ failed   - - - idle, 95th percentile");
    for (share, at) in [(0.0, 0.0), (0.5, last / 2.0), (1.0, last)] {
        text(svg, LEFT + WIDTH * share - 10.0, TOP + HEIGHT + 18.0, "black", &format!("{at:.0} s"));
    }
}

fn y(seconds: f64) -> f64 {
    let share = (seconds.clamp(LEAST, MOST) / LEAST).log10() / (MOST / LEAST).log10();
    TOP + HEIGHT * (1.0 - share)
}

fn line(svg: &mut String, y: f64, colour: &str, style: &str) {
    let right = LEFT + WIDTH;
    writeln!(
        svg,
        "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\"{style}/>"
    )
    .expect("room");
}

fn text(svg: &mut String, x: f64, y: f64, colour: &str, label: &str) {
    writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{label}</text>").expect("room");
}
