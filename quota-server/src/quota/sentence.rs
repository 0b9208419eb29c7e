use std::fmt;

use quota_core::Account;

/// A sentence about an account, which begins with its name. A log may have to name it otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Who it is about.
    pub account: Account,
    /// What is said, after the name.
    pub said: String,
    /// What an operator gave as the reason, which may name anybody.
    pub reason: Option<Box<str>>,
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, said, reason } = self;
        write!(f, "{account}{said}")?;
        reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}
