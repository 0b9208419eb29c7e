//! How long the light user's fetches took, over the time of the runs: a dot each, on a logarithmic scale.

use std::fmt::Write as _;

use crate::figures::Run;

/// Of the area of the dots, in pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;

/// The scale, in seconds.
const LEAST: f64 = 0.01;
const MOST: f64 = 100.0;

pub(crate) fn svg(idle: &Run, unprotected: &Run, protected: &Run) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">What a fetch of the light user takes, beside noisy clients</text>\n",
        LEFT + WIDTH + 20.0,
        TOP + HEIGHT + 50.0,
    );
    for (seconds, label) in [(0.01, "10 ms"), (0.1, "100 ms"), (1.0, "1 s"), (10.0, "10 s"), (100.0, "100 s")]
    {
        line(&mut svg, y(seconds), "#ddd", "");
        text(&mut svg, 10.0, y(seconds) + 4.0, "black", label);
    }
    let last = [idle, unprotected, protected]
        .into_iter()
        .flat_map(|run| &run.samples)
        .map(|sample| sample.at.as_secs_f64());
    let last = last.fold(1.0, f64::max);
    line(&mut svg, y(idle.percentile(0.95)), "#888", " stroke-dasharray=\"4 4\"");
    let mut legend = LEFT;
    for (run, colour) in [(idle, "#888"), (unprotected, "#c0392b"), (protected, "#2471a3")] {
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
        text(&mut svg, legend, TOP + HEIGHT + 40.0, colour, &format!("● {}", run.name));
        legend += 120.0;
    }
    text(&mut svg, legend, TOP + HEIGHT + 40.0, "black", "○ failed   - - - idle, 95th percentile");
    for (share, at) in [(0.0, 0.0), (0.5, last / 2.0), (1.0, last)] {
        text(&mut svg, LEFT + WIDTH * share - 10.0, TOP + HEIGHT + 18.0, "black", &format!("{at:.0} s"));
    }
    svg + "</svg>\n"
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
