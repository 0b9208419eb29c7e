use quota_core::Cost;

/// What was reserved for a piece of work, and is not given back yet.
#[derive(Debug)]
pub(crate) struct Reserved(Cost);

impl Reserved {
    pub(crate) const fn new(price: Cost) -> Self {
        Self(price)
    }

    /// How much to give back with a charge of `cost`: as much as that, and with the last charge all that is left. None
    /// where that is nothing.
    pub(crate) fn give_back(&mut self, cost: Cost, last: bool) -> Option<Cost> {
        let amounts = if last { self.0 } else { cost.at_most(self.0) };
        self.0 = self.0.minus(amounts);
        (!amounts.is_zero()).then_some(amounts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(micros: u64) -> Cost {
        Cost::ZERO.with_cpu_micros(micros).unwrap()
    }

    #[test]
    fn what_is_given_back_follows_the_cost_and_sums_to_what_was_reserved() {
        let mut reserved = Reserved::new(cpu(100));
        let mut give_back = |cost, last| reserved.give_back(cpu(cost), last);
        assert_eq!(give_back(30, false), Some(cpu(30)));
        assert_eq!(give_back(0, false), None);
        assert_eq!(give_back(20, true), Some(cpu(70)), "the rest");
        assert_eq!(give_back(20, true), None);
    }

    #[test]
    fn more_is_never_given_back_than_was_reserved() {
        let price = cpu(100).with_network_bytes(7).unwrap();
        let mut reserved = Reserved::new(price);
        let cost = cpu(80).with_network_bytes(1000).unwrap();
        let given_back = [(); 3].map(|()| reserved.give_back(cost, false));
        assert_eq!(given_back.iter().flatten().fold(Cost::ZERO, |sum, amounts| sum.plus(*amounts)), price);
        assert_eq!(given_back[2], None);
    }
}
