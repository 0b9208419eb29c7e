//! Tells the service, each second, how loaded this machine is: the limits of this fileserver follow.

mod machine;

use std::error::Error as _;
use std::time::Duration;

use quota_proto::v1;
use tokio::time::{Instant, MissedTickBehavior};
use tonic::Response;

use self::machine::Sampler;
use crate::outage::Outage;
use crate::pool::{NoAnswer, Service};
use crate::shared::Shared;
use crate::status::has_no_store;

const INTERVAL: Duration = Duration::from_secs(1);

/// Goes on until it is dropped. Nothing is told of a fileserver without a name.
pub(crate) async fn run(shared: &Shared) {
    if shared.settings.node.is_empty() {
        return std::future::pending().await;
    }
    let mut sampler = Sampler::default();
    let outage = Outage::default();
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        tell(shared, &mut sampler, &outage).await;
    }
}

/// What is late says nothing any more: it is not sent again.
async fn tell(shared: &Shared, sampler: &mut Sampler, outage: &Outage) {
    let sample = sampler.sample();
    let (active, heaviest) = shared.usage.lock().heaviest(Instant::now());
    let message = v1::ReportPressureRequest {
        node: shared.settings.node.clone(),
        pressure: Some(sample.pressure),
        capacity: Some(sample.capacity),
        active: Some(active),
        heaviest,
        ..v1::ReportPressureRequest::default()
    };
    // What is answered decides nothing of who is asked about requests, unless the store is lost, which is lost for those
    // too. A service of before this was there answers that it does not know it.
    let call = |mut client: Service, message| async move {
        match client.report_pressure(message).await {
            Ok(_) => Ok(Response::new(Ok(()))),
            Err(status) if status.source().is_some() || has_no_store(&status) => Err(status),
            Err(status) => Ok(Response::new(Err(status))),
        }
    };
    let answer = shared.pool.ask(message, Instant::now() + INTERVAL, call).await;
    match answer.and_then(|answer| answer.map_err(NoAnswer::Status)) {
        Ok(()) => {
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
