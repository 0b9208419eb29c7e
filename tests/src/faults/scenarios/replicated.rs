//! A Redis and its replica.

use super::super::{Outcome, Run, Scale};
use crate::proxy::Proxy;
use crate::redis::{RedisSentinel, RedisServer};
use crate::wait::{PATIENCE, until};

/// A primary, its replica, and the way to the primary.
async fn replicated(args: &[&str]) -> (RedisServer, RedisServer, Proxy) {
    // By default a primary waits for seconds whether more replicas come.
    let args = [&["--repl-diskless-sync-delay", "0"], args].concat();
    let (primary, replica) = tokio::join!(RedisServer::start_with(&args), RedisServer::start());
    replica.follow(&primary).await;
    let proxy = Proxy::to(primary.port()).await;
    (primary, replica, proxy)
}

/// The primary is one that these arguments make.
pub(super) async fn redis_demoted(scale: &Scale, args: &[&str]) -> Outcome {
    let (primary, replica, proxy) = replicated(args).await;
    let mut run = Run::start(&proxy.redis_url(), &scale.api_only()).await;
    run.may_lose();
    // Of nobody that answers: while it copied data, it would say so in place of READONLY.
    primary.command("REPLICAOF", &["127.0.0.1", "1"]).await;
    run.goes_on().await;
    replica.command("REPLICAOF", &["NO", "ONE"]).await;
    proxy.lead_to(replica.port());
    run.is_over().await;
    run.end().await
}

pub(super) async fn redis_handed_over(scale: &Scale) -> Outcome {
    let (primary, replica, proxy) = replicated(&[]).await;
    let mut run = Run::start(&proxy.redis_url(), scale).await;
    primary.command("FAILOVER", &[]).await;
    until(PATIENCE, "the replica takes over", async || {
        let info = replica.info("replication").await;
        info.contains("role:master").then_some(())
    })
    .await;
    proxy.lead_to(replica.port());
    run.is_over().await;
    run.end().await
}

pub(super) async fn sentinel_primary_killed(scale: &Scale) -> Outcome {
    let mut servers = RedisSentinel::quick_to_fail_over().await;
    let mut run = Run::start(&servers.url(), &scale.api_only()).await;
    run.may_lose();
    servers.kill_primary().await;
    run.is_over().await;
    run.end().await
}
