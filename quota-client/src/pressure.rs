//! Tells the service, each second, how loaded this machine is: the limits of this fileserver follow.

mod machine;

use std::time::Duration;

use quota_proto::v1;
use tokio::time::{Instant, MissedTickBehavior};
use tonic::{Code, Response};

use self::machine::Sampler;
use crate::outage::Outage;
use crate::pool::Service;
use crate::shared::Shared;

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
    let call = |mut client: Service, message| async move {
        match client.report_pressure(message).await {
            // A service of before this was there; that is no fault of its.
            Err(status) if status.code() == Code::Unimplemented => Ok(Response::new(None)),
            answer => answer.map(|response| Response::new(Some(response.into_inner()))),
        }
    };
    match shared.pool.ask(message, Instant::now() + INTERVAL, call).await {
        Ok(_) => {
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
