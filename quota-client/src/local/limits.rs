use std::collections::HashMap;

use quota_core::{Account, Comparison, PerKind, PerResource};
use quota_proto::v1;

/// The most accounts with limits of their own that are remembered. A further one is held to those of its kind.
const MAX_OWN: usize = 16_384;

/// What an account is compared with.
pub(crate) type Comparisons = PerResource<Comparison>;

/// The limits that were last told.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Those of every account that has none of its own.
    kinds: PerKind<Option<Comparisons>>,
    own: HashMap<Account, Comparisons>,
}

impl Limits {
    /// The service has told what an account is compared with. What cannot be read teaches nothing.
    pub(super) fn learn(&mut self, account: &Account, standing: &v1::Standing) {
        let Ok(told) = quota_proto::comparisons(standing) else { return };
        if !standing.own {
            self.own.remove(account);
            self.kinds[account.kind()] = Some(told);
        } else if let Some(known) = self.own.get_mut(account) {
            *known = told;
        } else if self.own.len() < MAX_OWN {
            self.own.insert(account.clone(), told);
        }
    }

    /// What an account was last compared with; none where nothing was told of its kind.
    pub(super) fn of(&self, account: &Account) -> Option<Comparisons> {
        self.own.get(account).copied().or(self.kinds[account.kind()])
    }
}

#[cfg(test)]
mod tests {
    use quota_core::{Kind, Limit, Resource};

    use super::*;

    fn user(name: &str) -> Account {
        Account::from_spelling(Kind::User, name).unwrap()
    }

    fn standing(micros: u64, own: bool) -> v1::Standing {
        let limit = |amount| v1::Limit { limit: Some(v1::limit::Limit::Amount(amount)) };
        let told = v1::ResourceStanding {
            limit: Some(limit(micros)),
            mode: v1::Mode::Enforce.into(),
            ..v1::ResourceStanding::default()
        };
        v1::Standing {
            cpu: Some(told.clone()),
            memory: Some(told.clone()),
            network: Some(told),
            own,
            ..v1::Standing::default()
        }
    }

    fn cpu(limits: &Limits, account: &Account) -> Option<Limit> {
        limits.of(account).map(|comparisons| comparisons[Resource::Cpu].ceiling.limit)
    }

    #[test]
    fn the_limits_of_a_kind_hold_for_strangers_and_an_accounts_own_for_itself_alone() {
        let mut limits = Limits::default();
        let [alice, bot, stranger] = ["alice", "bot", "stranger"].map(user);
        assert_eq!(cpu(&limits, &stranger), None, "nothing is known");
        limits.learn(&alice, &standing(100, false));
        limits.learn(&bot, &standing(0, true));
        let known = |limits: &Limits| [&alice, &bot, &stranger].map(|account| cpu(limits, account));
        assert_eq!(known(&limits), [100, 0, 100].map(|micros| Some(Limit::At(micros))));
        assert_eq!(cpu(&limits, &Account::from_spelling(Kind::Repo, "alice").unwrap()), None, "another kind");
        limits.learn(&bot, &standing(400, true));
        limits.learn(&stranger, &standing(50, false));
        assert_eq!(known(&limits), [50, 400, 50].map(|micros| Some(Limit::At(micros))));
        limits.learn(&bot, &standing(50, false));
        assert_eq!(cpu(&limits, &bot), Some(Limit::At(50)), "its override is gone");
        limits.learn(&bot, &v1::Standing { cpu: None, ..standing(7, false) });
        assert_eq!(cpu(&limits, &bot), Some(Limit::At(50)), "what cannot be read teaches nothing");
    }

    #[test]
    fn the_limits_of_single_accounts_are_bounded() {
        let mut limits = Limits::default();
        for number in 0..=MAX_OWN {
            limits.learn(&user(&number.to_string()), &standing(1, true));
        }
        assert_eq!(limits.own.len(), MAX_OWN);
        limits.learn(&user("3"), &standing(2, true));
        assert_eq!(cpu(&limits, &user("3")), Some(Limit::At(2)), "one that is known is still heard of");
    }
}
