use std::collections::HashMap;

use quota_core::Cost;

/// The most RPCs whose price is remembered: many times what a fileserver has.
const MAX_RPCS: usize = 1024;

/// What the service last reserved for each RPC.
#[derive(Debug, Default)]
pub(super) struct Prices(HashMap<Box<str>, Cost>);

impl Prices {
    pub(super) fn learn(&mut self, rpc: &str, price: Cost) {
        if let Some(known) = self.0.get_mut(rpc) {
            *known = price;
        } else if self.0.len() < MAX_RPCS {
            self.0.insert(rpc.into(), price);
        }
    }

    /// Nothing where it is not known.
    pub(super) fn of(&self, rpc: &str) -> Cost {
        self.0.get(rpc).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_price_counts_and_prices_are_bounded() {
        let cpu = |micros| Cost::ZERO.with_cpu_micros(micros).unwrap();
        let mut prices = Prices::default();
        for rpc in 0..=MAX_RPCS {
            prices.learn(&rpc.to_string(), cpu(7));
        }
        prices.learn("1", cpu(3));
        assert_eq!(
            (prices.of("0"), prices.of("1"), prices.of(&MAX_RPCS.to_string())),
            (cpu(7), cpu(3), Cost::ZERO)
        );
        assert_eq!(prices.0.len(), MAX_RPCS);
    }
}
