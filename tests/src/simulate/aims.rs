use quota_core::Ratio;
use serde::Deserialize;

use super::figures::Figures;

/// Pressure at or above this is hot, by every rule that has a soft limit.
pub const SOFT_LIMIT: Ratio = Ratio::from_millionths(900_000);

/// What the figures of the rule `blame` are held to.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Aim {
    /// At most 0.5 % of the light requests are refused.
    LightRefused,
    /// Light requests take at most three times as long as without heavy traffic, 95 % of them.
    LightP95,
    /// At least 0.80 of the capacity is used while there is demand.
    Used,
    /// Pressure is back under the soft limit within 30 s of when it could have been.
    Relief,
    /// Jain's index over heavy accounts that want the same is 0.95 at least.
    Jain,
    /// No limit moves by more than a factor of two in steady state.
    LimitSwing,
    /// Everything is forgotten within three minutes.
    Recovery,
}

impl Aim {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::LightRefused,
        Self::LightP95,
        Self::Used,
        Self::Relief,
        Self::Jain,
        Self::LimitSwing,
        Self::Recovery,
    ];

    /// What the figure is called in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LightRefused => "light refused",
            Self::LightP95 => "light p95 / idle",
            Self::Used => "used",
            Self::Relief => "relief",
            Self::Jain => "Jain",
            Self::LimitSwing => "swing",
            Self::Recovery => "recovery",
        }
    }

    /// Whether the figures are as good.
    pub fn is_met(self, figures: &Figures) -> bool {
        match self {
            Self::LightRefused => figures.light_refused_ratio <= 0.005,
            Self::LightP95 => figures.light_p95_over_idle <= 3.0,
            Self::Used => figures.used_ratio >= 0.8,
            Self::Relief => match (figures.relief_seconds, figures.least_relief_seconds) {
                (Some(seconds), Some(least)) => seconds <= least + 30.0,
                (seconds, _) => seconds.is_some(),
            },
            Self::Jain => figures.jain >= 0.95,
            Self::LimitSwing => figures.limit_swing <= 2.0,
            Self::Recovery => figures.recovery_seconds.is_some_and(|seconds| seconds <= 180.0),
        }
    }
}
