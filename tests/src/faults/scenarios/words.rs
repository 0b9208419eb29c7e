use super::Scenario;

/// What is told of a scenario.
pub(super) struct Words {
    pub(super) name: &'static str,
    pub(super) injected: &'static str,
    pub(super) promise: &'static str,
}

impl Words {
    pub(super) const fn of(scenario: Scenario) -> Self {
        let (name, injected, promise) = match scenario {
            Scenario::RedisFrozen => {
                ("Redis frozen for 10 s", "SIGSTOP, SIGCONT", "no check waits longer than its deadline")
            }
            Scenario::RedisKilledSynced => {
                ("Redis killed, fsync always", "SIGKILL, started on its files", "nothing is lost")
            }
            Scenario::RedisKilledEverySecond => (
                "Redis killed, fsync everysec",
                "the same, `appendfsync everysec`",
                "two seconds are lost at most",
            ),
            Scenario::RedisLoading => (
                "Redis long at loading",
                "SIGKILL, started on its files with a `key-load-delay`: LOADING",
                "as if it was away",
            ),
            Scenario::RedisFull => {
                ("Redis full", "`maxmemory` below what it holds: OOM", "as if it was away")
            }
            Scenario::RedisCannotSave => (
                "Redis cannot save",
                "a snapshot into a folder that cannot be written: MISCONF",
                "as if it was away",
            ),
            Scenario::RedisWithoutReplicas => {
                ("Redis without replicas", "`min-replicas-to-write 1`: NOREPLICAS", "as if it was away")
            }
            Scenario::RedisBusy => {
                ("Redis busy", "a script of somebody else that does not end: BUSY", "as if it was away")
            }
            Scenario::ScriptsFlushed => ("scripts flushed", "`SCRIPT FLUSH` at each check", "nobody notices"),
            Scenario::RedisClockSteps => {
                ("clock of Redis steps", "a preloaded clock: 10 s ahead, back, 10 s back", "nobody notices")
            }
            Scenario::RedisDemoted => (
                "Redis demoted",
                "`REPLICAOF` on a primary whose sockets stay open: READONLY; its replica is promoted later",
                "two seconds are lost at most",
            ),
            Scenario::RedisMasterDown => (
                "Redis demoted, no stale data",
                "the same with `replica-serve-stale-data no`: MASTERDOWN",
                "two seconds are lost at most",
            ),
            Scenario::RedisHandedOver => ("Redis hands over", "`FAILOVER`", "nothing is lost"),
            Scenario::SentinelPrimaryKilled => (
                "primary of Sentinels killed",
                "SIGKILL for good; three Sentinels promote its replica",
                "two seconds are lost at most",
            ),
            Scenario::ClusterNodeKilled => (
                "node of a Cluster killed",
                "SIGKILL of one of 3 + 3 for good",
                "two seconds are lost at most",
            ),
            Scenario::ClusterNodeHandedOver => {
                ("node of a Cluster hands over", "`CLUSTER FAILOVER`", "nothing is lost")
            }
            Scenario::ClusterSlotsMoved => {
                ("slots of a Cluster moved", "`CLUSTER SETSLOT`, `MIGRATE`: MOVED, ASK", "nobody notices")
            }
            Scenario::ServerKilled => ("server killed", "SIGKILL of one of two", "callers go to the other"),
            Scenario::ServerFrozen => {
                ("server frozen", "SIGSTOP of one of two, SIGCONT", "callers go to the other")
            }
            Scenario::RequestsDropped => (
                "requests to Redis lost",
                "a proxy, one direction",
                "no check waits longer than its deadline",
            ),
            Scenario::RepliesDropped => {
                ("replies of Redis lost", "a proxy, the other direction", "what was done counts once")
            }
            Scenario::RepliesLate => (
                "replies of Redis late",
                "a proxy, by more than the deadline each way",
                "what was done counts once",
            ),
            Scenario::RepliesGarbled => {
                ("replies of Redis garbled", "a proxy: bytes in reverse order", "none is taken for an answer")
            }
            Scenario::RepliesTruncated => (
                "replies of Redis truncated",
                "a proxy: half of each, and the end of the connection",
                "what was done counts once",
            ),
            Scenario::ConnectionsCut => {
                ("connections to Redis cut", "a proxy: all closed at each check", "what was done counts once")
            }
            Scenario::LinkDown => (
                "link to Redis down for 10 s",
                "a network namespace, `ip link set down`",
                "no check waits longer than its deadline",
            ),
            Scenario::LinkLosesRequests => (
                "network loses requests to Redis",
                "a network namespace: sent to a hardware address that nobody has",
                "no check waits longer than its deadline",
            ),
            Scenario::LinkLosesReplies => (
                "network loses replies of Redis",
                "the same, the other direction",
                "what was done counts once",
            ),
            Scenario::CertificateReplaced => (
                "certificate of servers replaced",
                "its files, three times; a new connection by TLS for each request",
                "nobody notices",
            ),
            Scenario::RedisCertificateExpired => (
                "certificate of Redis expired",
                "`CONFIG SET tls-cert-file`, `CLIENT KILL`",
                "it is not accepted; the next one is",
            ),
        };
        Self { name, injected, promise }
    }
}
