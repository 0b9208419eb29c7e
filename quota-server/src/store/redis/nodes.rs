//! Nodes in Redis: a hash for each, moved by one script, and an index of their names.

use quota_core::{Adaptations, NodeReport, node_key};
use redis::{RedisResult, Value};

use super::RedisStore;
use super::cuts_codec::load;
use super::error::classify;
use super::node_codec as codec;
use super::pool::Call;
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
        if !self.register(INDEX, node, lifetime, MAX_NODES).await? {
            return Err(StoreError::TooManyNodes);
        }
        let key = key(node);
        let mut call = self.scripts.calibrate.key(&key);
        call.arg(codec::parameters(report, adaptations)).arg(codec::report(node, report));
        call.arg(lifetime.as_millis() as u64).arg(&self.caller).arg(load(report, adaptations));
        let reply: Vec<Value> = self.connections.run_aside(&key, Call::Script(&call)).await?;
        codec::calibrated(&reply, report)
    }

    pub(super) async fn list_nodes(&self) -> Result<Nodes, StoreError> {
        let registered = self.registered(INDEX, MAX_NODES).await?;
        let names: Vec<&str> = registered.names.iter().map(|(name, _)| &**name).collect();
        let keys: Vec<String> = names.iter().map(|name| key(name)).collect();
        let fields = |key: &str| {
            let mut asked = redis::cmd("HMGET");
            asked.arg(key).arg("state").arg("report").arg("by").arg("cuts");
            asked
        };
        // One that is broken is no reason to know nothing of the others.
        let of_type = |answer: RedisResult<Value>| match answer {
            Err(error) if error.code() == Some("WRONGTYPE") => Ok(None),
            answer => answer.map(Some).map_err(|error| classify(&error)),
        };
        let stored = self.connections.read_each(&keys, fields).await?;
        let stored = stored.into_iter().map(of_type).collect::<Result<Vec<_>, _>>()?;
        codec::nodes(registered.now, &names, &stored, self.caller)
    }
}

fn key(node: &str) -> String {
    format!("q1:{{{}}}", node_key(node))
}
