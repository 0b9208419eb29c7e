//! The network between the servers and Redis.

use std::time::Duration;

use super::super::{Outcome, Run, Scale};
use crate::network::Loss;
use crate::redis::RedisServer;

pub(super) async fn link_down(scale: &Scale) -> Outcome {
    let (redis, mut run) = apart(scale).await;
    redis.network().lose(Loss::All);
    run.lasts(Duration::from_secs(10)).await;
    mended(&redis, run, Loss::All).await
}

/// In one direction.
pub(super) async fn link_loses(scale: &Scale, loss: Loss) -> Outcome {
    let (redis, mut run) = apart(scale).await;
    redis.network().lose(loss);
    run.goes_on().await;
    mended(&redis, run, loss).await
}

/// Servers on a Redis that is in another network.
async fn apart(scale: &Scale) -> (RedisServer, Run) {
    let redis = RedisServer::options().own_network().start().await;
    let run = Run::start(&redis.url(), scale).await;
    (redis, run)
}

async fn mended(redis: &RedisServer, mut run: Run, loss: Loss) -> Outcome {
    redis.network().mend(loss);
    run.is_over().await;
    let settled = run.settle().await;
    // What was asked of it on connections of before may come yet, and would change what is compared.
    redis.network().is_quiet().await;
    settled.outcome().await
}
