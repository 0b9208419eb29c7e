#![allow(clippy::unwrap_used, reason = "a broken promise is told by panicking")]

use std::sync::Arc;

use quota_core::{Ratio, Timestamp, WindowLength, Word};
use quota_proto::UsedHere;

use super::overriding::text;
use super::{OverrideStanding, Overriding};
use crate::quota::{Label, Quota};
use crate::store::{Clock, MemoryStore, Saying, Store as _};

/// What is kept under a name of what operators say.
///
/// Whatever it is: what is told of it could be said again, and accounts are compared with what holds.
pub(crate) async fn word(name: &str, said: &[u8]) {
    let clock = Clock::Manual(Arc::default());
    let store = Arc::new(MemoryStore::new(WindowLength::default(), 1, clock));
    store.say(Saying { name, text: Some(said), lasts: None }).await.unwrap();
    let quota = Quota::bare(store);
    for OverrideStanding { account, word, reason, author, .. } in quota.list_overrides().await.unwrap() {
        let text = Some(text(&account, &word, &reason, &author).into());
        let again = Word { said: Timestamp::default(), until: None, text };
        let again = Overriding::read(&account.key(), &again).unwrap();
        assert_eq!((&again.account, again.word, again.reason), (&account, word, reason));
        let accounts = std::slice::from_ref(&account);
        quota.compare(accounts, &Label::default(), &UsedHere::default(), Ratio::ONE);
        quota.standings(accounts, &Label::default()).await.unwrap();
    }
    quota.list_modes().await.unwrap();
}
