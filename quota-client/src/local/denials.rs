use std::collections::HashMap;
use std::time::Duration;

use quota_core::Account;
use tokio::time::Instant;

use super::Stale;
use crate::Denial;

/// The most accounts whose refusal is remembered. About a further one the service is asked each time.
const MAX_ACCOUNTS: usize = 16_384;

/// About an account that is refused the service is asked once in so long all the same: an operator's word, or a price that
/// is given back, ends a refusal before its time.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Who is refused, and until when.
#[derive(Debug, Default)]
pub(super) struct Denials {
    accounts: HashMap<Account, Remembered>,
    /// When those that have ended were last dropped.
    swept: Option<Instant>,
}

#[derive(Debug)]
struct Remembered {
    denial: Denial,
    until: Instant,
    asked: Instant,
}

impl Denials {
    /// The service has refused an account just `now`: it is over a limit `until` then, if nothing is spent or changed.
    pub(super) fn remember(&mut self, account: &Account, denial: &Denial, until: Instant, now: Instant) {
        if self.accounts.len() >= MAX_ACCOUNTS && !self.accounts.contains_key(account) {
            self.drop_ended(now);
            if self.accounts.len() >= MAX_ACCOUNTS {
                return;
            }
        }
        self.accounts.insert(account.clone(), Remembered { denial: denial.clone(), until, asked: now });
    }

    /// An account is below its limits.
    pub(super) fn forget(&mut self, account: &Account) {
        if !self.accounts.is_empty() {
            self.accounts.remove(account);
        }
    }

    /// What was told of these may hold no more.
    pub(super) fn forget_of(&mut self, stale: &Stale) {
        self.accounts.retain(|account, _| !stale.is_of(account));
    }

    /// Whether the service is to be asked about a request of these accounts. Where one of them is refused, that is one
    /// request a second: whoever is told yes is the one.
    pub(super) fn may_ask(&mut self, accounts: &[Account], now: Instant) -> bool {
        if self.accounts.is_empty() {
            return true;
        }
        for account in accounts {
            if self.accounts.get(account).is_some_and(|remembered| remembered.until <= now) {
                self.accounts.remove(account);
            }
        }
        let is_due = |remembered: &Remembered| now.saturating_duration_since(remembered.asked) >= ASK_AGAIN;
        let may_ask = accounts.iter().filter_map(|account| self.accounts.get(account)).all(is_due);
        if may_ask {
            for account in accounts {
                if let Some(remembered) = self.accounts.get_mut(account) {
                    remembered.asked = now;
                }
            }
        }
        may_ask
    }

    /// Of the refusals of these accounts the one that stands for longest, with the time that is left of it.
    pub(super) fn in_force(&self, accounts: &[Account], now: Instant) -> Option<Denial> {
        let remembered = accounts.iter().filter_map(|account| self.accounts.get(account));
        let last = remembered.filter(|remembered| remembered.until > now).max_by_key(|last| last.until)?;
        Some(last.denial.again(last.until.saturating_duration_since(now)))
    }

    /// At most once a second, since it looks at all of them.
    fn drop_ended(&mut self, now: Instant) {
        let is_due = |swept: Instant| now.saturating_duration_since(swept) >= Duration::from_secs(1);
        if self.swept.is_none_or(is_due) {
            self.swept = Some(now);
            self.accounts.retain(|_, remembered| remembered.until > now);
        }
    }
}

#[cfg(test)]
mod tests {
    use quota_core::Kind;

    use super::*;

    fn user(name: &str) -> Account {
        Account::from_spelling(Kind::User, name).unwrap()
    }

    fn denial() -> Denial {
        Denial::unavailable(Duration::from_secs(9), "gitaly-01")
    }

    fn wait(denials: &Denials, accounts: &[Account], now: Instant) -> Option<Duration> {
        denials.in_force(accounts, now).map(|denial| denial.retry_after())
    }

    #[test]
    fn a_refusal_stands_until_its_moment_and_is_asked_about_once_a_second() {
        let (mut denials, start) = (Denials::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        let accounts = [user("alice")];
        denials.remember(&accounts[0], &denial(), at(2500), start);
        for (millis, asks, left) in [
            (0, false, Some(2500)),
            (999, false, Some(1501)),
            (1000, true, Some(1500)),
            (1000, false, Some(1500)),
            (1999, false, Some(501)),
            (2000, true, Some(500)),
            (2499, false, Some(1)),
            (2500, true, None),
            (2500, true, None),
        ] {
            assert_eq!(denials.may_ask(&accounts, at(millis)), asks, "after {millis} ms");
            assert_eq!(
                wait(&denials, &accounts, at(millis)),
                left.map(Duration::from_millis),
                "after {millis} ms"
            );
        }
        assert!(denials.accounts.is_empty(), "one that has ended takes no room");
    }

    #[test]
    fn it_is_of_its_account_alone_and_of_two_the_later_counts() {
        let (mut denials, now) = (Denials::default(), Instant::now());
        let [alice, bob, carol] = ["alice", "bob", "carol"].map(user);
        denials.remember(&alice, &denial(), now + Duration::from_secs(5), now);
        denials.remember(&bob, &denial(), now + Duration::from_secs(7), now);
        assert!(denials.may_ask(std::slice::from_ref(&carol), now));
        assert!(!denials.may_ask(&[alice.clone(), carol], now));
        assert_eq!(wait(&denials, &[alice.clone(), bob.clone()], now), Some(Duration::from_secs(7)));
        denials.forget(&bob);
        assert!(denials.may_ask(std::slice::from_ref(&bob), now));
        assert_eq!(wait(&denials, &[alice, bob], now), Some(Duration::from_secs(5)));
    }

    #[test]
    fn what_changes_of_one_ends_no_other() {
        let (mut denials, now) = (Denials::default(), Instant::now());
        let [alice, bob] = ["alice", "bob"].map(user);
        for account in [&alice, &bob] {
            denials.remember(account, &denial(), now + Duration::from_secs(5), now);
        }
        denials.forget_of(&Stale::Of(vec![bob.clone()]));
        assert!(denials.may_ask(&[bob], now) && !denials.may_ask(std::slice::from_ref(&alice), now));
        denials.forget_of(&Stale::All);
        assert!(denials.may_ask(&[alice], now));
    }

    #[test]
    fn they_are_bounded_and_those_that_have_ended_make_room() {
        let (mut denials, now) = (Denials::default(), Instant::now());
        let until = now + Duration::from_secs(5);
        for number in 0..=MAX_ACCOUNTS {
            denials.remember(&user(&number.to_string()), &denial(), until, now);
        }
        assert_eq!(denials.accounts.len(), MAX_ACCOUNTS);
        let further = [user(&MAX_ACCOUNTS.to_string())];
        assert!(denials.may_ask(&further, now), "there was no room for it");
        denials.remember(&further[0], &denial(), until + Duration::from_secs(5), until);
        assert_eq!(denials.accounts.len(), 1);
        assert!(!denials.may_ask(&further, until));
    }
}
