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
            let recovered = outcomes().map(|outcome| outcome.recovery(class).map(|after| after.as_secs()));
            let recovered = recovered.max_by_key(|seconds| seconds.unwrap_or(u64::MAX)).flatten();
            let recovered =
                recovered.map_or("never again".to_owned(), |seconds| format!("again {seconds} s after it"));
            println!(
                "{of_class}, {name}: {:.2} % served while calls take long, p99 of the wait {} ms, 99 % served {recovered}",
                100.0 * success,
                wait.as_millis(),
            );
        }
    }
    if let Some([with, without]) = runs.first() {
        super::write(file, &chart(with, without).svg());
    }
}
