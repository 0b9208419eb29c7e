use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::Balance;

/// The figures of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Checks that were asked.
    pub checks: usize,
    /// Of these, those that the store did not decide.
    pub unchecked: usize,
    /// The longest wait for a server's answer to a check.
    pub api_wait: Duration,
    /// The longest wait for the client crate's decision.
    pub client_wait: Duration,
    /// From the fault's end until the store had decided for every caller.
    pub back_after: Duration,
    /// How often a call of the servers to the store failed, by its cause: by the metrics of those that still run.
    pub store_errors: BTreeMap<String, u64>,
    /// What the servers warned of.
    pub warnings: Vec<String>,
    /// What the bookkeeper found.
    pub balance: Balance,
    /// What was acknowledged after this moment may be lost; nothing, if there is none.
    pub may_lose_since: Option<Instant>,
    /// The price of a check that was not decided may count on one of its accounts alone.
    pub may_split: bool,
}

impl Outcome {
    /// # Panics
    ///
    /// Panics if anything counts twice, or anything is lost that may not be.
    pub fn assert_balanced(&self) {
        match self.may_lose_since {
            None if self.may_split => self.balance.assert_kept_but_split(),
            None => self.balance.assert_kept(),
            Some(moment) => self.balance.assert_lost_since(moment),
        }
    }
}
