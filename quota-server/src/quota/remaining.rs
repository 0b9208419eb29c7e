use quota_core::{Cost, Kind, Limit, Mode, Resource, Scope};

use super::Standing;

/// How much of a limit is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// Of which kind of account.
    pub kind: Kind,
    /// Of what.
    pub resource: Resource,
    /// Which of the account's limits.
    pub scope: Scope,
    /// The limit, in the resource's internal unit.
    pub limit: u64,
    /// What is left of it.
    pub left: u64,
}

impl Remaining {
    /// Of the enforced limits, the one of which the smallest share is left when this price is taken off. None, where
    /// nothing is enforced.
    pub fn least(standings: &[Standing], reserved: Cost) -> Option<Self> {
        let all = standings.iter().flat_map(|standing| {
            standing.resources.iter().flat_map(move |(resource, (everywhere, comparison))| {
                let limits = comparison.limits(*everywhere);
                let enforced = limits.filter(|_| comparison.ceiling.mode == Mode::Enforce);
                enforced.filter_map(move |(scope, limit, used)| {
                    let Limit::At(limit) = limit else { return None };
                    let left = limit.saturating_sub(used).saturating_sub(reserved.amounts()[resource]);
                    Some(Self { kind: standing.account.kind(), resource, scope, limit, left })
                })
            })
        });
        all.reduce(|least, other| if other.share_is_below(&least) { other } else { least })
    }

    fn share_is_below(&self, other: &Self) -> bool {
        u128::from(self.left) * u128::from(other.limit) < u128::from(other.left) * u128::from(self.limit)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use quota_core::{Account, Bound, Comparison, Here, HereUsed, Ipv6Prefix, PerResource};

    use super::*;

    const OFF: (u64, Limit, Mode) = (90, Limit::At(100), Mode::Off);

    pub(in crate::quota) fn standing(kind: Kind, name: &str, resources: [(u64, Limit, Mode); 3]) -> Standing {
        let [cpu, memory, network] = resources
            .map(|(used, limit, mode)| (used, Comparison { ceiling: Bound { limit, mode }, here: None }));
        Standing {
            account: Account::new(kind, name, Ipv6Prefix::default()).unwrap(),
            resources: PerResource::new(cpu, memory, network),
            own: PerResource::default(),
            overriding: None,
            over: false,
            retry_after: Duration::ZERO,
        }
    }

    fn cpu(micros: u64) -> Cost {
        Cost::ZERO.with_cpu_micros(micros).unwrap()
    }

    #[test]
    fn the_smallest_share_is_told_after_the_price_is_taken_off() {
        let enforced = |used, limit| (used, Limit::At(limit), Mode::Enforce);
        let standings = [
            standing(Kind::Repo, "r", [enforced(50, 100), OFF, OFF]),
            standing(Kind::User, "u", [enforced(60, 1000), OFF, enforced(700, 1000)]),
        ];
        let least = |price| Remaining::least(&standings, price).unwrap();
        let network = Remaining {
            kind: Kind::User,
            resource: Resource::Network,
            scope: Scope::Cluster,
            limit: 1000,
            left: 300,
        };
        assert_eq!(least(Cost::ZERO), network);
        let repo = Remaining { kind: Kind::Repo, resource: Resource::Cpu, limit: 100, left: 25, ..network };
        assert_eq!(least(cpu(25)), repo);
        assert_eq!(least(cpu(51)), Remaining { left: 0, ..repo });
    }

    #[test]
    fn a_limit_of_the_node_counts_what_was_used_there() {
        let mut standing = standing(Kind::User, "u", [(60, Limit::At(100), Mode::Enforce), OFF, OFF]);
        standing.resources[Resource::Cpu].1.here =
            Some(Here { limit: Limit::At(50), used: HereUsed::Told(45) });
        let least = Remaining::least(&[standing.clone()], cpu(1)).unwrap();
        assert_eq!((least.scope, least.limit, least.left), (Scope::Node, 50, 4));
        standing.resources[Resource::Cpu].1.here =
            Some(Here { limit: Limit::At(50), used: HereUsed::Told(5) });
        let least = Remaining::least(&[standing], cpu(1)).unwrap();
        assert_eq!((least.scope, least.limit, least.left), (Scope::Cluster, 100, 39));
    }

    #[test]
    fn what_is_not_enforced_or_not_limited_is_not_told() {
        let unlimited = (7, Limit::Unlimited, Mode::Enforce);
        let shadowed = (90, Limit::At(100), Mode::Shadow);
        assert_eq!(Remaining::least(&[standing(Kind::User, "u", [unlimited, shadowed, OFF])], cpu(1)), None);
        assert_eq!(Remaining::least(&[], cpu(1)), None);
    }
}
