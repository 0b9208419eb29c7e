//! Nodes in Redis: a hash for each, moved by one script, and an index of their names.

use quota_core::{Adaptations, NodeReport, node_key};
use redis::Value;

use super::RedisStore;
use super::call::Call;
use super::cuts_codec::load;
use super::node_codec as codec;
use crate::store::node::remembered_for;
use crate::store::{Calibrated, Cause, MAX_NODES, Nodes, StoreError};

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
        let call = Call::script(&self.scripts.calibrate, &[&key])
            .arg(codec::parameters(report, adaptations))
            .arg(codec::report(node, report))
            .arg(lifetime.as_millis() as u64)
            .arg(&self.caller)
            .arg(load(report, adaptations));
        let reply: Vec<Value> = self.connections.run_aside(&key, call).await?;
        codec::calibrated(&reply, report)
    }

    pub(super) async fn list_nodes(&self) -> Result<Nodes, StoreError> {
        let registered = self.registered(INDEX, MAX_NODES).await?;
        let names: Vec<&str> = registered.names.iter().map(|(name, _)| &**name).collect();
        let calls = names.iter().map(|name| {
            let (key, mut asked) = (key(name), redis::cmd("HMGET"));
            asked.arg(&key).arg("state").arg("report").arg("by").arg("cuts");
            (key, Call::from(asked))
        });
        let stored = self.connections.run_each_aside(calls.collect()).await;
        // One that is broken is no reason to know nothing of the others.
        let of_type = |answer: Result<Value, StoreError>| match answer {
            Err(error) if error.cause() == Cause::Corrupt => Ok(None),
            answer => answer.map(Some),
        };
        let stored = stored.into_iter().map(of_type).collect::<Result<Vec<_>, _>>()?;
        codec::nodes(registered.now, &names, &stored, self.caller)
    }
}

fn key(node: &str) -> String {
    format!("q1:{{{}}}", node_key(node))
}
