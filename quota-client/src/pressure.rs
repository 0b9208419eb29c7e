//! Samples, each second, how loaded this machine is, and tells the service: the limits of this fileserver follow, and the
//! answer tells whom it has cut here.
//!
//! `files` is what is read, `cgroup` finds where it is, `value` understands it, and a module for each kind of signal
//! compares it with its limit; `judge` compares that with thresholds and remembers failures.

mod cgroup;
mod counters;
mod cpu;
mod files;
#[cfg(any(fuzzing, test))]
mod fixture;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod judge;
mod machine;
mod measured;
mod memory;
mod network;
mod oom;
mod reader;
mod repositories;
mod sample;
mod sampler;
mod settings;
mod signal;
mod stalled;
mod value;

#[cfg(test)]
mod tests;

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use quota_proto::v1;
use tokio::time::{Instant, MissedTickBehavior};
use tonic::Response;

use self::files::Machine;
use self::machine::Processors;
pub use self::sample::{Reading, Sample};
use self::sampler::Sampler;
pub use self::settings::{InvalidSettings, Settings};
pub use self::signal::Signal;
use crate::outage::Outage;
use crate::pool::{NoAnswer, Service};
use crate::shared::Shared;
use crate::status::has_no_store;

const INTERVAL: Duration = Duration::from_secs(1);

/// How many processors this machine has; at least one.
pub(crate) fn processors() -> u32 {
    Processors::in_all(&Machine)
}

/// Goes on until it is dropped. Each sample is shown to the rest of the client; of a fileserver without a name, nothing
/// is told to the service.
pub(crate) async fn run(shared: &Shared) {
    let mut sampler = Sampler::new(Machine, "/proc/self", shared.settings.pressure.clone());
    let outage = Outage::default();
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let sample = Arc::new(sampler.sample(INTERVAL).await);
        shared.pressure.send_replace(Some(Arc::clone(&sample)));
        if !shared.settings.node.is_empty() {
            tell(shared, &sample, &outage).await;
        }
    }
}

/// What is late says nothing any more: it is not sent again.
async fn tell(shared: &Shared, sample: &Sample, outage: &Outage) {
    let (active, heaviest) = shared.usage.lock().heaviest(Instant::now());
    let message = v1::ReportPressureRequest {
        node: shared.settings.node.clone(),
        pressure: Some(sample.pressure()),
        events: sample.events_to_tell(),
        capacity: Some(sample.capacity),
        active: Some(active),
        heaviest,
    };
    match ask(shared, &message).await {
        Ok(cut) => {
            shared.local.lock().learn_cuts(&cut);
            if let Some(over) = outage.worked(Instant::now()) {
                tracing::info!(lasted = ?over.lasted, "the quota service takes this fileserver's pressure again");
            }
        }
        Err(error) => {
            if outage.failed(Instant::now()) {
                tracing::info!(%error, "the quota service does not take this fileserver's pressure");
            }
        }
    }
}

/// Tells it, by the session if one is open. Returns who has limits of his own on this fileserver.
async fn ask(
    shared: &Shared,
    message: &v1::ReportPressureRequest,
) -> Result<Vec<v1::AccountLimit>, NoAnswer> {
    let deadline = Instant::now() + INTERVAL;
    if let Some(answer) = shared.line.pressure(message, deadline).await {
        return answer.map(|answer| answer.accounts);
    }
    // What is answered decides nothing of who is asked about requests, unless the store is lost, which is lost for
    // those too. A service of before this was there answers that it does not know it.
    let call = |mut client: Service, message| async move {
        match client.report_pressure(message).await {
            Ok(answer) => Ok(Response::new(Ok(answer.into_inner().accounts))),
            Err(status) if status.source().is_some() || has_no_store(&status) => Err(status),
            Err(status) => Ok(Response::new(Err(status))),
        }
    };
    let answer = shared.pool.ask(|| message.clone(), deadline, call).await;
    answer.and_then(|answer| answer.map_err(NoAnswer::Status))
}
