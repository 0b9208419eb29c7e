use std::time::Duration;

/// How much to measure.
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    /// Accounts in Redis that the scripts are called on, a third of them of each kind.
    pub(crate) accounts: usize,
    /// Rounds of the scripts; each calls every script once for three accounts.
    pub(crate) script_rounds: usize,
    /// Accounts where there are many.
    pub(crate) many_accounts: usize,
    /// Rounds of few and many.
    pub(crate) growth_rounds: usize,
    /// Accounts of each kind that a client knows where its memory is measured.
    pub(crate) client_accounts: usize,
    /// Seconds in which each has cost, to be busy.
    pub(crate) busy_seconds: u32,
    /// Requests that are admitted in this process where that is measured.
    pub(crate) local_requests: u32,
    /// Rounds of checks over gRPC.
    pub(crate) check_rounds: usize,
    /// How long one row is measured in a round.
    pub(crate) check_time: Duration,
    /// Calls of `redis-benchmark` in a round, for each number of connections.
    pub(crate) redis_calls: usize,
    /// Checks in a round of those that are sent by a schedule.
    pub(crate) scheduled_checks: u32,
    /// Rounds in which it is counted what is admitted.
    pub(crate) admission_rounds: usize,
    /// How long it is asked for in one.
    pub(crate) admission_time: Duration,
    /// Requests a minute that are a user's limit, where shares lie idle.
    pub(crate) staleness_limit: u32,
    /// In which it wants as many.
    pub(crate) staleness_time: Duration,
    /// Starts on each store.
    pub(crate) starts: usize,
}

impl Plan {
    pub(crate) const FULL: Self = Self {
        name: "full",
        accounts: 15_000,
        script_rounds: 5,
        many_accounts: 1_000_000,
        growth_rounds: 9,
        client_accounts: 1_000,
        busy_seconds: 60,
        local_requests: 1_000_000,
        check_rounds: 5,
        check_time: Duration::from_secs(2),
        redis_calls: 20_000,
        scheduled_checks: 20_000,
        admission_rounds: 3,
        admission_time: Duration::from_secs(5),
        staleness_limit: 2_000,
        staleness_time: Duration::from_secs(4),
        starts: 11,
    };

    pub(crate) const QUICK: Self = Self {
        name: "quick",
        accounts: 300,
        script_rounds: 1,
        many_accounts: 3_000,
        growth_rounds: 1,
        client_accounts: 30,
        busy_seconds: 2,
        local_requests: 2_000,
        check_rounds: 1,
        check_time: Duration::from_millis(50),
        redis_calls: 500,
        scheduled_checks: 100,
        admission_rounds: 1,
        admission_time: Duration::from_secs(1),
        staleness_limit: 100,
        staleness_time: Duration::from_millis(500),
        starts: 1,
    };
}
