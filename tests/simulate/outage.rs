//! What an outage does to interactive requests beside CI calls, with traffic classes and without.

use std::path::Path;

use quota_tests::outage::{CLASSES, Outcome, chart, run, slow};

/// Prints the worst of so many seeds, and draws the first.
pub(crate) fn tell(file: &Path, seeds: u64) {
    let runs: Vec<[Outcome; 2]> = (0..seeds).map(|seed| [run(true, seed), run(false, seed)]).collect();
    for (number, name) in ["with classes", "without"].iter().enumerate() {
        for (class, of_class) in CLASSES.iter().enumerate() {
            let outcomes = || runs.iter().map(|run| &run[number]);
            let success = outcomes().map(|outcome| outcome.success(class, slow())).fold(1.0, f64::min);
            let wait = outcomes().map(|outcome| outcome.p99_wait(class, slow())).max().unwrap_or_default();
            let recovery = outcomes()
                .map(|outcome| outcome.recovery(class))
                .max_by_key(|recovery| recovery.map_or(u64::MAX, |recovery| recovery.as_secs()));
            println!(
                "{of_class}, {name}: {:.2} % served while calls take long, p99 of the wait {wait:?}, served again {:?} after it",
                100.0 * success,
                recovery.flatten(),
            );
        }
    }
    if let Some([with, without]) = runs.first() {
        super::write(file, &chart(with, without).svg());
    }
}
