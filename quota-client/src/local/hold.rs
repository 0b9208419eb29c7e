use quota_core::{Cost, Release, Tick};

/// A price that is reserved in this fileserver's own windows, until what it stands for is charged.
#[derive(Debug)]
pub(crate) struct Hold {
    tick: Tick,
    left: Cost,
}

impl Hold {
    /// None where nothing was reserved.
    pub(super) fn new(tick: Tick, price: Cost) -> Option<Self> {
        (!price.is_zero()).then_some(Self { tick, left: price })
    }

    /// How much to give back with a charge of `cost`: as much as that, and with the last charge all that is left.
    pub(crate) fn give_back(&mut self, cost: Cost, last: bool) -> Option<Release> {
        let amounts = if last { self.left } else { cost.at_most(self.left) };
        self.left = self.left.minus(amounts);
        (!amounts.is_zero()).then_some(Release { tick: self.tick, amounts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back_once() {
        let cpu = |micros| Cost::ZERO.with_cpu_micros(micros).unwrap();
        let mut hold = Hold::new(7, cpu(100)).unwrap();
        let mut give_back = |cost, last| hold.give_back(cpu(cost), last);
        let release = |micros| Some(Release { tick: 7, amounts: cpu(micros) });
        assert_eq!([give_back(30, false), give_back(0, false)], [release(30), None]);
        assert_eq!([give_back(20, true), give_back(20, true)], [release(70), None]);
        assert!(Hold::new(7, Cost::ZERO).is_none());
    }
}
