//! Which requests are ended on purpose when refusing new ones was not enough: those that harm most, and never those that
//! are nearly done.

use std::cmp::Reverse;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use crate::concurrency::InvalidSetting;
use crate::settings::duration;

/// When requests in flight are ended, and how many. Those that have sent more than nine tenths of what they announced are
/// spared: gRPC streams only where their handlers call [`Meter::announce`](crate::Meter::announce).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SheddingSettings {
    /// Whether requests are ended, or it is only said in the log which would have been.
    pub mode: SheddingMode,
    /// After so many calibrations in a row with events: the limits were cut so often, and it did not help. Default: 3,
    /// which is 90 s with the default interval: less, and work that is already ending would be ended for nothing.
    pub after: u32,
    /// After more requests than a limit allows were in flight for so long: those that were admitted before the limit was
    /// lowered do not end by themselves. Default: 5 minutes, longer than most clones take.
    #[serde(with = "duration")]
    pub above_limit_for: Duration,
    /// The most that are ended in an interval of calibrations. Default: 2: what one of them held is felt before the next
    /// is chosen.
    pub most: usize,
}

/// Whether requests are ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SheddingMode {
    /// None is.
    #[default]
    Off,
    /// None is, and the log says which would have been.
    Shadow,
    /// They are.
    Enforce,
}

impl SheddingSettings {
    /// Fails where nothing would ever be ended, or it would be at once.
    pub(crate) fn check(&self) -> Result<(), InvalidSetting> {
        for (name, is_zero) in [
            ("after", self.after == 0),
            ("above_limit_for", self.above_limit_for.is_zero()),
            ("most", self.most == 0),
        ] {
            if is_zero {
                return Err(InvalidSetting::new(format!("shedding.{name}"), "must be more than 0"));
            }
        }
        Ok(())
    }
}

impl Default for SheddingSettings {
    fn default() -> Self {
        Self { mode: SheddingMode::Off, after: 3, above_limit_for: Duration::from_secs(300), most: 2 }
    }
}

/// What a request in flight holds, and has consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// Anonymous memory at the last sample, in bytes.
    pub(crate) memory: u64,
    /// CPU time since its start, in microseconds.
    pub(crate) cpu_micros: u64,
    /// Bytes sent, and how many it said that there would be.
    pub(crate) sent: u64,
    pub(crate) announced: Option<u64>,
}

impl InFlight {
    /// More than nine tenths of what was announced are sent: ending it would waste all and free little.
    fn is_nearly_done(&self) -> bool {
        self.announced.is_some_and(|all| u128::from(self.sent) * 10 > u128::from(all) * 9)
    }

    /// Memory first, in MiB, since nothing else gives it back; then CPU.
    const fn harm(&self) -> (u64, u64) {
        (self.memory >> 20, self.cpu_micros)
    }
}

/// Those that are to be ended, the most harmful first.
pub(crate) fn choose<T>(
    in_flight: impl IntoIterator<Item = (T, InFlight)>,
    most: usize,
) -> Vec<(T, InFlight)> {
    let mut chosen: Vec<_> = in_flight.into_iter().filter(|(_, request)| !request.is_nearly_done()).collect();
    chosen.sort_by_key(|(_, request)| Reverse(request.harm()));
    chosen.truncate(most);
    chosen
}

/// Knows when it is time, at the end of an interval.
#[derive(Debug, Default)]
pub(crate) struct Trigger {
    hot_in_a_row: u32,
    above_since: Option<Instant>,
}

/// Why requests are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overload {
    /// So many calibrations in a row had events.
    Hot(u32),
    /// More were in flight than a limit allows, for so long.
    AboveLimit(Duration),
}

impl std::fmt::Display for Overload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hot(times) => write!(f, "{times} calibrations in a row had events"),
            Self::AboveLimit(long) => write!(f, "more in flight than a limit allows for {long:.0?}"),
        }
    }
}

impl Trigger {
    /// Whether more is in flight than the limits allow: each second, so that it lasted in between where it is found to have.
    pub(crate) fn sees(&mut self, above_limit: bool, now: Instant) {
        self.above_since = above_limit.then(|| self.above_since.unwrap_or(now));
    }

    /// The limits were calibrated, with events or without.
    pub(crate) fn calibrated(
        &mut self,
        hot: bool,
        now: Instant,
        settings: &SheddingSettings,
    ) -> Option<Overload> {
        self.hot_in_a_row = if hot { self.hot_in_a_row.saturating_add(1) } else { 0 };
        let above_for = self.above_since.map(|since| now.saturating_duration_since(since));
        if settings.mode == SheddingMode::Off {
            return None;
        }
        if self.hot_in_a_row >= settings.after {
            return Some(Overload::Hot(self.hot_in_a_row));
        }
        above_for.filter(|long| *long >= settings.above_limit_for).map(Overload::AboveLimit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn request(memory: u64, cpu_micros: u64) -> InFlight {
        InFlight { memory, cpu_micros, ..InFlight::default() }
    }

    #[test]
    fn the_most_memory_goes_first_and_then_the_most_cpu() {
        let in_flight = [
            ("light", request(MIB, 5)),
            ("busy", request(MIB + 1000, 900)),
            ("large", request(700 * MIB, 1)),
            ("larger", request(800 * MIB, 0)),
        ];
        let names = |most| choose(in_flight, most).iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(10), ["larger", "large", "busy", "light"]);
        assert_eq!(names(2), ["larger", "large"]);
        assert!(names(0).is_empty());
    }

    #[test]
    fn what_is_nearly_done_is_spared() {
        let sent = |sent, announced| InFlight { sent, announced, ..request(MIB, 0) };
        let spared = [sent(91, Some(100)), sent(u64::MAX, Some(u64::MAX)), sent(1, Some(0))];
        assert!(choose(spared.map(|request| ((), request)), 9).is_empty());
        let ended = [sent(90, Some(100)), sent(u64::MAX, None), sent(0, Some(0))];
        assert_eq!(choose(ended.map(|request| ((), request)), 9).len(), 3);
    }

    #[test]
    fn it_is_time_after_so_many_hot_calibrations_in_a_row() {
        let settings = SheddingSettings { mode: SheddingMode::Shadow, ..SheddingSettings::default() };
        let now = Instant::now();
        let mut trigger = Trigger::default();
        let mut hot = |hot| trigger.calibrated(hot, now, &settings);
        assert_eq!([hot(true), hot(true), hot(false), hot(true), hot(true)], [None; 5]);
        assert_eq!(
            [hot(true), hot(true), hot(false)],
            [Some(Overload::Hot(3)), Some(Overload::Hot(4)), None]
        );
    }

    #[test]
    fn it_is_time_when_a_lowered_limit_is_exceeded_for_long() {
        let settings = SheddingSettings { mode: SheddingMode::Enforce, ..SheddingSettings::default() };
        let start = Instant::now();
        let mut trigger = Trigger::default();
        let mut above = |above, after| {
            let now = start + Duration::from_secs(after);
            trigger.sees(above, now);
            trigger.calibrated(false, now, &settings)
        };
        assert_eq!([above(true, 0), above(true, 299), above(false, 300), above(true, 310)], [None; 4]);
        assert_eq!(above(true, 609), None);
        assert_eq!(above(true, 610), Some(Overload::AboveLimit(Duration::from_secs(300))));
    }

    #[test]
    fn off_is_off() {
        let (mut trigger, start) = (Trigger::default(), Instant::now());
        for _ in 0..100 {
            trigger.sees(true, start);
            let later = start + Duration::from_secs(3600);
            assert_eq!(trigger.calibrated(true, later, &SheddingSettings::default()), None);
        }
    }
}
