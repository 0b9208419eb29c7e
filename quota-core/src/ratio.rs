/// A share from 0 to 1, in millionths: exact in Lua, and the same there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(u32);

/// Why a number is no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRatio {
    /// Below zero; `-0.0` too.
    #[error("must not be negative")]
    Negative,
    /// NaN or infinite.
    #[error("must be a finite number")]
    NotFinite,
}

impl Ratio {
    /// All of it.
    pub const ONE: Self = Self(1_000_000);

    /// From millionths; more than all is all.
    pub const fn from_millionths(millionths: u64) -> Self {
        if millionths < Self::ONE.0 as u64 { Self(millionths as u32) } else { Self::ONE }
    }

    /// In millionths.
    pub const fn millionths(self) -> u64 {
        self.0 as u64
    }

    /// This share of an amount below 2^53, rounded down.
    pub const fn of(self, amount: u64) -> u64 {
        let all = Self::ONE.millionths();
        // In two parts, so that no product is beyond 2^53 in Lua either.
        amount / all * self.millionths() + amount % all * self.millionths() / all
    }
}

impl TryFrom<f64> for Ratio {
    type Error = InvalidRatio;

    /// Rounded to the millionth; more than 1 is 1.
    fn try_from(value: f64) -> Result<Self, InvalidRatio> {
        if !value.is_finite() {
            return Err(InvalidRatio::NotFinite);
        }
        if value.is_sign_negative() {
            return Err(InvalidRatio::Negative);
        }
        Ok(Self::from_millionths((value.min(1.0) * 1e6).round() as u64))
    }
}

impl From<Ratio> for f64 {
    fn from(ratio: Ratio) -> Self {
        Self::from(ratio.0) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f09_numbers_that_are_no_share_are_refused_and_those_above_one_are_one() {
        for (value, why) in [
            (f64::NAN, InvalidRatio::NotFinite),
            (f64::INFINITY, InvalidRatio::NotFinite),
            (-0.1, InvalidRatio::Negative),
            (-0.0, InvalidRatio::Negative),
        ] {
            assert_eq!(Ratio::try_from(value), Err(why), "{value}");
        }
        assert_eq!(Ratio::try_from(0.9).unwrap().millionths(), 900_000);
        assert_eq!(Ratio::try_from(1e300), Ok(Ratio::ONE));
    }

    #[test]
    fn a_share_of_an_amount_is_exact_and_rounded_down() {
        assert_eq!(Ratio::from_millionths(900_000).of(99), 89);
        assert_eq!(Ratio::from_millionths(500_000).of((1 << 53) - 1), (1 << 52) - 1);
        assert_eq!(Ratio::from_millionths(333_333).of(60 * ((1 << 40) - 1)), 21_990_210_565_267);
        assert_eq!(Ratio::ONE.of(1 << 53), 1 << 53);
    }
}
