use quota_core::{Account, Kind};
use quota_proto::v1;

/// Of whom what was told may hold no more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    All,
    Of(Vec<Account>),
}

impl Stale {
    /// What cannot be read may be anybody.
    pub(crate) fn read(changed: &v1::Changed) -> Self {
        let account = |told: &v1::Account| {
            let kind = Kind::try_from(told.kind()).ok()?;
            Account::from_spelling(kind, &told.id).ok()
        };
        let accounts = changed.accounts.iter().map(account).collect::<Option<Vec<_>>>();
        accounts.filter(|_| !changed.all).map_or(Self::All, Self::Of)
    }

    /// Whether it is of this account. The service may group addresses otherwise, so that an address stands for all.
    pub(super) fn is_of(&self, account: &Account) -> bool {
        match self {
            Self::All => true,
            Self::Of(accounts) if account.kind() == Kind::Ip => {
                accounts.iter().any(|stale| stale.kind() == Kind::Ip)
            }
            Self::Of(accounts) => accounts.contains(account),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(kind: v1::Kind, id: &str) -> v1::Account {
        v1::Account { kind: kind.into(), id: id.to_owned() }
    }

    fn read(accounts: &[v1::Account], all: bool) -> Stale {
        Stale::read(&v1::Changed { accounts: accounts.to_vec(), all })
    }

    #[test]
    fn it_is_of_those_who_are_named_and_of_all_addresses_where_one_is() {
        let of = |kind, id| Account::from_spelling(kind, id).unwrap();
        let alice = read(&[account(v1::Kind::User, "alice")], false);
        assert!(alice.is_of(&of(Kind::User, "alice")) && !alice.is_of(&of(Kind::Repo, "alice")));
        let ip = read(&[account(v1::Kind::Ip, "2001:db8::/48")], false);
        assert!(ip.is_of(&of(Kind::Ip, "203.0.113.7")) && !ip.is_of(&of(Kind::User, "alice")));
    }

    #[test]
    fn what_cannot_be_read_is_of_everybody() {
        let alice = account(v1::Kind::User, "alice");
        assert_eq!(read(std::slice::from_ref(&alice), true), Stale::All);
        assert_eq!(read(&[alice.clone(), account(v1::Kind::Unspecified, "x")], false), Stale::All);
        assert_eq!(read(&[alice, account(v1::Kind::User, "")], false), Stale::All);
    }
}
