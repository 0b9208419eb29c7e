use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::*;
use crate::pressure::files::Files;
use crate::pressure::sampler::Sampler;

/// Files of which one takes as long to be read as the test wants.
#[derive(Clone)]
struct Stuck(Fixture, Arc<(Mutex<bool>, Condvar)>);

impl Stuck {
    fn set(&self, is_stuck: bool) {
        *self.1.0.lock() = is_stuck;
        self.1.1.notify_all();
    }
}

impl Files for Stuck {
    fn read(&self, file: &Path) -> io::Result<String> {
        if file == Path::new("/proc/meminfo") {
            let mut is_stuck = self.1.0.lock();
            self.1.1.wait_while(&mut is_stuck, |is_stuck| *is_stuck);
        }
        self.0.read(file)
    }

    fn directories(&self, parent: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.directories(parent)
    }
}

#[tokio::test]
async fn f18_while_reading_does_not_end_pressure_is_not_known_and_then_it_is_high() {
    let files = Stuck(Fixture::v2("/"), Arc::default());
    let mut sampler = Sampler::new(files.clone(), "/proc/self", Settings::default());
    let long = Duration::from_secs(20);
    assert_eq!(sampler.sample(long).await.reading(Signal::Memory).value, Some(0.25));
    files.set(true);
    for failures in 1..=5 {
        let sample = sampler.sample(Duration::from_millis(1)).await;
        let reading = sample.reading(Signal::Memory);
        assert_eq!((reading.value, reading.failures), (None, failures), "{reading}");
        assert_eq!(sample.events().any(|(signal, _)| signal == Signal::Memory), failures == 5);
        assert!(!sample.reading(Signal::Network).is_event(), "it has never been there");
    }
    files.set(false);
    let sample = sampler.sample(long).await;
    assert_eq!(sample.reading(Signal::Memory).value, Some(0.25));
    assert_eq!(sample.events().count(), 0);
}

/// Files that make whoever reads them panic.
#[derive(Clone)]
struct Broken;

impl Files for Broken {
    fn read(&self, _: &Path) -> io::Result<String> {
        panic!("as the test wants it")
    }

    fn directories(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn f18_a_reader_that_ends_early_is_replaced() {
    let mut sampler = Sampler::new(Broken, "/proc/self", Settings::default());
    for _ in 0..2 {
        let sample = sampler.sample(Duration::from_secs(20)).await;
        assert_eq!(sample.reading(Signal::Cpu).to_string(), "absent (reading has ended early)");
    }
}
