use std::fmt;

use quota_proto::v1;
use quota_proto::v1::report_pressure_request::Event;

use super::signal::Signal;

/// How loaded the machine is, and what it has, at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// In the order of [`Signal::ALL`].
    pub(super) readings: [Reading; Signal::ALL.len()],
    pub(super) capacity: v1::Capacity,
}

/// What a signal says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reading {
    /// A share, 0 to 1, or for kills a count. Absent where it could not be measured, which is not healthy.
    pub value: Option<f64>,
    /// From here on it is an event.
    pub threshold: f64,
    /// How many times in a row it could not be read, though it is there or has been.
    pub failures: u32,
    /// The cgroup or file that the value is of, or why there is none.
    pub detail: String,
}

impl Sample {
    /// What a signal says.
    pub fn reading(&self, signal: Signal) -> &Reading {
        &self.readings[signal as usize]
    }

    /// All signals, also those that are absent.
    pub fn readings(&self) -> impl Iterator<Item = (Signal, &Reading)> {
        Signal::ALL.into_iter().zip(&self.readings)
    }

    /// The signals that ask for less load.
    pub fn events(&self) -> impl Iterator<Item = (Signal, &Reading)> {
        self.readings().filter(|(_, reading)| reading.is_event())
    }

    /// As the service is told of it.
    ///
    /// Of the CPU it is the larger of two: while threads are held back, work waits that a quota leaves no room for,
    /// even where use falls below the quota between its periods.
    pub(super) fn pressure(&self) -> v1::Pressure {
        let value = |signal| self.reading(signal).value;
        let cpu = value(Signal::Cpu).into_iter().chain(value(Signal::CpuThrottled)).reduce(f64::max);
        v1::Pressure { cpu, memory: value(Signal::Memory), network: value(Signal::Network) }
    }

    /// As the service is told of it.
    pub(super) fn events_to_tell(&self) -> Vec<i32> {
        let was_killed = self.reading(Signal::OomKill).value.is_some_and(|kills| kills > 0.0);
        if was_killed { vec![Event::OomKill.into()] } else { Vec::new() }
    }
}

#[cfg(test)]
impl Sample {
    /// One in which only these signals are there: each with its value, against its usual threshold.
    pub(crate) fn with(values: &[(Signal, f64)]) -> Self {
        let settings = super::Settings::default();
        let reading = |signal: Signal| Reading {
            value: values.iter().find(|(of, _)| *of == signal).map(|(_, value)| *value),
            threshold: signal.threshold(&settings),
            failures: 0,
            detail: "as the test says".to_owned(),
        };
        Self { readings: Signal::ALL.map(reading), capacity: v1::Capacity::default() }
    }

    /// The same, where a signal that was there can be read no more.
    pub(crate) fn losing(mut self, signal: Signal, failures: u32) -> Self {
        let reading = &mut self.readings[signal as usize];
        (reading.value, reading.failures) = (None, failures);
        self
    }
}

impl Reading {
    /// How often in a row a signal may be unreadable before that is an event itself.
    pub const MAX_FAILURES: u32 = 5;

    /// Whether it asks for less load: it is at or above its threshold, or can be read no more.
    pub fn is_event(&self) -> bool {
        self.failures >= Self::MAX_FAILURES || self.value.is_some_and(|value| value >= self.threshold)
    }
}

/// For log lines.
impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => write!(f, "{value:.2} of {:.2} ({})", self.threshold, self.detail),
            None if self.failures > 0 => write!(f, "unreadable {} times ({})", self.failures, self.detail),
            None => write!(f, "absent ({})", self.detail),
        }
    }
}
