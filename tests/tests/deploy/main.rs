//! What is in `deploy/`: alert rules and the board, by themselves and against real servers, and what Kubernetes is told.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod board;
mod kubernetes;
mod live;
mod rules;
mod shut_in;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap()
}

/// The metrics of ours that a query or a rule names, without what Prometheus adds to the name of a histogram.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names = words.filter(|word| word.starts_with("quota_"));
    let plain = |name| {
        let suffix =
            ["_bucket", "_sum", "_count"].into_iter().find_map(|suffix| str::strip_suffix(name, suffix));
        suffix.unwrap_or(name)
    };
    names.map(plain).collect()
}
