//! A client on a machine that is as loaded as a test says: the guard runs, under paused time, and what else runs in the
//! background does not. Nothing is asked of a service.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::time::sleep;
use tracing::subscriber::DefaultGuard;

use super::{FETCH, fetch};
use crate::concurrency::calibrator::Calibrator;
use crate::{
    Calibration, Classification, Client, PressureSample, PressureSignal, QuotaLayer, Settings, guard,
};

pub(super) struct Machine {
    pub(super) client: Client,
    /// Where the background task is, which never runs.
    parked: Option<Runtime>,
}

impl Machine {
    /// With these settings in TOML, but for the endpoints.
    pub(super) fn new(settings: &str) -> Self {
        let settings = Settings::from_toml(settings).unwrap();
        let parked = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = {
            let _entered = parked.enter();
            let builder = Client::builder().endpoints(["http://127.0.0.1:1"]).rpcs([FETCH, "/g.S/Other"]);
            builder.settings(settings.clone()).build().unwrap()
        };
        let calibrator = Calibrator::new(client.shared().limits.clone(), settings.calibration).unwrap();
        tokio::spawn({
            let client = client.clone();
            async move { guard::run(client.shared(), calibrator).await }
        });
        Self { client, parked: Some(parked) }
    }

    /// For each of so many seconds, with a sample at its beginning.
    pub(super) async fn is(&self, sample: &PressureSample, seconds: u64) {
        // The guard listens before anything is said.
        tokio::task::yield_now().await;
        for _ in 0..seconds {
            self.client.shared().pressure.send_replace(Some(Arc::new(sample.clone())));
            // Paused time goes on when all that can run has run.
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// For so many intervals of calibration, and until what they lead to is done.
    pub(super) async fn is_for(&self, sample: &PressureSample, intervals: u64) {
        // The first one begins with the first sample, and each ends with the sample after it.
        self.is(sample, intervals * Calibration::default().interval.as_secs() + 1).await;
    }

    /// A layer that checks nothing and meters all.
    pub(super) fn layer(&self) -> QuotaLayer<fn(&Parts) -> Classification> {
        QuotaLayer::new(self.client.clone(), |_| Classification::MeterOnly(fetch()))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(parked) = self.parked.take() {
            parked.shutdown_background();
        }
    }
}

pub(super) fn calm() -> PressureSample {
    PressureSample::with(&[(PressureSignal::Cpu, 0.10), (PressureSignal::Memory, 0.20)])
}

/// Its CPU is full.
pub(super) fn hot() -> PressureSample {
    PressureSample::with(&[(PressureSignal::Cpu, 0.99), (PressureSignal::Memory, 0.20)])
}

/// The lines that are logged on this thread while this is there.
pub(super) struct Log {
    lines: Lines,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    pub(super) fn start() -> Self {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().without_time().with_writer(move || writer.clone()).finish();
        Self { lines, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// Those with this in them, and forgets all.
    pub(super) fn take(&self, what: &str) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut *self.lines.0.lock())).unwrap();
        text.lines().filter(|line| line.contains(what)).map(str::to_owned).collect()
    }
}
