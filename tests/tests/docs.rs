//! Every link from page to page leads somewhere, to its heading too.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| if path.is_dir() { pages(&path) } else { vec![path] };
    entries.flat_map(of).filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// What is outside of blocks of code.
fn prose(page: &Path) -> String {
    let text = fs::read_to_string(page).unwrap();
    text.split("```").step_by(2).collect()
}

/// What is behind `](`, as far as it is no address of the web.
fn links(page: &Path) -> Vec<String> {
    let prose = prose(page);
    let links = prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
    links.filter(|link| !link.contains("://")).collect()
}

/// The anchors of a page's headings, as they are made from their words.
fn anchors(page: &Path) -> BTreeSet<String> {
    let prose = prose(page);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = pages(&root.join("docs"));
    all.extend(["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(|name| root.join(name)));
    let mut followed = 0;
    for page in &all {
        for link in links(page) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", page.display());
            assert!(anchor.is_empty() || anchors(&target).contains(anchor), "{}: {link}", page.display());
            followed += 1;
        }
    }
    assert!(followed > 60, "{followed} links are found");
}
