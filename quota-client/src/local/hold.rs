use quota_core::{Cost, Release, Tick};
use tokio::time::Instant;

use crate::payers::Payers;
use crate::reserved::Reserved;
use crate::usage::Usage;

/// A price that is reserved in this fileserver's own windows, until what it stands for is charged.
#[derive(Debug)]
pub(crate) struct Hold {
    tick: Tick,
    reserved: Reserved,
}

impl Hold {
    /// Reserves a price on all of these; none where it is nothing.
    pub(crate) fn reserve(usage: &mut Usage, payers: &Payers, price: Cost, now: Instant) -> Option<Self> {
        // More than a bucket holds would not be counted, and could not be given back.
        let price = price.at_most(Cost::BUCKET);
        (!price.is_zero())
            .then(|| Self { tick: usage.reserve(payers, price, now), reserved: Reserved::new(price) })
    }

    /// What to give back with a charge of `cost`, or with the last one.
    pub(crate) fn give_back(&mut self, cost: Cost, last: bool) -> Option<Release> {
        let amounts = self.reserved.give_back(cost, last)?;
        Some(Release { tick: self.tick, amounts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payers::tests::user;

    #[test]
    fn what_is_held_is_given_back_to_where_it_was_reserved() {
        let cpu = |micros| Cost::ZERO.with_cpu_micros(micros).unwrap();
        let now = Instant::now();
        let (mut usage, alice) = (Usage::new(now), user("alice"));
        let mut reserve = |price| Hold::reserve(&mut usage, &alice, price, now);
        let mut hold = reserve(cpu(100)).unwrap();
        let tick = hold.tick;
        assert_eq!(hold.give_back(cpu(30), false), Some(Release { tick, amounts: cpu(30) }));
        assert_eq!(hold.give_back(cpu(30), true), Some(Release { tick, amounts: cpu(70) }));
        assert!(reserve(Cost::ZERO).is_none());
    }
}
