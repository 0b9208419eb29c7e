//! Shares: what a fileserver may admit for a moment without asking.
//!
//! A share is a reservation made beforehand, on all accounts of a check. It counts as used from then on, so that all shares
//! together, and whatever is admitted otherwise, come to no more than a limit: a fileserver that admits by its share lets in
//! nobody whom the service would not have let in. What it costs is that others are refused earlier, by what is granted and
//! not used yet; hence only a part of what is left is granted, and for a moment.

use std::time::Duration;

use quota_core::{Cost, Limit, Mode, PerResource};

use super::{CheckRequest, Quota, Reservation, Standing};
use crate::auth::Caller;
use crate::metrics::Beyond;
use crate::store::Limited;

/// How long requests may be admitted by one. A block, or a limit that is lowered, is in force within this time, and the 500 ms in
/// which every server knows of it.
const LASTS: Duration = Duration::from_millis(500);

/// A share of less than this part of what is wanted would be used up at once.
const LEAST: u64 = 16;

/// What a fileserver may admit without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// What is reserved for it.
    pub reservation: Reservation,
    /// For how long requests may be admitted by it.
    pub lasts: Duration,
}

impl Quota {
    /// Reserves a share, once the price of the check is reserved; nothing where it wants none, or too little is left.
    pub(super) async fn grant(
        &self,
        caller: &Caller,
        request: &CheckRequest,
        limited: &[Limited],
        standings: &[Standing],
        price: Cost,
    ) -> Option<Share> {
        if request.share_wanted.is_zero() {
            return None;
        }
        // As many may hold one of the same account at a time.
        let holders = self.nodes.count().max(1) as u64;
        let amounts = part(standings, price, request.share_wanted, 2 * holders)?;
        self.spend(caller, Beyond::Check, amounts).ok()?;
        // It compares once more: what is left may be another's by now. A store that fails grants nothing, and says so itself.
        let admitted = self.store.admit(limited, amounts).await.ok()?;
        if !admitted.allowed {
            self.unspend(caller, Beyond::Check, amounts);
            return None;
        };
        self.metrics.shares.inc();
        let accounts = request.accounts.as_slice();
        Some(Share { reservation: Reservation::new(accounts, &admitted.ticks, amounts), lasts: LASTS })
    }
}

/// Of what is wanted at most one in `parts` of what is left of every limit that is compared, once the price is taken off;
/// nothing where that is too little of a resource that is wanted.
fn part(standings: &[Standing], price: Cost, wanted: Cost, parts: u64) -> Option<Cost> {
    let wanted = wanted.at_most(Cost::BUCKET);
    let granted = PerResource::from_fn(|resource| {
        let limits = standings.iter().flat_map(|standing| {
            let (used, comparison) = &standing.resources[resource];
            // A limit in shadow is to be told of, which only who is asked can.
            comparison.limits(*used).filter(|_| comparison.ceiling.mode != Mode::Off)
        });
        let left = limits.filter_map(|(_, limit, used)| match limit {
            Limit::At(limit) => Some(limit.saturating_sub(used).saturating_sub(price.amounts()[resource])),
            Limit::Unlimited => None,
        });
        let wanted = wanted.amounts()[resource];
        left.min().map_or(wanted, |left| wanted.min(left / parts))
    });
    let is_enough =
        wanted.amounts().iter().all(|(resource, wanted)| granted[resource] >= wanted.div_ceil(LEAST));
    is_enough.then(|| Cost::saturating(granted))
}

#[cfg(test)]
mod tests {
    use quota_core::{Here, HereUsed, Kind, Resource};

    use super::*;
    use crate::quota::remaining::tests::standing as of_account;

    /// Of CPU alone.
    fn standing(used: u64, limit: Limit, mode: Mode) -> Standing {
        let none = (0, Limit::Unlimited, Mode::Enforce);
        of_account(Kind::User, "alice", [(used, limit, mode), none, none])
    }

    fn cpu(micros: u64) -> Cost {
        Cost::ZERO.with_cpu_micros(micros).unwrap()
    }

    fn granted(standings: &[Standing], price: u64, wanted: u64, parts: u64) -> Option<u64> {
        part(standings, cpu(price), cpu(wanted), parts).map(|granted| granted.amounts()[Resource::Cpu])
    }

    #[test]
    fn no_more_is_granted_than_a_part_of_what_is_left_of_the_nearest_limit() {
        let near = standing(600, Limit::At(1000), Mode::Enforce);
        let far = standing(0, Limit::At(10_000), Mode::Enforce);
        let both = [far, near.clone()];
        assert_eq!(granted(&both, 0, 100, 2), Some(100), "as wanted");
        assert_eq!(granted(&both, 0, 300, 2), Some(200));
        assert_eq!(granted(&both, 100, 300, 2), Some(150), "the price is taken off first");
        assert_eq!(granted(&both, 0, 160, 40), Some(10));
        assert_eq!(granted(&both, 0, 161, 40), None, "less than a sixteenth of it");
        assert_eq!(granted(&both, 400, 300, 2), None);
        let mut here = near;
        here.resources[Resource::Cpu].1.here = Some(Here { limit: Limit::At(50), used: HereUsed::Told(30) });
        assert_eq!(granted(&[here], 0, 100, 2), Some(10), "the limit of the node counts too");
    }

    #[test]
    fn only_what_is_compared_bounds_it() {
        for (limit, mode, expected) in [
            (Limit::At(10), Mode::Off, Some(300)),
            (Limit::Unlimited, Mode::Enforce, Some(300)),
            (Limit::At(100), Mode::Shadow, Some(50)),
        ] {
            assert_eq!(granted(&[standing(0, limit, mode)], 0, 300, 2), expected, "{limit:?} {mode:?}");
        }
        let huge = granted(&[], 0, u64::MAX >> 11, 2);
        assert_eq!(
            huge,
            Some(Cost::BUCKET.amounts()[Resource::Cpu]),
            "more than a bucket cannot be given back"
        );
    }
}
