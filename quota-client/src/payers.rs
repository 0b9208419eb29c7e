use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};
use std::sync::{LazyLock, OnceLock};

use quota_core::{Account, InvalidAccount, Ipv6Prefix, Kind};
use quota_proto::v1;

/// Who pays for a piece of work: as it names them, and each in its one spelling, which is found out once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payers {
    named: v1::Accounts,
    /// Of those that are named, in the order of [`Kind::ALL`].
    accounts: Vec<Account>,
    digest: Digest,
}

/// Of the names, by a key of this process, so that nobody can choose names whose digests are equal; made once, since a request
/// is looked up in several maps.
#[derive(Clone, Debug, Default)]
struct Digest(OnceLock<u64>);

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl PartialEq for Digest {
    /// It follows from the names.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Digest {}

impl Payers {
    /// Adds one, or takes it in place of that of its kind. A name that the service would not take is given back with its
    /// fault, and nobody of its kind pays: one that was sent would spoil the whole request, and one that freed the request
    /// would be a way around every limit.
    pub(crate) fn set(&mut self, kind: Kind, id: String) -> Result<(), (String, InvalidAccount)> {
        let named = match kind {
            Kind::Repo => &mut self.named.repo,
            Kind::User => &mut self.named.user,
            Kind::Ip => &mut self.named.ip,
        };
        self.digest = Digest::default();
        if named.take().is_some() {
            self.accounts.retain(|account| account.kind() != kind);
        }
        match Account::new(kind, &id, Ipv6Prefix::default()) {
            Ok(account) => {
                let at = self.accounts.partition_point(|account| account.kind() < kind);
                self.accounts.insert(at, account);
                *named = Some(id);
                Ok(())
            }
            Err(fault) => Err((id, fault)),
        }
    }

    /// Whether nobody pays.
    pub(crate) const fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub(crate) fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// The one of this kind.
    pub(crate) fn account(&self, kind: Kind) -> Option<&Account> {
        self.accounts.iter().find(|account| account.kind() == kind)
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
        state.write_u64(*self.digest.0.get_or_init(|| KEY.hash_one(&self.named)));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// These who pay.
    pub(crate) fn payers<'a>(named: impl IntoIterator<Item = (Kind, &'a str)>) -> Payers {
        let mut payers = Payers::default();
        for (kind, name) in named {
            payers.set(kind, name.to_owned()).unwrap();
        }
        payers
    }

    /// One user who pays.
    pub(crate) fn user(name: &str) -> Payers {
        payers([(Kind::User, name)])
    }

    fn shown(payers: &Payers) -> Vec<String> {
        payers.iter().map(|(account, name)| format!("{account}, {name}")).collect()
    }

    #[test]
    fn each_account_goes_with_its_name_in_whatever_order_they_are_set() {
        let (ip, repo) = ((Kind::Ip, "::ffff:203.0.113.7"), (Kind::Repo, "group//project.git"));
        let expected = ["repo group/project, group//project.git", "ip 203.0.113.7, ::ffff:203.0.113.7"];
        assert_eq!(shown(&payers([ip, repo])), expected);
        assert_eq!(payers([ip, repo]), payers([repo, ip]));
        assert!(Payers::default().is_empty());
    }

    #[test]
    fn the_last_name_of_a_kind_counts_and_what_is_no_name_is_given_back() {
        let mut payers = payers([(Kind::User, "alice"), (Kind::User, "bob"), (Kind::Repo, "a")]);
        assert_eq!(shown(&payers), ["repo a, a", "user bob, bob"]);
        let (name, _) = payers.set(Kind::User, "a\nb".to_owned()).unwrap_err();
        assert_eq!((&*name, shown(&payers)), ("a\nb", vec!["repo a, a".to_owned()]));
    }
}
