use std::hash::{Hash, Hasher};

use quota_core::{Account, Ipv6Prefix, Kind};
use quota_proto::{Invalid, v1};

/// Who pays for a piece of work: as it names them, and each in its one spelling, which is found out once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Payers {
    named: v1::Accounts,
    /// Of those that are named, in the order of [`Kind::ALL`].
    accounts: Vec<Account>,
}

impl Payers {
    /// Those of the names that the service would take, and the faults of the others: one that was sent would spoil the
    /// whole request, and one that freed the request would be a way around every limit.
    pub(crate) fn new(mut named: v1::Accounts) -> (Self, Vec<Invalid>) {
        let (mut accounts, mut faults) = (Vec::with_capacity(Kind::ALL.len()), Vec::new());
        let v1::Accounts { repo, user, ip } = &mut named;
        for (kind, id) in [(Kind::Repo, repo), (Kind::User, user), (Kind::Ip, ip)] {
            match id.as_deref().map(|id| Account::new(kind, id, Ipv6Prefix::default())) {
                Some(Ok(account)) => accounts.push(account),
                Some(Err(fault)) => {
                    *id = None;
                    faults.push(Invalid::new(format!("accounts.{kind}"), fault));
                }
                None => {}
            }
        }
        (Self { named, accounts }, faults)
    }

    /// Whether nobody pays.
    pub(crate) const fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub(crate) fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// As they travel: as they were named, since the service may group addresses otherwise.
    pub(crate) const fn named(&self) -> &v1::Accounts {
        &self.named
    }

    /// Each account, and what it was named.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Account, &str)> {
        let v1::Accounts { repo, user, ip } = &self.named;
        self.accounts.iter().zip([repo, user, ip].into_iter().flatten().map(String::as_str))
    }
}

impl Hash for Payers {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.named.hash(state);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One user who pays.
    pub(crate) fn user(name: &str) -> Payers {
        Payers::new(v1::Accounts { user: Some(name.to_owned()), ..v1::Accounts::default() }).0
    }

    #[test]
    fn each_account_goes_with_its_name_and_what_is_no_name_is_left_out() {
        let named = v1::Accounts {
            repo: Some("group//project.git".to_owned()),
            user: Some("a\nb".to_owned()),
            ip: Some("::ffff:203.0.113.7".to_owned()),
        };
        let (payers, faults) = Payers::new(named);
        let shown: Vec<_> = payers.iter().map(|(account, name)| format!("{account}, {name}")).collect();
        assert_eq!(shown, ["repo group/project, group//project.git", "ip 203.0.113.7, ::ffff:203.0.113.7"]);
        assert_eq!((faults.len(), payers.named().user.as_deref()), (1, None));
        assert!(Payers::default().is_empty());
    }
}
