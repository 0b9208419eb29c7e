//! Sixty million CI calls a day, interactive requests beside them, a hundred workers for both, and an outage in which every call takes
//! a hundred times as long: with traffic classes, and without. What it is, what becomes of it where it is simulated, and how that is
//! told, which is the same where real processes [go through it](../outage/main.rs).

mod outcome;
mod simulated;

use std::ops::Range;
use std::time::Duration;

pub use self::outcome::{Fate, Outcome, chart, tell};
pub use self::simulated::run;

/// Interactive requests, and CI calls.
pub const CLASSES: [&str; 2] = ["interactive", "ci"];

/// Of each class in a second: 60 million a day are 700.
pub const PER_SECOND: [f64; 2] = [50.0, 700.0];

/// For both.
pub const WORKERS: usize = 100;

/// How long calls take, as a rule and in the outage.
pub const WORK: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(500)];

/// What waits for a worker longer than this is given up by its caller.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Of CI: its cap, how many wait in a process, and for how long.
pub const CI_SLOTS: u32 = 50;
/// The same.
pub const CI_QUEUE: usize = 100;
/// The same.
pub const CI_MAX_WAIT: Duration = Duration::from_secs(2);

/// A CI call that is told to come back does so as often as this.
pub const RETRIES: u8 = 3;

/// When calls take long, and when it ends, in seconds from the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// The outage.
    pub slow: Range<u64>,
    /// Until the last call comes.
    pub seconds: u64,
}

impl Times {
    /// Two minutes of five.
    pub const FULL: Self = Self { slow: 60..180, seconds: 300 };
}
