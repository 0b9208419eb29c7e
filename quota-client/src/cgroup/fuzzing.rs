use super::files::{CPU, MEMORY, pids};

/// A file of a cgroup.
///
/// Whatever it says: what is counted is written there, and of CPU in no smaller a unit; there are no more processes than
/// lines.
pub(crate) fn files(text: &str) {
    let numbers = || text.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
    for counter in MEMORY {
        let count = (counter.parse)(text);
        assert!(count.is_none_or(|count| numbers().any(|number| number == count)), "{count:?}");
    }
    for counter in CPU {
        let count = (counter.parse)(text);
        let is_there = |count| numbers().any(|number| number == count || number / 1000 == count);
        assert!(count.is_none_or(is_there), "{count:?}");
    }
    assert!(pids(text).len() <= text.lines().count());
}
