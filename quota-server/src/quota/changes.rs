//! What ends what was told before: an operator's word, or another configuration.

use std::sync::Arc;

use quota_core::Account;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

/// Changes that one who follows may have before it, of which there are a few a second at most. Of more, it is told that all
/// has changed.
const MAX_BEHIND: usize = 16;

/// What was told of these may hold no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// At most [`Change::MOST`].
    Of(Arc<[Account]>),
    /// Every account.
    All,
}

/// Tells those who follow.
pub struct Changes(Sender<Change>);

/// One that follows.
pub struct Following(Receiver<Change>);

impl Change {
    /// The most accounts that are named.
    pub const MOST: usize = 64;

    /// Of these; none where there are none.
    pub fn of(accounts: Vec<Account>) -> Option<Self> {
        match accounts.len() {
            0 => None,
            1..=Self::MOST => Some(Self::Of(accounts.into())),
            _ => Some(Self::All),
        }
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self(channel(MAX_BEHIND).0)
    }
}

impl Changes {
    /// From now on.
    pub fn follow(&self) -> Following {
        Following(self.0.subscribe())
    }

    pub(super) fn tell(&self, change: Option<Change>) {
        if let Some(change) = change {
            // Nobody may follow.
            let _ = self.0.send(change);
        }
    }
}

impl Following {
    /// The next; none when the server is gone.
    pub async fn next(&mut self) -> Option<Change> {
        match self.0.recv().await {
            Ok(change) => Some(change),
            Err(RecvError::Lagged(_)) => Some(Change::All),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use quota_core::Kind;

    use super::*;

    fn users(count: usize) -> Vec<Account> {
        let user = |number| Account::from_spelling(Kind::User, &format!("user-{number}")).unwrap();
        (0..count).map(user).collect()
    }

    #[test]
    fn a_few_are_named_and_many_are_all() {
        assert_eq!(Change::of(users(0)), None);
        assert_eq!(Change::of(users(Change::MOST)), Some(Change::Of(users(Change::MOST).into())));
        assert_eq!(Change::of(users(Change::MOST + 1)), Some(Change::All));
    }

    #[tokio::test]
    async fn who_is_far_behind_is_told_of_all() {
        let changes = Changes::default();
        let mut following = changes.follow();
        changes.tell(None);
        changes.tell(Change::of(users(1)));
        assert_eq!(following.next().await, Change::of(users(1)));
        for _ in 0..=MAX_BEHIND {
            changes.tell(Change::of(users(2)));
        }
        assert_eq!(following.next().await, Some(Change::All));
        assert_eq!(following.next().await, Change::of(users(2)));
        drop(changes);
        while following.next().await.is_some() {}
    }
}
