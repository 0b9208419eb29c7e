use crate::{BUCKET_CAP, PerResource, Resource};

/// What a piece of work consumed: CPU in microseconds, memory in KiB-seconds, network in bytes.
///
/// Each amount is at most [`Cost::MAX`], so that it is exact in Lua and in JSON, whose numbers are doubles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cost(PerResource<u64>);

/// Why an amount is no cost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCost {
    /// Below zero; `-0.0` too.
    #[error("must not be negative")]
    Negative,
    /// NaN or infinite.
    #[error("must be a finite number")]
    NotFinite,
    /// Above [`Cost::MAX`] of its unit.
    #[error("must be at most {max} {unit}")]
    TooLarge {
        /// The largest amount, in `unit`.
        max: u64,
        /// The unit of `max`.
        unit: &'static str,
    },
}

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(PerResource::new(0, 0, 0));

    /// The most of each resource in one cost: 2^53 of the unit, the largest integer that a double keeps exact.
    pub const MAX: u64 = 1 << 53;

    /// The most that one bucket of a window counts of each resource.
    pub const BUCKET: Self = Self(PerResource::new(BUCKET_CAP, BUCKET_CAP, BUCKET_CAP));

    /// From amounts in the internal units, held down to [`Cost::MAX`]: for sums of valid costs.
    pub fn saturating(amounts: PerResource<u64>) -> Self {
        Self(PerResource::from_fn(|resource| amounts[resource].min(Self::MAX)))
    }

    /// The same cost with this much CPU, in seconds, rounded to the microsecond.
    pub fn with_cpu_seconds(self, seconds: f64) -> Result<Self, InvalidCost> {
        if !seconds.is_finite() {
            return Err(InvalidCost::NotFinite);
        }
        if seconds.is_sign_negative() {
            return Err(InvalidCost::Negative);
        }
        let micros = (seconds * 1e6).round();
        if micros > Self::MAX as f64 {
            return Err(InvalidCost::TooLarge { max: Self::MAX / 1_000_000, unit: "seconds" });
        }
        Ok(self.with(Resource::Cpu, micros as u64))
    }

    /// The same cost with this much CPU.
    pub fn with_cpu_micros(self, micros: u64) -> Result<Self, InvalidCost> {
        Ok(self.with(Resource::Cpu, at_most_max(micros, "microseconds")?))
    }

    /// The same cost with this much memory, rounded up to whole KiB-seconds.
    pub fn with_memory_byte_seconds(self, byte_seconds: u64) -> Result<Self, InvalidCost> {
        Ok(self.with(Resource::Memory, at_most_max(byte_seconds, "byte-seconds")?.div_ceil(1024)))
    }

    /// The same cost with this many bytes over the network.
    pub fn with_network_bytes(self, bytes: u64) -> Result<Self, InvalidCost> {
        Ok(self.with(Resource::Network, at_most_max(bytes, "bytes")?))
    }

    /// The amounts, in the internal units.
    pub const fn amounts(&self) -> &PerResource<u64> {
        &self.0
    }

    /// Whether it is nothing of every resource.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Both together, held down to [`Cost::MAX`].
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self::saturating(PerResource::from_fn(|r| self.0[r].saturating_add(other.0[r])))
    }

    /// What is left of each amount after `other` is taken, never below zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(PerResource::from_fn(|r| self.0[r].saturating_sub(other.0[r])))
    }

    /// The smaller of each amount.
    #[must_use]
    pub fn at_most(self, other: Self) -> Self {
        Self(PerResource::from_fn(|r| self.0[r].min(other.0[r])))
    }

    fn with(mut self, resource: Resource, amount: u64) -> Self {
        self.0[resource] = amount;
        self
    }
}

fn at_most_max(amount: u64, unit: &'static str) -> Result<u64, InvalidCost> {
    if amount > Cost::MAX { Err(InvalidCost::TooLarge { max: Cost::MAX, unit }) } else { Ok(amount) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f09_floats_that_are_no_amount_are_refused() {
        for (seconds, why) in [
            (f64::NAN, InvalidCost::NotFinite),
            (f64::INFINITY, InvalidCost::NotFinite),
            (f64::NEG_INFINITY, InvalidCost::NotFinite),
            (-0.1, InvalidCost::Negative),
            (-0.0, InvalidCost::Negative),
            (1e300, InvalidCost::TooLarge { max: 9_007_199_254, unit: "seconds" }),
        ] {
            assert_eq!(Cost::ZERO.with_cpu_seconds(seconds), Err(why), "{seconds}");
        }
    }

    #[test]
    fn f08_a_thousand_thousandths_are_one_second() {
        let milli = Cost::ZERO.with_cpu_seconds(0.001).unwrap();
        let sum = (0..1000).fold(Cost::ZERO, |sum, _| sum.plus(milli));
        assert_eq!(sum, Cost::ZERO.with_cpu_seconds(1.0).unwrap());
    }

    #[test]
    fn f08_amounts_stop_at_two_to_the_53() {
        assert!(Cost::ZERO.with_network_bytes(1 << 53).is_ok());
        assert!(Cost::ZERO.with_network_bytes((1 << 53) + 1).is_err());
        assert!(Cost::ZERO.with_cpu_micros(u64::MAX).is_err());
        let most = Cost::ZERO.with_network_bytes(1 << 53).unwrap();
        assert_eq!(most.plus(most), most);
    }

    #[test]
    fn memory_is_rounded_up() {
        let amount = |bytes| Cost::ZERO.with_memory_byte_seconds(bytes).unwrap().amounts()[Resource::Memory];
        assert_eq!([amount(0), amount(1), amount(1024), amount(1025)], [0, 1, 1, 2]);
    }
}
