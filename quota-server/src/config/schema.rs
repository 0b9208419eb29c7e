//! What may be written: the keys of the defaults, each with a value of the same type, prices of any RPC, classes of
//! any name, and in lists what those who read them know.
//!
//! Checked on each layer before they are merged, because the `config` crate converts between types as it reads
//! (`"on"` to 1, 16.7 to 17), and its messages repeat the value.

use std::collections::BTreeMap;

use config::{Map, Value, ValueKind};

use super::error::{Fault, Key};

pub(super) type Table = Map<String, Value>;

/// The value at a path.
pub(super) fn lookup<'a>(table: &'a Table, path: &[impl AsRef<str>]) -> Option<&'a ValueKind> {
    let (first, rest) = path.split_first()?;
    match &table.get(first.as_ref())?.kind {
        kind if rest.is_empty() => Some(kind),
        ValueKind::Table(inner) => lookup(inner, rest),
        _ => None,
    }
}

/// The same, to be changed.
pub(super) fn lookup_mut<'a>(table: &'a mut Table, path: &[impl AsRef<str>]) -> Option<&'a mut ValueKind> {
    let (first, rest) = path.split_first()?;
    match &mut table.get_mut(first.as_ref())?.kind {
        kind if rest.is_empty() => Some(kind),
        ValueKind::Table(inner) => lookup_mut(inner, rest),
        _ => None,
    }
}

/// The path of every value.
pub(super) fn paths(table: &Table) -> Vec<Vec<String>> {
    let below = |(name, value): (&String, &Value)| match &value.kind {
        ValueKind::Table(inner) => {
            paths(inner).into_iter().map(|path| [vec![name.clone()], path].concat()).collect()
        }
        _ => vec![vec![name.clone()]],
    };
    table.iter().flat_map(below).collect()
}

/// Checks a table that stands at `path` against what is known there.
pub(super) fn check(given: &Table, known: &Table, path: &[&str]) -> Result<(), Fault> {
    // Sorted, so that of several faults the same one is told each time.
    for (name, value) in given.iter().collect::<BTreeMap<_, _>>() {
        let path = [path, &[name.as_str()]].concat();
        let expected = match path[..] {
            ["prices" | "classes", _] => known.get("default"),
            _ => known.get(name),
        };
        let Some(expected) = expected else {
            return Err((Key::new(&path), unknown(known)));
        };
        match (&value.kind, &expected.kind) {
            (ValueKind::Table(given), ValueKind::Table(known)) => check(given, known, &path)?,
            (ValueKind::String(_), ValueKind::String(_))
            | (ValueKind::I64(_), ValueKind::I64(_) | ValueKind::Float(_))
            | (ValueKind::Float(_), ValueKind::Float(_))
            | (ValueKind::Boolean(_), ValueKind::Boolean(_))
            // What is in a list is looked at where it is read.
            | (ValueKind::Array(_), ValueKind::Array(_)) => {}
            (_, expected) => return Err((Key::new(&path), must_be(expected))),
        }
    }
    Ok(())
}

/// The value that an environment variable's text gives to the key at `path`.
pub(super) fn from_text(text: String, known: &Table, path: &[impl AsRef<str>]) -> Result<ValueKind, Fault> {
    let mut place: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
    // Each class has the settings of the default one, whatever its name.
    if let ["classes", name, ..] = &mut place[..] {
        *name = "default";
    }
    let Some(expected) = lookup(known, &place) else {
        return Err((Key::new(path), unknown(nearest(known, &place))));
    };
    let value = match expected {
        ValueKind::String(_) => Some(ValueKind::String(text)),
        ValueKind::I64(_) => text.parse().ok().map(ValueKind::I64),
        ValueKind::Float(_) => text.parse().ok().map(ValueKind::Float),
        ValueKind::Boolean(_) => text.parse().ok().map(ValueKind::Boolean),
        _ => None,
    };
    value.ok_or_else(|| (Key::new(path), must_be(expected)))
}

fn must_be(expected: &ValueKind) -> String {
    match expected {
        ValueKind::String(example) => format!("must be a string, such as {example:?}"),
        ValueKind::I64(example) => format!("must be a whole number, such as {example}"),
        ValueKind::Float(example) => format!("must be a number, such as {example}"),
        ValueKind::Boolean(_) => "must be true or false".into(),
        ValueKind::Array(_) => "must be a list of tables, which is written in a file".into(),
        _ => "must be a table of settings".into(),
    }
}

fn unknown(known: &Table) -> String {
    let mut names: Vec<&str> = known.keys().map(String::as_str).collect();
    names.sort_unstable();
    format!("unknown setting; known here: {}", names.join(", "))
}

/// The innermost known table on the way to a path.
fn nearest<'a>(known: &'a Table, path: &[impl AsRef<str>]) -> &'a Table {
    match path.split_first().and_then(|(first, rest)| Some((&known.get(first.as_ref())?.kind, rest))) {
        Some((ValueKind::Table(inner), rest)) => nearest(inner, rest),
        _ => known,
    }
}
