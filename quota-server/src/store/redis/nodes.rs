//! Nodes in Redis: a hash for each, moved by one script, and an index of their names.

use std::time::Duration;

use quota_core::{Adaptations, NodeReport, node_key};
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};

use super::RedisStore;
use super::cuts_codec::load;
use super::node_codec as codec;
use crate::store::node::remembered_for;
use crate::store::{Calibrated, MAX_NODES, Nodes, StoreError};

/// The names of the nodes that are remembered, by when each last reported.
const INDEX: &str = "q1:nodes";

impl RedisStore {
    pub(super) async fn calibrate_node(
        &self,
        node: &str,
        report: &NodeReport,
        adaptations: &Adaptations,
    ) -> Result<Calibrated, StoreError> {
        let lifetime = remembered_for(adaptations);
        let mut call = self.scripts.calibrate.key(key(node));
        call.arg(codec::parameters(report, adaptations)).arg(codec::report(node, report));
        call.arg(lifetime.as_millis() as u64).arg(&self.caller).arg(load(report, adaptations));
        let reply: Option<Vec<Value>> = self
            .connections
            .run_aside(async |connection| {
                if !has_room(node, connection).await? {
                    return Ok(None);
                }
                let reply: Vec<Value> = call.invoke_async(connection).await?;
                if let Some(Value::Int(seconds)) = reply.first() {
                    register(node, *seconds, lifetime, connection).await?;
                }
                Ok(Some(reply))
            })
            .await?;
        codec::calibrated(&reply.ok_or(StoreError::TooManyNodes)?, report)
    }

    pub(super) async fn list_nodes(&self) -> Result<Nodes, StoreError> {
        let mut call = self.scripts.nodes.key(INDEX);
        call.arg(MAX_NODES);
        let (names, stored) = self
            .connections
            .run_aside(async |connection| {
                let names: Vec<Value> = call.invoke_async(connection).await?;
                let stored = read(codec::names(&names), connection).await?;
                Ok((names, stored))
            })
            .await?;
        codec::nodes(&names, &stored, self.caller)
    }
}

fn key(node: &str) -> String {
    format!("q1:{{{}}}", node_key(node))
}

/// Whether the node is known, or one more may be.
async fn has_room(node: &str, connection: &mut MultiplexedConnection) -> RedisResult<bool> {
    let mut asked = redis::pipe();
    asked.zscore(INDEX, node).zcard(INDEX);
    let (known, nodes): (Option<f64>, usize) = asked.query_async(connection).await?;
    Ok(known.is_some() || nodes < MAX_NODES)
}

/// Notes when a node reported, and forgets those that have not for too long.
async fn register(
    node: &str,
    seconds: i64,
    lifetime: Duration,
    connection: &mut MultiplexedConnection,
) -> RedisResult<()> {
    let lifetime = lifetime.as_secs() as i64;
    let mut noted = redis::pipe();
    noted.zadd(INDEX, node, seconds).ignore();
    noted.zrembyscore(INDEX, "-inf", seconds - lifetime).ignore();
    noted.expire(INDEX, lifetime).ignore();
    noted.exec_async(connection).await
}

/// State, report, callers and cuts of each node; `None` for a key that holds something else.
async fn read<'a>(
    names: impl Iterator<Item = &'a str>,
    connection: &mut MultiplexedConnection,
) -> RedisResult<Vec<Option<Value>>> {
    let mut asked = redis::pipe();
    for name in names {
        asked.cmd("HMGET").arg(key(name)).arg("state").arg("report").arg("by").arg("cuts");
    }
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    // One that is broken is no reason to know nothing of the others.
    let replies: Vec<RedisResult<Value>> = asked.ignore_errors().query_async(connection).await?;
    let of_type = |reply: RedisResult<Value>| match reply {
        Err(error) if error.code() == Some("WRONGTYPE") => Ok(None),
        reply => reply.map(Some),
    };
    replies.into_iter().map(of_type).collect()
}
