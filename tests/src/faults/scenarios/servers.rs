//! One of two servers, and the way from both to Redis.

use super::super::{Outcome, Run, Scale};
use crate::proxy::{Fault, Proxy};
use crate::redis::RedisServer;

pub(super) async fn server_killed(scale: &Scale) -> Outcome {
    let redis = RedisServer::start().await;
    let mut run = Run::start(&redis.url(), scale).await;
    run.first_server().kill();
    run.is_over().await;
    run.end().await
}

pub(super) async fn server_frozen(scale: &Scale) -> Outcome {
    let redis = RedisServer::start().await;
    let mut run = Run::start(&redis.url(), scale).await;
    run.first_server().pause();
    run.goes_on().await;
    run.first_server().resume();
    run.is_over().await;
    run.end().await
}

/// The way to Redis is broken for a while.
pub(super) async fn way_broken(scale: &Scale, fault: Fault) -> Outcome {
    let redis = RedisServer::start().await;
    let proxy = Proxy::to(redis.port()).await;
    let mut run = Run::start(&proxy.redis_url(), scale).await;
    proxy.set(fault);
    run.goes_on().await;
    proxy.set(Fault::None);
    run.is_over().await;
    run.end().await
}

/// Each connection to Redis is closed, again and again.
pub(super) async fn connections_cut(scale: &Scale) -> Outcome {
    let redis = RedisServer::start().await;
    let proxy = Proxy::to(redis.port()).await;
    let mut run = Run::start(&proxy.redis_url(), scale).await;
    for _ in 0..scale.checks {
        proxy.cut();
        run.goes_on_for(1).await;
    }
    run.is_over().await;
    run.end().await
}
