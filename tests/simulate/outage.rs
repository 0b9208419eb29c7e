//! What an outage does to interactive requests beside CI calls, with traffic classes and without.

use std::path::Path;

use quota_tests::outage::{Outcome, chart, run, tell};

/// Prints the worst of so many seeds, and draws the first.
pub(crate) fn simulate(file: &Path, seeds: u64) {
    let of = |with_classes| (0..seeds).map(|seed| run(with_classes, seed)).collect::<Vec<Outcome>>();
    let (with, without) = (of(true), of(false));
    print!("{}", tell(&with, &without));
    if let (Some(with), Some(without)) = (with.first(), without.first()) {
        super::write(file, &chart(with, without).svg());
    }
}
