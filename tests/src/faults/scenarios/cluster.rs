//! A Redis Cluster.

use super::super::{Outcome, Run, Scale};
use crate::redis::RedisCluster;

/// The key of a caller's account.
fn caller_key(number: usize) -> String {
    format!("q1:{{user:api-{number}}}")
}

pub(super) async fn cluster_node_killed(scale: &Scale) -> Outcome {
    let mut cluster = RedisCluster::quick_to_fail_over().await;
    let mut run = Run::start(&cluster.url(), &scale.api_only()).await;
    run.may_lose();
    cluster.kill(RedisCluster::place_of(&caller_key(0))).await;
    run.is_over().await;
    run.end().await
}

pub(super) async fn cluster_node_handed_over(scale: &Scale) -> Outcome {
    let cluster = RedisCluster::start().await;
    let mut run = Run::start(&cluster.url(), scale).await;
    run.may_split();
    cluster.hand_over(RedisCluster::place_of(&caller_key(0))).await;
    run.is_over().await;
    run.end().await
}

pub(super) async fn cluster_slots_moved(scale: &Scale) -> Outcome {
    let cluster = RedisCluster::start().await;
    let scale = scale.api_only();
    let mut run = Run::start(&cluster.url(), &scale).await;
    for key in (0..scale.api_callers).map(caller_key) {
        // Some checks find the account at the one node, and some at the other.
        cluster.move_slot(&key, async || run.goes_on_for(2).await).await;
    }
    run.is_over().await;
    run.end().await
}
