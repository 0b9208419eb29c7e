//! Real servers on a real Redis under load, something breaks, and a bookkeeper compares what the callers were
//! acknowledged with what is counted.
//!
//! Each caller does one piece of work after the other: it asks for it, and reports what it cost, in batches with a source
//! and a sequence that it sends unchanged until they are acknowledged. Some speak HTTP by themselves and write down every
//! answer; the others are the crate `quota-client`. Each piece of work has an account of its own (a repository) beside
//! the one of its caller (a user), so that one that is lost and one that counts twice do not cancel out. Prices are CPU,
//! costs are network, so that neither hides the other. The window is an hour: nothing leaves it meanwhile.
//!
//! # What is a failure
//!
//! - A price that was acknowledged as reserved (`checked: true`) and does not count: *lost*.
//! - A charge that was acknowledged (200, a duplicate included) and does not count: *lost*.
//! - An account on which anything else counts than its own work, or that more than once: *wrong*.
//! - A caller's account that is not the sum of its work: each admission and each charge is on all accounts or none.
//! - A check that is denied, or answered with an error while the fail policy is `open`; a report that is answered with
//!   anything but 200 or 503; a report that is given up by the client crate.
//! - No decision of the store for every caller within [`PATIENCE`](crate::wait::PATIENCE) after the fault has ended,
//!   without a restart of anything but what the fault itself had ended.
//!
//! # What is none
//!
//! - A check that the store did not decide (`checked: false`, or no answer since its server is gone). Its price counts
//!   once or not at all; where it counts, it is *stray*, and ages out.
//! - On a Cluster, a price of such a check that counts on one of its accounts alone: it is *split*, and ages out.
//! - What is acknowledged at most [`LOSS`] before a Redis is killed that syncs once a second, or before a primary is
//!   demoted whose replica lags: named where it is permitted, and nowhere else.
//! - A long wait as such. How long is a figure ([`Outcome`]); a test asserts that deadlines exist, and `scripts/faults`
//!   that they are kept.
//!
//! # Which nondeterminism remains
//!
//! Which requests are under way when the fault strikes, how they are spread over batches and connections, and so which
//! of the unanswered ones count; the source of a client, its jitter and that of its endpoints. What is asked, by whom
//! and with which amounts is the same in each run.

mod api;
mod book;
mod client;
mod counters;
mod load;
mod outcome;
mod run;
mod scenarios;
mod slots;
mod storm;
mod work;

use std::time::Duration;

pub use book::{Balance, Books};
pub use outcome::Outcome;
pub use run::{Run, Settled};
pub use scenarios::Scenario;
pub use storm::storm;

/// The most that may be lost of what was acknowledged, where persistence or replication is asynchronous: Redis syncs
/// its append-only file once a second, and waits up to a second more for a disk that is slow.
pub const LOSS: Duration = Duration::from_secs(2);

/// How much load, and what it runs on.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Callers that speak HTTP by themselves.
    pub api_callers: usize,
    /// Callers that are the crate `quota-client`.
    pub client_callers: usize,
    /// From a caller's check to its next.
    pub pace: Duration,
    /// Checks of each caller before the fault, again while it lasts unless the fault has a length of its own, and again
    /// after it.
    pub checks: usize,
    /// `store.deadline` of the servers.
    pub store_deadline: Duration,
    /// The deadline of the client crate.
    pub client_deadline: Duration,
}

impl Scale {
    /// The same number of callers, none of them the client crate: it does not tell when it was acknowledged what.
    pub fn api_only(&self) -> Self {
        Self { api_callers: self.api_callers + self.client_callers, client_callers: 0, ..*self }
    }
}
