//! Pictures in SVG, on a white ground whatever colour is around them.

use std::fmt::Write as _;

/// What is drawn so far. Lengths are in pixels, from the upper left corner.
#[derive(Debug)]
pub struct Svg(String);

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// Its left edge.
    pub left: f64,
    /// Its upper edge.
    pub top: f64,
    /// From left to right.
    pub width: f64,
    /// From top to bottom.
    pub height: f64,
}

impl Svg {
    /// One of this size, with a title in its upper left corner.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let mut svg = Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        ));
        svg.element(format_args!("<text x=\"10\" y=\"20\" font-size=\"14\">{}</text>", escaped(title)));
        svg
    }

    /// Text that begins at a point of its base line.
    pub fn text(&mut self, x: f64, y: f64, text: &str) {
        self.element(format_args!("<text x=\"{x:.0}\" y=\"{y:.0}\">{}</text>", escaped(text)));
    }

    /// Text that ends there.
    pub fn text_before(&mut self, x: f64, y: f64, text: &str) {
        self.element(format_args!(
            "<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"end\">{}</text>",
            escaped(text)
        ));
    }

    /// Text whose middle is there.
    pub fn text_around(&mut self, x: f64, y: f64, text: &str) {
        self.element(format_args!(
            "<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"middle\">{}</text>",
            escaped(text)
        ));
    }

    /// A grey area.
    pub fn shade(&mut self, Area { left, top, width, height }: Area) {
        self.element(format_args!(
            "<rect x=\"{left:.0}\" y=\"{top:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#eee\"/>"
        ));
    }

    /// The edges of an area.
    pub fn frame(&mut self, Area { left, top, width, height }: Area) {
        self.element(format_args!(
            "<rect x=\"{left:.0}\" y=\"{top:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" fill=\"none\" stroke=\"#888\"/>"
        ));
    }

    /// A line through points.
    pub fn line(&mut self, color: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for (x, y) in points {
            let command = if path.is_empty() { 'M' } else { 'L' };
            write!(path, "{command}{x:.1} {y:.1}").expect("room");
        }
        self.element(format_args!(
            "<path fill=\"none\" stroke=\"{color}\" stroke-width=\"1.3\" d=\"{path}\"/>"
        ));
    }

    /// The whole picture.
    pub fn finish(self) -> String {
        self.0 + "</svg>\n"
    }

    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{element}").expect("room");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
