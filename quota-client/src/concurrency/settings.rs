use std::time::Duration;

use serde::Deserialize;

use super::adaptive::{AdaptiveLimit, BackoffFactor};
use crate::settings::RpcTable;
use crate::settings::duration;

/// The longest that a request may be let wait.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// The most requests of one repository or address that may be let wait.
const MAX_QUEUE: usize = 100_000;

/// The longest between two calibrations.
const MAX_INTERVAL: Duration = Duration::from_secs(3600);

/// How many requests of one RPC may run at once.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RpcTable")]
pub struct RpcSettings {
    /// Its path, such as `/gitaly.SSHService/SSHUploadPack`.
    pub rpc: String,
    /// Of what so many may run.
    pub per: Per,
    /// How many, and who waits.
    pub set: SetSettings,
    /// The same for requests without a user, which then count apart; its limit must not be above the other. Unless
    /// given, all count together.
    pub unauthenticated: Option<SetSettings>,
    /// Whether adaptive limits follow how long the RPC takes. Not for pure data transfer, whose time depends on the
    /// client's line.
    pub latency: bool,
    /// Whether requests from this very machine are not limited.
    pub exempt_loopback: bool,
}

/// What a limit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// Each repository.
    Repo,
    /// Each address, IPv6 by /64.
    Ip,
}

/// A limit and its queue.
#[derive(Clone, Debug, PartialEq)]
pub struct SetSettings {
    /// How many may run.
    pub limit: LimitSettings,
    /// How many more may wait. 0: none, and what is over the limit is refused at once.
    pub max_queue: usize,
    /// How long one may wait.
    pub max_wait: Duration,
    /// Who is next.
    pub order: Order,
}

/// How many may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSettings {
    /// Always so many.
    Static(usize),
    /// As many as the machine can do: `max >= initial >= min > 0`.
    Adaptive {
        /// Never fewer.
        min: usize,
        /// At the start.
        initial: usize,
        /// Never more.
        max: usize,
    },
}

/// Which waiter is started next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Who has waited longest.
    #[default]
    Fifo,
    /// Who came last, and is the likeliest to be still there. Under lasting overload the oldest are refused when
    /// their wait is over.
    Lifo,
}

/// How adaptive limits move.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Calibration {
    /// How often: from 1 s to 1 h. 30 s unless set.
    #[serde(with = "duration")]
    pub interval: Duration,
    /// By what a limit is multiplied after an interval with an event: above 0, below 1. 0.75 unless set.
    pub backoff_factor: f64,
}

/// A setting that is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} {reason}")]
pub struct InvalidSetting {
    /// Which, as TOML has it, such as `concurrency["/gitaly.SSHService/SSHUploadPack"].max_wait`.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

impl InvalidSetting {
    pub(crate) fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), reason: reason.into() }
    }
}

impl Default for Calibration {
    fn default() -> Self {
        Self { interval: Duration::from_secs(30), backoff_factor: 0.75 }
    }
}

impl Calibration {
    pub(super) fn check(&self) -> Result<BackoffFactor, InvalidSetting> {
        if self.interval < Duration::from_secs(1) || self.interval > MAX_INTERVAL {
            let reason = format!("is {:?}: it must be at least 1 s, and at most 1 h", self.interval);
            return Err(InvalidSetting::new("calibration.interval", reason));
        }
        BackoffFactor::new(self.backoff_factor).ok_or_else(|| {
            let reason = format!("is {}: it must be above 0 and below 1", self.backoff_factor);
            InvalidSetting::new("calibration.backoff_factor", reason)
        })
    }
}

impl RpcSettings {
    /// How messages name it.
    pub(super) fn key(&self) -> String {
        format!("concurrency[{:?}]", self.rpc)
    }

    /// The limits of both sets, which may be used.
    pub(super) fn check(&self) -> Result<(AdaptiveLimit, Option<AdaptiveLimit>), InvalidSetting> {
        let key = self.key();
        let limit = self.set.check(&key, self.latency)?;
        let Some(set) = &self.unauthenticated else { return Ok((limit, None)) };
        let key = format!("{key}.unauthenticated");
        let stricter = set.check(&key, false)?;
        if stricter.max() > limit.max() {
            let reason =
                format!("is up to {}, above that of other requests, {}", stricter.max(), limit.max());
            let largest = match set.limit {
                LimitSettings::Static(_) => "limit",
                LimitSettings::Adaptive { .. } => "adaptive.max",
            };
            return Err(InvalidSetting::new(format!("{key}.{largest}"), reason));
        }
        Ok((limit, Some(stricter)))
    }
}

impl SetSettings {
    fn check(&self, key: &str, latency: bool) -> Result<AdaptiveLimit, InvalidSetting> {
        let invalid = |name: &str, reason: String| Err(InvalidSetting::new(format!("{key}.{name}"), reason));
        if self.max_queue > MAX_QUEUE {
            return invalid("max_queue", format!("is {}: it must be at most {MAX_QUEUE}", self.max_queue));
        }
        if self.max_wait > MAX_WAIT {
            return invalid("max_wait", format!("is {:?}: it must be at most {MAX_WAIT:?}", self.max_wait));
        }
        if self.max_wait.is_zero() && self.max_queue > 0 {
            return invalid("max_wait", "is 0, so that nobody could wait: use max_queue = 0".to_owned());
        }
        let (min, initial, max) = match self.limit {
            LimitSettings::Static(0) => {
                return invalid("limit", "is 0, which would stop all processing".to_owned());
            }
            LimitSettings::Static(_) if latency => {
                return invalid("limit", "is static: with latency it must be adaptive".to_owned());
            }
            LimitSettings::Static(limit) => (limit, limit, limit),
            LimitSettings::Adaptive { min, initial, max } => (min, initial, max),
        };
        AdaptiveLimit::new(min, initial, max)
            .or_else(|range| invalid(&format!("adaptive.{}", range.key), range.reason))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// 10 at once, 50 waiting, for a minute.
    pub(crate) fn set(limit: LimitSettings) -> SetSettings {
        SetSettings { limit, max_queue: 50, max_wait: Duration::from_secs(60), order: Order::Fifo }
    }

    pub(crate) fn rpc(rpc: &str, limit: LimitSettings) -> RpcSettings {
        RpcSettings {
            rpc: rpc.to_owned(),
            per: Per::Repo,
            set: set(limit),
            unauthenticated: None,
            latency: false,
            exempt_loopback: false,
        }
    }

    fn told(change: impl FnOnce(&mut RpcSettings)) -> String {
        let mut settings = rpc("/g.S/M", LimitSettings::Adaptive { min: 5, initial: 10, max: 20 });
        change(&mut settings);
        settings.check().unwrap_err().to_string()
    }

    #[test]
    fn an_impossible_setting_is_named_with_the_reason() {
        type Case = (fn(&mut RpcSettings), &'static str);
        let cases: [Case; 9] = [
            (|s| s.set.limit = LimitSettings::Static(0), "limit is 0, which would stop all processing"),
            (
                |s| s.set.limit = LimitSettings::Adaptive { min: 0, initial: 1, max: 1 },
                "adaptive.min is 0, which would stop all processing: it must be at least 1",
            ),
            (
                |s| s.set.limit = LimitSettings::Adaptive { min: 3, initial: 9, max: 8 },
                "adaptive.max is 8: it must be at least initial, 9",
            ),
            (|s| s.set.max_queue = 100_001, "max_queue is 100001: it must be at most 100000"),
            (
                |s| s.set.max_wait = Duration::ZERO,
                "max_wait is 0, so that nobody could wait: use max_queue = 0",
            ),
            (
                |s| s.set.max_wait = Duration::MAX,
                "max_wait is 18446744073709551615.999999999s: it must be at most 3600s",
            ),
            (
                |s| (s.set.limit, s.latency) = (LimitSettings::Static(5), true),
                "limit is static: with latency it must be adaptive",
            ),
            (
                |s| s.unauthenticated = Some(set(LimitSettings::Static(21))),
                "unauthenticated.limit is up to 21, above that of other requests, 20",
            ),
            (
                |s| {
                    let limit = LimitSettings::Adaptive { min: 1, initial: 2, max: 21 };
                    s.unauthenticated = Some(set(limit));
                },
                "unauthenticated.adaptive.max is up to 21, above that of other requests, 20",
            ),
        ];
        for (change, expected) in cases {
            assert_eq!(told(change), format!("concurrency[\"/g.S/M\"].{expected}"));
        }
    }

    #[test]
    fn a_calibration_that_would_not_calibrate_is_refused() {
        let check = |seconds, backoff_factor| {
            let interval = Duration::from_secs(seconds);
            Calibration { interval, backoff_factor }.check().map_err(|invalid| invalid.key)
        };
        for seconds in [0, 3601, u64::MAX] {
            assert_eq!(check(seconds, 0.75), Err("calibration.interval".to_owned()), "{seconds}");
        }
        for factor in [0.0, 1.0, f64::NAN] {
            assert_eq!(check(30, factor), Err("calibration.backoff_factor".to_owned()));
        }
        assert!(Calibration::default().check().is_ok());
    }
}
