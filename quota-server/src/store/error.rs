use std::time::Duration;

use quota_core::Account;

use super::MAX_NODES;

/// Why the store did not answer, or not with what was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// No answer within the deadline.
    #[error("the store did not answer within {0:?}")]
    Timeout(Duration),
    /// No connection, or one that broke.
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    /// It answers, and takes no writes or no commands at the moment.
    #[error("the store refuses: {0}")]
    Refused(String, Cause),
    /// It answers something else than was asked for.
    #[error("the store answered: {0}")]
    Malformed(String),
    /// What it holds of this account cannot be read.
    #[error("what is stored of {0} cannot be read")]
    Corrupt(Account),
    /// No room for another account.
    #[error("the store holds as many accounts as it may (store.max_accounts)")]
    Full,
    /// No room for another node.
    #[error("as many nodes are remembered as may be ({MAX_NODES})")]
    TooManyNodes,
    /// No room for another source in this account.
    #[error("{0} has as many sources of reports as it can remember")]
    TooManySources(Account),
}

/// Why, as a metric's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No answer in time.
    Timeout,
    /// No connection.
    Connection,
    /// A replica, or a primary that was demoted.
    Readonly,
    /// Starting, failing over, or running a script for too long.
    Busy,
    /// Out of memory.
    Memory,
    /// Wrong password, or a right that is missing.
    Denied,
    /// An answer that cannot be read, or an error of another kind.
    Malformed,
    /// A value that cannot be read.
    Corrupt,
    /// More accounts, nodes or sources than there is room for.
    Full,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 9] = [
        Self::Timeout,
        Self::Connection,
        Self::Readonly,
        Self::Busy,
        Self::Memory,
        Self::Denied,
        Self::Malformed,
        Self::Corrupt,
        Self::Full,
    ];

    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Readonly => "readonly",
            Self::Busy => "busy",
            Self::Memory => "memory",
            Self::Denied => "denied",
            Self::Malformed => "malformed",
            Self::Corrupt => "corrupt",
            Self::Full => "full",
        }
    }
}

impl StoreError {
    /// The account that it is about, if it is about one.
    pub const fn account(&self) -> Option<&Account> {
        match self {
            Self::Corrupt(account) | Self::TooManySources(account) => Some(account),
            _ => None,
        }
    }

    /// The label of a metric for it.
    pub const fn cause(&self) -> Cause {
        match self {
            Self::Timeout(_) => Cause::Timeout,
            Self::Unreachable(_) => Cause::Connection,
            Self::Refused(_, cause) => *cause,
            Self::Malformed(_) => Cause::Malformed,
            Self::Corrupt(_) => Cause::Corrupt,
            Self::Full | Self::TooManyNodes | Self::TooManySources(_) => Cause::Full,
        }
    }
}
