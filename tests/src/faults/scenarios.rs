use std::time::Duration;

use super::{Outcome, Run, Scale};
use crate::proxy::{Fault, Proxy};
use crate::redis::{RedisCluster, RedisOptions, RedisSentinel, RedisServer};
use crate::wait::{PATIENCE, until};

/// What breaks under load, and is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Redis is frozen for ten seconds: connections stay open, nothing answers.
    RedisFrozen,
    /// Redis is killed (SIGKILL) and started on the same files, each write synced.
    RedisKilledSynced,
    /// The same, with writes synced once a second.
    RedisKilledEverySecond,
    /// The primary is demoted as it is, and its replica promoted: its connections stay open and answer READONLY.
    RedisDemoted,
    /// The primary hands over to its replica (`FAILOVER`).
    RedisHandedOver,
    /// Redis forgets its scripts, again and again.
    ScriptsFlushed,
    /// One of two servers is killed (SIGKILL) for good.
    ServerKilled,
    /// One of two servers is frozen, and goes on with what it had begun.
    ServerFrozen,
    /// What Redis answers is lost on the way to the servers; what they ask arrives.
    RepliesDropped,
    /// A node of a Cluster is killed (SIGKILL) for good, and its replica takes its place.
    ClusterNodeKilled,
    /// A node of a Cluster hands over to its replica (`CLUSTER FAILOVER`): its connections stay open.
    ClusterNodeHandedOver,
    /// The slots of every caller's account go to another node of a Cluster, one after the other.
    ClusterSlotsMoved,
    /// A primary that Sentinels watch is killed (SIGKILL) for good, and they promote its replica.
    SentinelPrimaryKilled,
}

impl Scenario {
    /// Every scenario.
    pub const ALL: [Self; 13] = [
        Self::RedisFrozen,
        Self::RedisKilledSynced,
        Self::RedisKilledEverySecond,
        Self::RedisDemoted,
        Self::RedisHandedOver,
        Self::ScriptsFlushed,
        Self::ServerKilled,
        Self::ServerFrozen,
        Self::RepliesDropped,
        Self::ClusterNodeKilled,
        Self::ClusterNodeHandedOver,
        Self::ClusterSlotsMoved,
        Self::SentinelPrimaryKilled,
    ];

    /// In a few words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RedisFrozen => "Redis frozen for 10 s",
            Self::RedisKilledSynced => "Redis killed, fsync always",
            Self::RedisKilledEverySecond => "Redis killed, fsync everysec",
            Self::RedisDemoted => "Redis demoted",
            Self::RedisHandedOver => "Redis hands over (FAILOVER)",
            Self::ScriptsFlushed => "scripts flushed",
            Self::ServerKilled => "server killed",
            Self::ServerFrozen => "server frozen",
            Self::RepliesDropped => "replies of Redis dropped",
            Self::ClusterNodeKilled => "node of a Cluster killed",
            Self::ClusterNodeHandedOver => "node of a Cluster hands over",
            Self::ClusterSlotsMoved => "slots of a Cluster moved",
            Self::SentinelPrimaryKilled => "primary of Sentinels killed",
        }
    }

    /// Runs it.
    pub async fn run(self, scale: &Scale) -> Outcome {
        match self {
            Self::RedisFrozen => redis_frozen(scale).await,
            Self::RedisKilledSynced => redis_killed(scale, RedisServer::options().appendonly(), false).await,
            Self::RedisKilledEverySecond => {
                let options = RedisServer::options().appendonly().args(&["--appendfsync", "everysec"]);
                redis_killed(scale, options, true).await
            }
            Self::RedisDemoted => redis_demoted(scale).await,
            Self::RedisHandedOver => redis_handed_over(scale).await,
            Self::ScriptsFlushed => scripts_flushed(scale).await,
            Self::ServerKilled => server_killed(scale).await,
            Self::ServerFrozen => server_frozen(scale).await,
            Self::RepliesDropped => replies_dropped(scale).await,
            Self::ClusterNodeKilled => cluster_node_killed(scale).await,
            Self::ClusterNodeHandedOver => cluster_node_handed_over(scale).await,
            Self::ClusterSlotsMoved => cluster_slots_moved(scale).await,
            Self::SentinelPrimaryKilled => sentinel_primary_killed(scale).await,
        }
    }
}

async fn redis_frozen(scale: &Scale) -> Outcome {
    let mut redis = RedisServer::start().await;
    let mut run = Run::start(&redis.url(), scale).await;
    redis.pause().await;
    run.lasts(Duration::from_secs(10)).await;
    redis.resume().await;
    run.is_over().await;
    run.end().await
}

async fn redis_killed(scale: &Scale, options: RedisOptions, may_lose: bool) -> Outcome {
    let mut redis = options.start().await;
    let mut run = Run::start(&redis.url(), &if may_lose { scale.api_only() } else { *scale }).await;
    if may_lose {
        run.may_lose();
    }
    redis.kill().await;
    run.goes_on().await;
    redis.restart().await;
    run.is_over().await;
    run.end().await
}

/// A primary, its replica, and the way to the primary.
async fn replicated() -> (RedisServer, RedisServer, Proxy) {
    // By default a primary waits for seconds whether more replicas come.
    let (primary, replica) =
        tokio::join!(RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]), RedisServer::start());
    replica.follow(&primary).await;
    let proxy = Proxy::to(primary.port()).await;
    (primary, replica, proxy)
}

async fn redis_demoted(scale: &Scale) -> Outcome {
    let (primary, replica, proxy) = replicated().await;
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

async fn redis_handed_over(scale: &Scale) -> Outcome {
    let (primary, replica, proxy) = replicated().await;
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

async fn scripts_flushed(scale: &Scale) -> Outcome {
    let redis = RedisServer::start().await;
    let mut run = Run::start(&redis.url(), scale).await;
    for _ in 0..scale.checks {
        redis.command("SCRIPT", &["FLUSH"]).await;
        run.goes_on_for(1).await;
    }
    run.is_over().await;
    run.end().await
}

async fn server_killed(scale: &Scale) -> Outcome {
    let redis = RedisServer::start().await;
    let mut run = Run::start(&redis.url(), scale).await;
    run.first_server().kill();
    run.is_over().await;
    run.end().await
}

async fn server_frozen(scale: &Scale) -> Outcome {
    let redis = RedisServer::start().await;
    let mut run = Run::start(&redis.url(), scale).await;
    run.first_server().pause();
    run.goes_on().await;
    run.first_server().resume();
    run.is_over().await;
    run.end().await
}

async fn replies_dropped(scale: &Scale) -> Outcome {
    let redis = RedisServer::start().await;
    let proxy = Proxy::to(redis.port()).await;
    let mut run = Run::start(&proxy.redis_url(), scale).await;
    proxy.set(Fault::DropReplies);
    run.goes_on().await;
    proxy.set(Fault::None);
    run.is_over().await;
    run.end().await
}

/// The key of a caller's account.
fn caller_key(number: usize) -> String {
    format!("q1:{{user:api-{number}}}")
}

async fn cluster_node_killed(scale: &Scale) -> Outcome {
    let mut cluster = RedisCluster::quick_to_fail_over().await;
    let mut run = Run::start(&cluster.url(), &scale.api_only()).await;
    run.may_lose();
    cluster.kill(RedisCluster::place_of(&caller_key(0))).await;
    run.is_over().await;
    run.end().await
}

async fn cluster_node_handed_over(scale: &Scale) -> Outcome {
    let cluster = RedisCluster::start().await;
    let mut run = Run::start(&cluster.url(), scale).await;
    run.may_split();
    cluster.hand_over(RedisCluster::place_of(&caller_key(0))).await;
    run.is_over().await;
    run.end().await
}

async fn cluster_slots_moved(scale: &Scale) -> Outcome {
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

async fn sentinel_primary_killed(scale: &Scale) -> Outcome {
    let mut servers = RedisSentinel::quick_to_fail_over().await;
    let mut run = Run::start(&servers.url(), &scale.api_only()).await;
    run.may_lose();
    servers.kill_primary().await;
    run.is_over().await;
    run.end().await
}
