//! An operator's word on one account, and what it makes of the limits of the account's kind.

use crate::{Bound, Limit, Mode, PerResource, Resource};

/// How much more than others an account may use, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u32);

/// A number that is no weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be more than 0 and at most 1000, of whole thousandths")]
pub struct InvalidWeight;

impl Weight {
    const ONE: u32 = 1000;
    const MOST: u32 = 1000 * Self::ONE;

    /// From thousandths.
    pub const fn from_thousandths(thousandths: u32) -> Result<Self, InvalidWeight> {
        if thousandths > 0 && thousandths <= Self::MOST { Ok(Self(thousandths)) } else { Err(InvalidWeight) }
    }

    /// In thousandths.
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// So many times a limit, rounded up: what is not 0 does not become 0.
    pub fn times(self, limit: Limit) -> Limit {
        scaled(limit, self.0.into(), Self::ONE.into())
    }
}

impl TryFrom<f64> for Weight {
    type Error = InvalidWeight;

    fn try_from(value: f64) -> Result<Self, InvalidWeight> {
        let thousandths = value * f64::from(Self::ONE);
        // Decimals have no exact doubles: 0.007 * 1000 is a little more than 7.
        if !value.is_finite() || (thousandths - thousandths.round()).abs() > 1e-6 {
            return Err(InvalidWeight);
        }
        // The cast saturates, and the bounds refuse what is negative or too large.
        Self::from_thousandths(thousandths.round() as u32)
    }
}

impl From<Weight> for f64 {
    fn from(weight: Weight) -> Self {
        Self::from(weight.0) / Self::from(Weight::ONE)
    }
}

/// What an operator says of one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// It may use so many times what others may.
    Weight(Weight),
    /// It has these limits; of the other resources, those of its kind.
    Limits(PerResource<Option<Limit>>),
    /// It is charged, and compared with nothing.
    Exempt,
    /// It is refused at once.
    Blocked,
}

impl Override {
    /// The account's own limit of a resource, where this is that of its kind. Being blocked is enforced, whatever is
    /// done about the kind's limits.
    pub fn ceiling(&self, resource: Resource, of_kind: Bound) -> Bound {
        match self {
            Self::Weight(weight) => Bound { limit: weight.times(of_kind.limit), ..of_kind },
            Self::Limits(limits) => Bound { limit: limits[resource].unwrap_or(of_kind.limit), ..of_kind },
            Self::Exempt => Bound { mode: Mode::Off, ..of_kind },
            Self::Blocked => Bound { limit: Limit::At(0), mode: Mode::Enforce },
        }
    }

    /// The account's limit of a resource on a node, where its kind has these there and everywhere: in the proportion in
    /// which it may use more or less than others everywhere. Else a node's limit, which is the kind's at most, would
    /// undo what the operator said.
    pub fn on_node(&self, resource: Resource, of_node: Limit, of_kind: Limit) -> Limit {
        match self {
            Self::Weight(weight) => weight.times(of_node),
            Self::Limits(limits) => match (limits[resource], of_kind) {
                (None, _) => of_node,
                (Some(Limit::At(own)), Limit::At(of_kind @ 1..)) => scaled(of_node, own, of_kind),
                (Some(own), _) => own,
            },
            Self::Exempt | Self::Blocked => of_node,
        }
    }
}

/// A limit times a fraction, rounded up.
fn scaled(limit: Limit, numerator: u64, denominator: u64) -> Limit {
    match limit {
        Limit::Unlimited => Limit::Unlimited,
        Limit::At(amount) => {
            let scaled =
                (u128::from(amount) * u128::from(numerator)).div_ceil(u128::from(denominator.max(1)));
            Limit::At(u64::try_from(scaled).unwrap_or(u64::MAX))
        }
    }
}

#[cfg(test)]
mod tests;
