use quota_core::{Cost, Release, Tick};

use crate::reserved::Reserved;

/// A price that is reserved in this fileserver's own windows, until what it stands for is charged.
#[derive(Debug)]
pub(crate) struct Hold {
    tick: Tick,
    reserved: Reserved,
}

impl Hold {
    /// None where nothing was reserved.
    pub(super) fn new(tick: Tick, price: Cost) -> Option<Self> {
        (!price.is_zero()).then_some(Self { tick, reserved: Reserved::new(price) })
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

    #[test]
    fn what_is_held_is_given_back_to_where_it_was_reserved() {
        let cpu = |micros| Cost::ZERO.with_cpu_micros(micros).unwrap();
        let mut hold = Hold::new(7, cpu(100)).unwrap();
        assert_eq!(hold.give_back(cpu(30), false), Some(Release { tick: 7, amounts: cpu(30) }));
        assert_eq!(hold.give_back(cpu(30), true), Some(Release { tick: 7, amounts: cpu(70) }));
        assert!(Hold::new(7, Cost::ZERO).is_none());
    }
}
