use std::time::Duration;

use futures::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::cluster_routing::Slot;
use redis::{FromRedisValue, Value};
use tokio::time::Instant;

use super::RedisServer;
use crate::wait::{PATIENCE, until};

/// Nodes that hold slots; each has a replica.
const PRIMARIES: usize = 3;

const SLOTS: usize = 16384;

/// A replica that was asked to take over has given it up by then.
const GIVEN_UP: Duration = Duration::from_secs(6);

/// A Redis Cluster of three primaries and a replica of each, as local processes.
#[derive(Debug)]
pub struct RedisCluster {
    /// The primaries at first, in the order of their slots, and then their replicas.
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts one in which no node is so slow that another takes its place.
    pub async fn start() -> Self {
        Self::with_node_timeout("30000").await
    }

    /// Starts one in which a node that does not answer for a second and a half is replaced.
    pub async fn quick_to_fail_over() -> Self {
        Self::with_node_timeout("1500").await
    }

    async fn with_node_timeout(milliseconds: &str) -> Self {
        let options = RedisServer::options().local().args(&["--cluster-enabled", "yes"]);
        let options =
            options.args(&["--cluster-node-timeout", milliseconds, "--repl-diskless-sync-delay", "0"]);
        let cluster = Self { nodes: join_all((0..2 * PRIMARIES).map(|_| options.clone().start())).await };
        cluster.form().await;
        cluster
    }

    async fn form(&self) {
        for (number, node) in self.nodes.iter().enumerate() {
            node.command("CLUSTER", &["SET-CONFIG-EPOCH", &(number + 1).to_string()]).await;
            node.command("CLUSTER", &["MEET", "127.0.0.1", &self.nodes[0].port().to_string()]).await;
        }
        for (number, node) in self.nodes[..PRIMARIES].iter().enumerate() {
            let slots = number * SLOTS / PRIMARIES..(number + 1) * SLOTS / PRIMARIES;
            let slots: Vec<String> = slots.map(|slot| slot.to_string()).collect();
            let args: Vec<&str> = ["ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect();
            node.command("CLUSTER", &args).await;
        }
        let (primaries, replicas) = self.nodes.split_at(PRIMARIES);
        self.agrees("all know each other", |info| info.contains("cluster_known_nodes:6")).await;
        for (primary, replica) in primaries.iter().zip(replicas) {
            let id: String = ask(primary, &["MYID"]).await;
            replica.command("CLUSTER", &["REPLICATE", &id]).await;
        }
        self.is_whole().await;
        for replica in replicas {
            until(PATIENCE, "a replica is in step", async || {
                replica.info("replication").await.contains("master_link_status:up").then_some(())
            })
            .await;
        }
    }

    /// The address for a client.
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// The nodes that held the slots at first, in the order of these.
    pub fn primaries(&self) -> &[RedisServer] {
        &self.nodes[..PRIMARIES]
    }

    /// Whether any node has answered with an error of a kind, such as `CROSSSLOT`.
    pub async fn has_answered(&self, error: &str) -> bool {
        let told = join_all(self.nodes.iter().map(|node| node.info("errorstats"))).await;
        told.iter().any(|told| told.contains(&format!("errorstat_{error}:")))
    }

    /// A connection to each of them.
    pub async fn clients(&self) -> Vec<MultiplexedConnection> {
        join_all(self.primaries().iter().map(RedisServer::client)).await
    }

    /// Which of the primaries held a key at first.
    pub fn place_of(key: &str) -> usize {
        let slot = Slot::for_key(key);
        let number = (0..SLOTS).find(|&number| Slot::new(number as u16) == Some(slot)).expect("a slot");
        (0..PRIMARIES).rfind(|place| place * SLOTS / PRIMARIES <= number).expect("a primary")
    }

    /// Ends a primary as a crash would.
    pub async fn kill(&mut self, place: usize) {
        self.nodes[place].kill().await;
    }

    /// Has the replica of a primary take its place, which then follows it.
    pub async fn hand_over(&self, place: usize) {
        let replica = &self.nodes[PRIMARIES + place];
        let mut asked: Option<Instant> = None;
        until(PATIENCE, "the replica takes over", async || {
            // The two give it up after 5 s, where they were too slow to come to the same.
            if asked.is_none_or(|asked| asked.elapsed() > GIVEN_UP) {
                replica.command("CLUSTER", &["FAILOVER"]).await;
                asked = Some(Instant::now());
            }
            replica.info("replication").await.contains("role:master").then_some(())
        })
        .await;
    }

    /// Freezes a primary: its connections stay open, and nothing answers.
    pub async fn pause(&mut self, place: usize) {
        self.nodes[place].pause().await;
    }

    /// Lets it go on.
    pub async fn resume(&mut self, place: usize) {
        self.nodes[place].resume().await;
    }

    /// Moves the slot of a key to the next primary, key by key, and calls `halfway` before each and after the last.
    pub async fn move_slot(&self, key: &str, mut halfway: impl AsyncFnMut()) {
        let place = Self::place_of(key);
        let (from, to) = (&self.nodes[place], &self.nodes[(place + 1) % PRIMARIES]);
        let slot: u64 = ask(from, &["KEYSLOT", key]).await;
        let slot = slot.to_string();
        let (source, target): (String, String) = (ask(from, &["MYID"]).await, ask(to, &["MYID"]).await);
        to.command("CLUSTER", &["SETSLOT", &slot, "IMPORTING", &source]).await;
        from.command("CLUSTER", &["SETSLOT", &slot, "MIGRATING", &target]).await;
        loop {
            halfway().await;
            let keys: Vec<String> = ask(from, &["GETKEYSINSLOT", &slot, "1"]).await;
            let [key] = &keys[..] else { break };
            from.command("MIGRATE", &["127.0.0.1", &to.port().to_string(), key, "0", "5000"]).await;
        }
        for node in [to, from] {
            node.command("CLUSTER", &["SETSLOT", &slot, "NODE", &target]).await;
        }
    }

    /// Waits until every node says that all slots are held.
    async fn is_whole(&self) {
        self.agrees("all slots are held", |info| info.contains("cluster_state:ok")).await;
        self.agrees("all slots are held", |info| info.contains("cluster_slots_ok:16384")).await;
    }

    async fn agrees(&self, what: &str, condition: impl Fn(&str) -> bool) {
        for node in &self.nodes {
            until(PATIENCE, what, async || {
                let info: String = ask(node, &["INFO"]).await;
                condition(&info).then_some(())
            })
            .await;
        }
    }
}

async fn ask<T: FromRedisValue>(node: &RedisServer, args: &[&str]) -> T {
    let answer: Value = redis::cmd("CLUSTER")
        .arg(args)
        .query_async(&mut node.client().await)
        .await
        .expect("a node that answers");
    redis::from_redis_value(answer).expect("what was asked for")
}
