#![allow(clippy::panic, reason = "a broken promise is told by panicking")]

use std::time::{Duration, Instant};

use quota_core::Account;
use quota_proto::{node_report, v1};
use rustix::io::Errno;

use super::fixture::Fixture;
use super::judge::Judge;
use super::reader::Reader;
use super::settings::Settings;
use super::signal::Signal;

/// What begins a file: its path follows, and an error number where reading it fails.
const FILE: &str = "== ";

/// The line after which comes what has changed by the next sample.
const SAMPLE: &str = "--";

/// More are of no use.
const MOST_SAMPLES: usize = 4;

/// The files of a machine, one sample after the other:
///
/// ```text
/// == /proc/self/cgroup
/// 0::/
/// == /proc/pressure/io !95
/// --
/// == /proc/meminfo
/// MemTotal: 64 kB
/// ```
///
/// Whatever they say: what is read of them is a share or a count, and the service takes what it is told.
pub(crate) fn machine(text: &str) {
    let settings = Settings {
        network_bytes_per_second: Some(1_250_000_000),
        repositories: Some("/git/repos".into()),
        ..Settings::default()
    };
    let files = Fixture::default();
    let mut reader = Reader::new(files.clone(), "/proc/self", settings.clone());
    let mut judge = Judge::new(settings);
    let mut now = Instant::now();
    for sample in samples(text) {
        write(&files, &sample);
        now += Duration::from_secs(1);
        let (sample, _) = judge.judge(&reader.read(now));
        for (signal, reading) in sample.readings() {
            let most = if signal == Signal::OomKill { f64::MAX } else { 1.0 };
            assert!(reading.value.is_none_or(|value| (0.0..=most).contains(&value)), "{signal}: {reading:?}");
        }
        let told = v1::ReportPressureRequest {
            pressure: Some(sample.pressure()),
            events: sample.events_to_tell(),
            capacity: Some(sample.capacity),
            ..v1::ReportPressureRequest::default()
        };
        if let Err(invalid) = node_report(told, Account::from_spelling) {
            panic!("the service refuses {invalid}");
        }
    }
}

/// The lines of each.
fn samples(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.split(|line| line.trim_end() == SAMPLE).take(MOST_SAMPLES).map(<[_]>::to_vec).collect()
}

fn write(files: &Fixture, lines: &[&str]) {
    for file in lines.chunk_by(|_, next| !next.starts_with(FILE)) {
        let Some(head) = file.first().and_then(|line| line.strip_prefix(FILE)) else { continue };
        match head.trim_end().split_once(" !") {
            Some((path, error)) => {
                files.fail(path, Errno::from_raw_os_error(error.parse().unwrap_or(5).clamp(1, 133)));
            }
            None => files.write(head.trim_end(), file[1..].concat()),
        }
    }
}
