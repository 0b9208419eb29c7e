use std::collections::HashMap;

use quota_core::{Account, Here, HereUsed, Limit, PerResource, Resource};
use quota_proto::v1;

use super::Comparisons;

/// The most limits that are taken from an answer: the service keeps no more of a fileserver.
const MAX: usize = 1000;

/// The accounts that the service has cut on this fileserver, since they load it, as it last told. An address is one by the
/// grouping that this crate knows: where the service groups them otherwise, it alone knows whom it has cut.
#[derive(Debug, Default)]
pub(super) struct Cuts(HashMap<Account, PerResource<Option<Limit>>>);

impl Cuts {
    /// The service has told all of them. What cannot be read is left out.
    pub(super) fn learn(&mut self, told: &[v1::AccountLimit]) {
        self.0.clear();
        for told in told.iter().take(MAX) {
            if let Ok((account, resource, limit)) = quota_proto::account_limit(told) {
                self.0.entry(account).or_default()[resource] = Some(limit);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether an account is cut for a resource.
    pub(super) fn has(&self, account: &Account, resource: Resource) -> bool {
        self.0.get(account).is_some_and(|limits| limits[resource].is_some())
    }

    /// What an account is compared with: on this fileserver its own limit stands before that of its kind.
    pub(super) fn within(&self, account: &Account, mut comparisons: Comparisons) -> Comparisons {
        let cut = self.0.get(account).into_iter().flat_map(PerResource::iter);
        for (resource, limit) in cut {
            if let Some(limit) = *limit {
                comparisons[resource].here = Some(Here { limit, used: HereUsed::Unknown });
            }
        }
        comparisons
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use quota_core::{Bound, Comparison, Kind, Mode};

    use super::*;

    /// A user's limit of CPU on this fileserver, in microseconds.
    pub(crate) fn cut(user: &str, micros: u64) -> v1::AccountLimit {
        v1::AccountLimit {
            kind: v1::Kind::User.into(),
            id: user.to_owned(),
            resource: v1::Resource::Cpu.into(),
            limit: Some(quota_proto::limit(Resource::Cpu, Limit::At(micros))),
            ..v1::AccountLimit::default()
        }
    }

    fn user(name: &str) -> Account {
        Account::from_spelling(Kind::User, name).unwrap()
    }

    #[test]
    fn each_answer_replaces_the_one_before_and_garbage_is_left_out() {
        let mut cuts = Cuts::default();
        let memory = v1::AccountLimit { resource: v1::Resource::Memory.into(), ..cut("alice", 7) };
        cuts.learn(&[cut("alice", 7), memory, cut("bob", 9), cut("", 1)]);
        let has = |cuts: &Cuts, name| {
            [Resource::Cpu, Resource::Memory].map(|resource| cuts.has(&user(name), resource))
        };
        assert_eq!(
            ["alice", "bob", "carol"].map(|name| has(&cuts, name)),
            [[true, true], [true, false], [false; 2]]
        );
        assert_eq!(cuts.len(), 2);
        cuts.learn(&[cut("carol", 7)]);
        assert_eq!(["alice", "carol"].map(|name| has(&cuts, name)), [[false; 2], [true, false]]);
        cuts.learn(&[]);
        assert_eq!(cuts.len(), 0);
    }

    #[test]
    fn they_are_bounded() {
        let told: Vec<_> = (0..=MAX).map(|number| cut(&number.to_string(), 1)).collect();
        let mut cuts = Cuts::default();
        cuts.learn(&told);
        assert_eq!((cuts.len(), cuts.has(&user("999"), Resource::Cpu)), (MAX, true));
    }

    #[test]
    fn a_cut_stands_before_the_limit_of_the_kind_on_the_node_and_changes_nothing_else() {
        let mut cuts = Cuts::default();
        cuts.learn(&[cut("alice", 7)]);
        let ceiling = Bound { limit: Limit::At(100), mode: Mode::Enforce };
        let here = |limit| Some(Here { limit: Limit::At(limit), used: HereUsed::Unknown });
        let of_kind = PerResource::from_fn(|_| Comparison { ceiling, here: here(50) });
        let alice = cuts.within(&user("alice"), of_kind);
        assert_eq!(alice[Resource::Cpu], Comparison { ceiling, here: here(7) });
        assert_eq!(alice[Resource::Memory], of_kind[Resource::Memory]);
        assert_eq!(cuts.within(&user("bob"), of_kind), of_kind);
    }
}
