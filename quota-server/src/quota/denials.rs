use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use quota_core::{Account, Limit};

use super::words::in_words;
use super::{Denial, Label};
use crate::shown::Shown;

/// The most accounts whose denials are counted apart in a second.
const MAX_ACCOUNTS: usize = 1024;

/// Says every denial in the log, and a flood of one account's once a second with its count.
///
/// The first denial of an account in a second is a line of its own. What follows in that second is counted, and said
/// by [`Denials::sum_up`]; beyond 1,024 accounts a second, for all further ones together.
pub struct Denials {
    shown: Arc<Shown>,
    second: Mutex<Second>,
}

#[derive(Default)]
struct Second {
    /// How often each account was denied after its line.
    repeated: HashMap<Account, u64>,
    /// How often accounts were denied that found no place.
    others: u64,
}

impl Denials {
    /// None yet; accounts are to be named like this.
    pub fn new(shown: Arc<Shown>) -> Self {
        Self { shown, second: Mutex::default() }
    }

    pub(super) fn tell(&self, denial: &Denial, node: &Label, rpc: &Label) {
        let denied_by = &denial.breach;
        if !self.second.lock().is_first(&denied_by.account) {
            return;
        }
        let (account, resource) = (&denied_by.account, denied_by.resource);
        tracing::info!(
            kind = account.kind().as_str(),
            id = self.shown.id(account),
            resource = resource.as_str(),
            used = in_words(resource, Limit::At(denied_by.used)),
            limit = in_words(resource, denied_by.limit),
            node = node.as_str(),
            rpc = rpc.as_str(),
            why = denial.explanation.as_ref().map(|explained| self.shown.sentence(&explained.why)),
            "denied"
        );
    }

    /// Says what was not said in the second that ends; to be called once a second.
    pub fn sum_up(&self) {
        let second = std::mem::take(&mut *self.second.lock());
        for (account, count) in second.repeated.iter().filter(|(_, count)| **count > 0) {
            tracing::info!(
                kind = account.kind().as_str(),
                id = self.shown.id(account),
                count,
                "denied again within a second"
            );
        }
        if second.others > 0 {
            tracing::info!(count = second.others, "denied within a second, other accounts");
        }
    }
}

impl Second {
    fn is_first(&mut self, account: &Account) -> bool {
        if let Some(count) = self.repeated.get_mut(account) {
            *count += 1;
            return false;
        }
        if self.repeated.len() >= MAX_ACCOUNTS {
            self.others += 1;
            return false;
        }
        self.repeated.insert(account.clone(), 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use quota_core::{Ipv6Prefix, Kind};

    use super::*;

    fn user(id: usize) -> Account {
        Account::new(Kind::User, &id.to_string(), Ipv6Prefix::default()).unwrap()
    }

    #[test]
    fn the_first_denial_of_a_second_is_said_and_the_rest_counted() {
        let mut second = Second::default();
        assert!(second.is_first(&user(1)));
        assert!(!second.is_first(&user(1)));
        assert!(!second.is_first(&user(1)));
        assert!(second.is_first(&user(2)));
        assert_eq!((second.repeated[&user(1)], second.repeated[&user(2)]), (2, 0));
    }

    #[test]
    fn accounts_are_bounded_and_none_goes_uncounted() {
        let mut second = Second::default();
        let said = (0..2000).filter(|id| second.is_first(&user(*id))).count();
        assert_eq!((said, second.repeated.len(), second.others), (MAX_ACCOUNTS, MAX_ACCOUNTS, 2000 - 1024));
    }
}
