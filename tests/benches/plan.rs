use std::time::Duration;

/// How much to measure.
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    /// Accounts in Redis that the scripts are called on, a third of them of each kind.
    pub(crate) accounts: usize,
    /// Rounds of the scripts; each calls every script once for three accounts.
    pub(crate) script_rounds: usize,
    /// Rounds of checks over gRPC.
    pub(crate) check_rounds: usize,
    /// How long one row is measured in a round.
    pub(crate) check_time: Duration,
    /// Checks in a round of those that are sent by a schedule.
    pub(crate) scheduled_checks: u32,
    /// Starts on each store.
    pub(crate) starts: usize,
}

impl Plan {
    pub(crate) const FULL: Self = Self {
        name: "full",
        accounts: 15_000,
        script_rounds: 5,
        check_rounds: 5,
        check_time: Duration::from_secs(2),
        scheduled_checks: 20_000,
        starts: 11,
    };

    pub(crate) const QUICK: Self = Self {
        name: "quick",
        accounts: 300,
        script_rounds: 1,
        check_rounds: 1,
        check_time: Duration::from_millis(50),
        scheduled_checks: 100,
        starts: 1,
    };
}
