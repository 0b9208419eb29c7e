//! Makes a sample of what was read, and sees where a signal changes.

use quota_core::Cost;
use quota_proto::v1;

use super::measured::{Absent, Measurements};
use super::sample::{Reading, Sample};
use super::settings::Settings;
use super::signal::Signal;

#[derive(Debug)]
pub(super) struct Judge {
    settings: Settings,
    histories: [History; Signal::ALL.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct History {
    /// It could be read once.
    was_read: bool,
    failures: u32,
    state: State,
}

/// How a signal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Below its threshold, or there is nothing to measure.
    #[default]
    Calm,
    /// At its threshold, or above.
    Reached,
    /// It is not there, or cannot be read.
    Absent,
    /// It cannot be read, so often in a row that this is an event.
    Lost,
}

/// A signal that is not as it was.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) signal: Signal,
    pub(super) state: State,
    pub(super) reading: Reading,
}

impl Judge {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, histories: Default::default() }
    }

    pub(super) fn judge(&mut self, measured: &Measurements) -> (Sample, Vec<Change>) {
        let mut changes = Vec::new();
        let readings = Signal::ALL.map(|signal| {
            let history = &mut self.histories[signal as usize];
            let before = history.state;
            let reading = history.judge(measured, signal, signal.threshold(&self.settings));
            if history.state != before {
                changes.push(Change { signal, state: history.state, reading: reading.clone() });
            }
            reading
        });
        // The service refuses a report with a capacity of nothing, or of more than there is anywhere.
        let is_taken = |capacity: &u64| (1..=Cost::MAX).contains(capacity);
        let capacity = v1::Capacity {
            cpu_millicores: measured.cpu_millicores.filter(is_taken),
            memory_bytes: measured.memory_bytes.filter(is_taken),
            network_bytes_per_second: self.settings.network_bytes_per_second,
        };
        (Sample { readings, capacity }, changes)
    }
}

impl History {
    fn judge(&mut self, measured: &Measurements, signal: Signal, threshold: f64) -> Reading {
        let (value, detail) = match measured.of(signal) {
            Ok(figure) => (Some(figure.value), figure.source.display().to_string()),
            Err(Absent::Unset) => (None, "there is nothing to measure".to_owned()),
            Err(Absent::Missing(reason) | Absent::Failed(reason)) => (None, reason.clone()),
        };
        self.was_read |= value.is_some();
        let has_failed = match measured.of(signal) {
            Err(Absent::Failed(_)) => true,
            Err(Absent::Missing(_)) => self.was_read,
            Ok(_) | Err(Absent::Unset) => false,
        };
        self.failures = if has_failed { self.failures.saturating_add(1) } else { 0 };
        let reading = Reading { value, threshold, failures: self.failures, detail };
        self.state = match measured.of(signal) {
            Ok(_) if reading.is_event() => State::Reached,
            Ok(_) | Err(Absent::Unset) => State::Calm,
            Err(_) if reading.is_event() => State::Lost,
            Err(_) => State::Absent,
        };
        reading
    }
}
