//! Settings of the property tests.

use proptest::test_runner::{Config, FileFailurePersistence};

/// A configuration for integration tests that runs `cases` cases and keeps each failing one in the tree, in
/// `<test>.proptest-regressions` beside the test's source, to be committed. (The default finds that place for
/// library tests only.)
pub fn cases(cases: u32) -> Config {
    let beside_the_source = FileFailurePersistence::WithSource("proptest-regressions");
    Config { failure_persistence: Some(Box::new(beside_the_source)), ..Config::with_cases(cases) }
}
