//! The figures of a run, for the terminal and as JSON: the same ones.

use std::fmt::{self, Display, Formatter};

use serde_json::{Map, Value, json};

/// What a run found.
#[derive(Default)]
pub(crate) struct Report {
    facts: Vec<(&'static str, Value)>,
    sections: Vec<Section>,
}

/// Figures that were measured together.
pub(crate) struct Section {
    title: String,
    figures: Vec<Figure>,
}

struct Figure {
    key: String,
    label: String,
    spread: Spread,
    aim: Option<Aim>,
}

/// What the median is to be.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    AtMost(f64),
    AtLeast(f64),
    Exactly(f64),
}

/// The lowest, the middle and the highest of what the rounds gave.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

impl Report {
    /// States something that is no measurement.
    pub(crate) fn fact(&mut self, key: &'static str, value: impl Into<Value>) {
        self.facts.push((key, value.into()));
    }

    /// The section that the next figures belong to.
    pub(crate) fn section(&mut self, title: impl Into<String>) -> &mut Section {
        self.sections.push(Section { title: title.into(), figures: Vec::new() });
        self.sections.last_mut().expect("the section just added")
    }

    /// One object: facts as they are, figures as `{"min": …, "median": …, "max": …}`.
    pub(crate) fn json(&self) -> String {
        let facts = self.facts.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        let figures = self.sections.iter().flat_map(|section| &section.figures);
        let figures = figures.map(|figure| (figure.key.clone(), figure.spread.json()));
        format!("{:#}\n", Value::Object(Map::from_iter(facts.chain(figures))))
    }
}

impl Section {
    /// Adds a figure. The last part of its key is the unit.
    pub(crate) fn figure(&mut self, key: impl Into<String>, label: impl Into<String>, spread: Spread) {
        self.figures.push(Figure { key: key.into(), label: label.into(), spread, aim: None });
    }

    /// What the last figure is to be.
    pub(crate) fn aim(&mut self, aim: Aim) {
        self.figures.last_mut().expect("a figure").aim = Some(aim);
    }
}

impl Spread {
    /// Of one value at least.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let [min, .., max] = values[..] else {
            let [only] = values[..] else { panic!("nothing was measured") };
            return Self { min: only, median: only, max: only };
        };
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Self { min, median, max }
    }

    fn json(self) -> Value {
        json!({ "min": rounded(self.min), "median": rounded(self.median), "max": rounded(self.max) })
    }
}

impl Aim {
    fn is_met(self, median: f64) -> bool {
        match self {
            Self::AtMost(most) => median <= most,
            Self::AtLeast(least) => median >= least,
            Self::Exactly(value) => median == value,
        }
    }
}

impl Display for Aim {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "aim <= {most}"),
            Self::AtLeast(least) => write!(f, "aim >= {least}"),
            Self::Exactly(value) => write!(f, "aim {value}"),
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.facts {
            writeln!(f, "{key:<24} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))?;
        }
        for Section { title, figures } in &self.sections {
            writeln!(f, "\n{title}\n{:<56} {:>9} {:>9} {:>9}", "", "min", "median", "max")?;
            for Figure { label, spread, aim, .. } in figures {
                let [min, median, max] = [spread.min, spread.median, spread.max].map(rounded);
                write!(f, "  {label:<54} {min:>9} {median:>9} {max:>9}")?;
                match aim {
                    Some(aim) if aim.is_met(spread.median) => writeln!(f, "  {aim}")?,
                    Some(aim) => writeln!(f, "  {aim}, missed")?,
                    None => writeln!(f)?,
                }
            }
        }
        Ok(())
    }
}

/// With as many digits as a measurement may claim.
fn rounded(value: f64) -> f64 {
    let unit = if value < 10.0 {
        100.0
    } else if value < 100.0 {
        10.0
    } else {
        1.0
    };
    (value * unit).round() / unit
}
