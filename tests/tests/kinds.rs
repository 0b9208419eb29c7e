//! Each kind of fault of the catalogue, F01 to F29, has a test that is named after it, so that none is lost.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Of the catalogue.
const KINDS: usize = 29;

/// The workspace's packages that hold tests.
const PACKAGES: [&str; 6] = ["proto", "quota-client", "quota-core", "quota-server", "quotactl", "tests"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.flat_map(of).filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The names of the functions that are tests, and always run: what follows an attribute `test`, without `ignore`.
fn tests(source: &str) -> Vec<&str> {
    let (mut names, mut is_test, mut is_ignored) = (Vec::new(), false, false);
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_test |= ["#[test]", "#[tokio::test"].iter().any(|attribute| line.starts_with(attribute));
            is_ignored |= line.starts_with("#[ignore");
        } else if let Some((_, rest)) = line.split_once("fn ") {
            if is_test && !is_ignored {
                names.extend(rest.split('(').next());
            }
            (is_test, is_ignored) = (false, false);
        }
    }
    names
}

#[test]
fn each_kind_of_fault_has_a_test_of_its_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    for file in PACKAGES.iter().flat_map(|package| sources(&root.join(package))) {
        for name in tests(&fs::read_to_string(&file).unwrap()) {
            *named.entry(name.chars().take(4).collect()).or_default() += 1;
        }
    }
    for kind in (1..=KINDS).map(|kind| format!("f{kind:02}_")) {
        assert!(named.contains_key(&kind), "no test begins with {kind}");
    }
}

#[test]
fn only_what_runs_is_a_test() {
    let source = "
        #[tokio::test(start_paused = true)]
        async fn one() {}
        #[test]
        #[ignore = \"it wants an engine\"]
        fn another() {}
        fn helper() {}
        #[test]
        /// Why.
        fn two() {}
    ";
    assert_eq!(tests(source), ["one", "two"]);
}
