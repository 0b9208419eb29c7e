//! The background task that protects the machine: each second it hears how loaded that is, moves the limits of
//! concurrency when an interval is over, and ends requests where that was not enough.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::concurrency::calibrator::{Calibrator, Event};
use crate::pressure::{Reading, Sample, Signal};
use crate::shared::Shared;
use crate::shed::{self, Overload, SheddingMode, Trigger};
use crate::work::Work;
use crate::{Denial, backoff, metrics};

/// Goes on until it is dropped.
pub(crate) async fn run(shared: &Shared, mut calibrator: Calibrator) {
    let mut samples = shared.pressure.subscribe();
    let mut trigger = Trigger::default();
    while samples.changed().await.is_ok() {
        let Some(sample) = samples.borrow_and_update().clone() else { continue };
        let now = Instant::now();
        show(shared, &sample);
        let calibrated = calibrator.tick(now, sample.events().map(event));
        // A limit was lowered just now if at all. What has ended by the next second must not count for an interval.
        trigger.sees(shared.limits.is_exceeded(), now);
        let Some(calibrated) = calibrated else { continue };
        let overload = trigger.calibrated(calibrated.hot, now, &shared.shedding);
        if let Some(overload) = overload {
            end_some(shared, overload, calibrator.interval());
        }
    }
}

fn show(shared: &Shared, sample: &Sample) {
    let lag = shared.pending.lock().lag(Instant::now());
    let cut = shared.local.lock().cut();
    shared.metrics.show(&shared.limits, sample, &shared.stats(), lag);
    metrics::show_classes(shared.classes.figures());
    metrics::show_cuts(cut, shared.yielding());
}

/// Of a signal that cannot be read it is the failures that are an event.
fn event((signal, reading): (Signal, &Reading)) -> Event {
    match reading.value {
        Some(value) => Event { signal: signal.as_str(), value, threshold: reading.threshold },
        None => Event {
            signal: signal.as_str(),
            value: f64::from(reading.failures),
            threshold: f64::from(Reading::MAX_FAILURES),
        },
    }
}

fn end_some(shared: &Shared, overload: Overload, interval: Duration) {
    // What would not end, or is ending already, must not take the place of what would.
    let in_flight = shared.live().into_iter().filter(|work| work.can_be_ended()).map(|work| {
        let held = work.in_flight();
        (work, held)
    });
    for (work, held) in shed::choose(in_flight, shared.shedding.most) {
        log(&work, &held, overload, shared.shedding.mode);
        if shared.shedding.mode == SheddingMode::Enforce && work.end(denial(shared, interval)) {
            shared.count(|stats| stats.shed += 1);
        }
    }
}

/// The next interval tells whether it was enough.
fn denial(shared: &Shared, interval: Duration) -> Denial {
    Denial::shed(backoff::spread(interval, fastrand::f64()), &shared.settings.node)
}

fn log(work: &Arc<Work>, held: &shed::InFlight, overload: Overload, mode: SheddingMode) {
    let accounts = work.accounts();
    let what = match mode {
        SheddingMode::Enforce => "a request is ended, since the machine is overloaded",
        SheddingMode::Off | SheddingMode::Shadow => {
            "a request would be ended, since the machine is overloaded"
        }
    };
    tracing::warn!(
        rpc = work.rpc(),
        repo = accounts.repo,
        user = accounts.user,
        ip = accounts.ip,
        %overload,
        memory_bytes = held.memory,
        cpu_seconds = held.cpu_micros as f64 / 1e6,
        sent_bytes = held.sent,
        ran = ?work.age(),
        "{what}"
    );
}
