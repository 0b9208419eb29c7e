//! Moves the adaptive limits, once an interval: up by one, or down by a factor after an event.
//!
//! What the machine's signals tell cuts every adaptive limit. The latency of an RPC cuts its own limit only: who is
//! slow need not be who makes it slow, and each set adapts on its own.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::adaptive::{BackoffFactor, Change};
use super::latency::Verdict;
use super::limits::{Limits, Set};
use super::settings::{Calibration, InvalidSetting};

/// A signal says that the machine is overloaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Event {
    /// Its name in metrics and logs: one of a closed set.
    pub(crate) signal: &'static str,
    /// What was measured.
    pub(crate) value: f64,
    /// From where on it is an event, in the same unit.
    pub(crate) threshold: f64,
}

/// Gathers events and calibrates. One for all limits.
#[derive(Debug)]
pub(crate) struct Calibrator {
    limits: Limits,
    interval: Duration,
    factor: BackoffFactor,
    /// When the interval ends.
    ends: Option<Instant>,
    /// The strongest event of each signal in this interval.
    events: BTreeMap<&'static str, Event>,
}

/// What an interval ended with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Calibrated {
    /// Whether the machine's signals had events in it.
    pub(crate) hot: bool,
    /// The limits that have moved.
    pub(crate) moved: Vec<Moved>,
}

/// A limit that has moved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moved {
    pub(crate) rpc: String,
    pub(crate) authenticated: bool,
    pub(crate) change: Change,
    pub(crate) reason: &'static str,
    /// The figures of the reason: those of the signal, or seconds.
    pub(crate) figures: Option<(f64, f64)>,
}

/// The signal that an RPC's own latency is.
pub(crate) const LATENCY: &str = "latency";

impl Calibrator {
    /// Fails where a setting is impossible.
    pub(crate) fn new(limits: Limits, settings: Calibration) -> Result<Self, InvalidSetting> {
        let Calibration { interval, .. } = settings;
        let factor = settings.check()?;
        Ok(Self { limits, interval, factor, ends: None, events: BTreeMap::new() })
    }

    /// Takes in what signals say, and calibrates where an interval is over; call it more often than that. Each change is
    /// logged.
    pub(crate) fn tick(
        &mut self,
        now: Instant,
        events: impl IntoIterator<Item = Event>,
    ) -> Option<Calibrated> {
        for event in events {
            let strongest = self.events.entry(event.signal).or_insert(event);
            if event.excess() > strongest.excess() {
                *strongest = event;
            }
        }
        let ends = *self.ends.get_or_insert(now + self.interval);
        if now < ends {
            return None;
        }
        self.ends = Some(now + self.interval);
        Some(self.calibrate())
    }

    /// How often limits are calibrated.
    pub(crate) const fn interval(&self) -> Duration {
        self.interval
    }

    fn calibrate(&mut self) -> Calibrated {
        let events = std::mem::take(&mut self.events);
        let strongest = events.values().copied().max_by(|a, b| a.excess().total_cmp(&b.excess()));
        let (mut moved, mut is_slow) = (Vec::new(), false);
        for (rpc, set) in self.limits.adaptive() {
            let (verdict, change) = set.limiter.calibrate(strongest.is_some(), self.factor);
            let slow = verdict.filter(|verdict| verdict.is_event);
            is_slow |= slow.is_some();
            if let Some(change) = change {
                moved.push(Moved::new(rpc, set, change, strongest, slow));
            }
        }
        // However many limits it was slow for, it is one interval.
        self.limits.count_events(events.keys().copied().chain(is_slow.then_some(LATENCY)));
        moved.iter().for_each(Moved::log);
        Calibrated { hot: strongest.is_some(), moved }
    }
}

impl Event {
    /// How far it is above its threshold, as a factor, so that signals in different units compare.
    fn excess(&self) -> f64 {
        self.value / self.threshold
    }
}

impl Moved {
    fn new(rpc: &str, set: &Set, change: Change, event: Option<Event>, slow: Option<Verdict>) -> Self {
        let (reason, figures) = match (event, slow) {
            (Some(event), _) => (event.signal, Some((event.value, event.threshold))),
            (None, Some(Verdict { short_term, long_term, .. })) => {
                (LATENCY, Some((short_term.as_secs_f64(), long_term.as_secs_f64())))
            }
            (None, None) => ("calm", None),
        };
        Self { rpc: rpc.to_owned(), authenticated: set.authenticated, change, reason, figures }
    }

    fn log(&self) {
        let Self { rpc, authenticated, change: Change { old, new }, reason, figures } = self;
        match figures {
            Some((value, usual)) => {
                tracing::info!(%rpc, authenticated, old, new, reason, value, usual, "a concurrency limit is cut");
            }
            None => tracing::info!(%rpc, authenticated, old, new, reason, "a concurrency limit is raised"),
        }
    }
}
