//! Trees of files in each layout with what they must be read as, and real cgroups.

mod counters;
mod judge;
mod layout;
mod memory;
mod partial;
mod real;
mod repositories;
mod sampler;

use std::time::{Duration, Instant};

use super::fixture::{self, Fixture};
use super::machine::Processors;
use super::measured::{Absent, Measured, Measurements};
use super::reader::Reader;
use super::settings::Settings;
use super::signal::Signal;

/// Reads a fixture at times that the test says.
struct Probe {
    files: Fixture,
    reader: Reader<Fixture>,
    now: Instant,
}

impl Probe {
    fn new(files: &Fixture) -> Self {
        Self::with(files, Settings::default())
    }

    fn with(files: &Fixture, settings: Settings) -> Self {
        let reader = Reader::new(files.clone(), "/proc/self", settings);
        Self { files: files.clone(), reader, now: Instant::now() }
    }

    fn after(&mut self, seconds: f64) -> Measurements {
        self.now += Duration::from_secs_f64(seconds);
        self.reader.read(self.now)
    }
}

/// The value; panics where it is absent.
fn value(measured: &Measured) -> f64 {
    measured.as_ref().unwrap().value
}

fn assert_near(measured: &Measured, expected: f64) {
    assert!((value(measured) - expected).abs() < 1e-6, "{measured:?} is not {expected}");
}

fn assert_missing(measured: &Measured) {
    assert!(matches!(measured, Err(Absent::Missing(_))), "{measured:?}");
}

fn assert_failed(measured: &Measured) {
    assert!(matches!(measured, Err(Absent::Failed(_))), "{measured:?}");
}

#[test]
fn all_processors_of_the_machine_count_though_this_process_may_run_on_few() {
    let files = Fixture::machine().with("/proc/self/status", "Cpus_allowed_list:\t0\n");
    assert_eq!(Processors::in_all(&files), 4);
    files.remove("/proc/stat");
    assert_eq!(Processors::in_all(&files), 1);
}
