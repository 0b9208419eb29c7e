use std::collections::HashMap;
use std::mem;

use quota_core::Cost;

/// The most RPCs in one half: many times what a fileserver has. A name is at most 256 bytes.
const MAX_HALF: usize = 512;

/// What the service last reserved for each RPC.
///
/// In two halves, since names can be made up by clients: who is heard of goes into the recent half, and when that is full
/// it is the earlier one, whose RPCs are forgotten. An RPC stays known while fewer than [`MAX_HALF`] others are heard of
/// between two of its requests.
#[derive(Debug, Default)]
pub(super) struct Prices {
    recent: HashMap<Box<str>, Cost>,
    earlier: HashMap<Box<str>, Cost>,
}

impl Prices {
    pub(super) fn learn(&mut self, rpc: &str, price: Cost) {
        if let Some(known) = self.recent.get_mut(rpc) {
            *known = price;
            return;
        }
        if self.recent.len() >= MAX_HALF {
            mem::swap(&mut self.recent, &mut self.earlier);
            self.recent.clear();
        }
        self.recent.insert(rpc.into(), price);
    }

    /// None where it is not known.
    pub(super) fn of(&self, rpc: &str) -> Option<Cost> {
        self.recent.get(rpc).or_else(|| self.earlier.get(rpc)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(micros: u64) -> Cost {
        Cost::ZERO.with_cpu_micros(micros).unwrap()
    }

    #[test]
    fn the_last_price_counts() {
        let mut prices = Prices::default();
        assert_eq!(prices.of("fetch"), None, "nothing is known");
        prices.learn("fetch", cpu(7));
        prices.learn("fetch", cpu(3));
        assert_eq!(prices.of("fetch"), Some(cpu(3)));
    }

    #[test]
    fn names_that_are_made_up_are_bounded_and_push_out_none_that_is_heard_of() {
        let mut prices = Prices::default();
        prices.learn("once", cpu(1));
        for made_up in 0..10 * MAX_HALF {
            if made_up % (MAX_HALF - 1) == 0 {
                prices.learn("fetch", cpu(7));
            }
            prices.learn(&made_up.to_string(), cpu(9));
            assert_eq!(prices.of("fetch"), Some(cpu(7)), "after {made_up}");
            assert!(prices.recent.len() + prices.earlier.len() <= 2 * MAX_HALF);
        }
        assert_eq!(prices.of("once"), None, "it is forgotten");
        prices.learn("once", cpu(2));
        assert_eq!(prices.of("once"), Some(cpu(2)), "and learnt again");
    }
}
