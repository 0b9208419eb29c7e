mod alone;
mod certificates;
mod cluster;
mod network;
mod replicated;
mod servers;
mod words;

use std::time::Duration;

use self::words::Words;
use super::{Outcome, Scale};
use crate::network::{Loss, Network};
use crate::proxy::Fault;
use crate::redis::RedisServer;

/// What breaks under load, and is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Redis is frozen for ten seconds: connections stay open, nothing answers.
    RedisFrozen,
    /// Redis is killed (SIGKILL) and started on the same files, each write synced.
    RedisKilledSynced,
    /// The same, with writes synced once a second.
    RedisKilledEverySecond,
    /// The same, and it is long at reading them (LOADING).
    RedisLoading,
    /// Redis has no memory left for writes (OOM).
    RedisFull,
    /// Redis takes no writes, since it cannot save (MISCONF).
    RedisCannotSave,
    /// Redis takes no writes, since it has too few replicas (NOREPLICAS).
    RedisWithoutReplicas,
    /// Redis runs somebody's script, which does not end (BUSY).
    RedisBusy,
    /// Redis forgets its scripts, again and again.
    ScriptsFlushed,
    /// The clock of Redis steps ahead and back.
    RedisClockSteps,
    /// The primary is demoted as it is, and its replica promoted: its connections stay open and answer READONLY.
    RedisDemoted,
    /// The same, with a primary that answers MASTERDOWN then.
    RedisMasterDown,
    /// The primary hands over to its replica (`FAILOVER`).
    RedisHandedOver,
    /// A primary that Sentinels watch is killed (SIGKILL) for good, and they promote its replica.
    SentinelPrimaryKilled,
    /// A node of a Cluster is killed (SIGKILL) for good, and its replica takes its place.
    ClusterNodeKilled,
    /// A node of a Cluster hands over to its replica (`CLUSTER FAILOVER`): its connections stay open.
    ClusterNodeHandedOver,
    /// The slots of every caller's account go to another node of a Cluster, one after the other.
    ClusterSlotsMoved,
    /// One of two servers is killed (SIGKILL) for good.
    ServerKilled,
    /// One of two servers is frozen, and goes on with what it had begun.
    ServerFrozen,
    /// What the servers ask of Redis is lost on the way; what it answers arrives.
    RequestsDropped,
    /// What Redis answers is lost on the way to the servers; what they ask arrives.
    RepliesDropped,
    /// Redis answers later than the servers wait.
    RepliesLate,
    /// What Redis answers arrives as something else.
    RepliesGarbled,
    /// What Redis answers arrives in part, and the connection is closed.
    RepliesTruncated,
    /// Connections to Redis are closed, again and again.
    ConnectionsCut,
    /// The link to Redis is down for ten seconds: connections stay open, nothing arrives, and nobody is told.
    LinkDown,
    /// The network loses what goes to Redis.
    LinkLosesRequests,
    /// The network loses what comes from Redis.
    LinkLosesReplies,
    /// The certificate of the servers is replaced, again and again, and they are asked by TLS.
    CertificateReplaced,
    /// Redis shows a certificate that has expired, and later one that has not.
    RedisCertificateExpired,
}

impl Scenario {
    /// Every scenario.
    pub const ALL: [Self; 30] = [
        Self::RedisFrozen,
        Self::RedisKilledSynced,
        Self::RedisKilledEverySecond,
        Self::RedisLoading,
        Self::RedisFull,
        Self::RedisCannotSave,
        Self::RedisWithoutReplicas,
        Self::RedisBusy,
        Self::ScriptsFlushed,
        Self::RedisClockSteps,
        Self::RedisDemoted,
        Self::RedisMasterDown,
        Self::RedisHandedOver,
        Self::SentinelPrimaryKilled,
        Self::ClusterNodeKilled,
        Self::ClusterNodeHandedOver,
        Self::ClusterSlotsMoved,
        Self::ServerKilled,
        Self::ServerFrozen,
        Self::RequestsDropped,
        Self::RepliesDropped,
        Self::RepliesLate,
        Self::RepliesGarbled,
        Self::RepliesTruncated,
        Self::ConnectionsCut,
        Self::LinkDown,
        Self::LinkLosesRequests,
        Self::LinkLosesReplies,
        Self::CertificateReplaced,
        Self::RedisCertificateExpired,
    ];

    /// In a few words.
    pub const fn name(self) -> &'static str {
        Words::of(self).name
    }

    /// How it is brought about.
    pub const fn injected(self) -> &'static str {
        Words::of(self).injected
    }

    /// What is promised for it, beside that what was acknowledged counts, and counts once.
    pub const fn promise(self) -> &'static str {
        Words::of(self).promise
    }

    /// Whether it can be run here. It says why, where not.
    ///
    /// # Panics
    ///
    /// Panics in CI, where nothing may be left out.
    pub async fn is_possible(self) -> bool {
        let wants_network = matches!(self, Self::LinkDown | Self::LinkLosesRequests | Self::LinkLosesReplies);
        !wants_network || Network::is_possible().await
    }

    /// Runs it.
    pub async fn run(self, scale: &Scale) -> Outcome {
        match self {
            Self::RedisFrozen => alone::redis_frozen(scale).await,
            Self::RedisKilledSynced => {
                alone::redis_killed(scale, RedisServer::options().appendonly(), false).await
            }
            Self::RedisKilledEverySecond => {
                let options = RedisServer::options().appendonly().args(&["--appendfsync", "everysec"]);
                alone::redis_killed(scale, options, true).await
            }
            Self::RedisLoading => alone::redis_loading(scale).await,
            Self::RedisFull => alone::redis_refuses(scale, "maxmemory", "1mb", "0").await,
            Self::RedisCannotSave => alone::redis_cannot_save(scale).await,
            Self::RedisWithoutReplicas => {
                alone::redis_refuses(scale, "min-replicas-to-write", "1", "0").await
            }
            Self::RedisBusy => alone::redis_busy(scale).await,
            Self::ScriptsFlushed => alone::scripts_flushed(scale).await,
            Self::RedisClockSteps => alone::redis_clock_steps(scale).await,
            Self::RedisDemoted => replicated::redis_demoted(scale, &[]).await,
            Self::RedisMasterDown => {
                replicated::redis_demoted(scale, &["--replica-serve-stale-data", "no"]).await
            }
            Self::RedisHandedOver => replicated::redis_handed_over(scale).await,
            Self::SentinelPrimaryKilled => replicated::sentinel_primary_killed(scale).await,
            Self::ClusterNodeKilled => cluster::cluster_node_killed(scale).await,
            Self::ClusterNodeHandedOver => cluster::cluster_node_handed_over(scale).await,
            Self::ClusterSlotsMoved => cluster::cluster_slots_moved(scale).await,
            Self::ServerKilled => servers::server_killed(scale).await,
            Self::ServerFrozen => servers::server_frozen(scale).await,
            Self::RequestsDropped => servers::way_broken(scale, Fault::DropRequests).await,
            Self::RepliesDropped => servers::way_broken(scale, Fault::DropReplies).await,
            Self::RepliesLate => {
                let late = scale.store_deadline + Duration::from_millis(50);
                servers::way_broken(scale, Fault::Delay(late)).await
            }
            Self::RepliesGarbled => servers::way_broken(scale, Fault::GarbleReplies).await,
            Self::RepliesTruncated => servers::way_broken(scale, Fault::TruncateReplies).await,
            Self::ConnectionsCut => servers::connections_cut(scale).await,
            Self::LinkDown => network::link_down(scale).await,
            Self::LinkLosesRequests => network::link_loses(scale, Loss::Requests).await,
            Self::LinkLosesReplies => network::link_loses(scale, Loss::Replies).await,
            Self::CertificateReplaced => certificates::replaced(scale).await,
            Self::RedisCertificateExpired => certificates::of_redis_expired(scale).await,
        }
    }
}
