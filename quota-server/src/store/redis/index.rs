//! What there is of something, in Redis: names, by when each was last registered.

use std::time::Duration;

use quota_core::Timestamp;
use redis::Value;

use super::RedisStore;
use super::call::Call;
use super::codec::{integer, malformed, timestamp};
use crate::store::StoreError;

/// The names of an index.
pub(super) struct Registered {
    pub(super) now: Timestamp,
    /// With the second in which each was registered, the last first.
    pub(super) names: Vec<(Box<str>, u64)>,
}

impl Registered {
    /// Whether a second is no longer ago.
    pub(super) fn is_within(&self, second: u64, within: Duration) -> bool {
        second.saturating_add(within.as_secs()) >= self.now.as_micros() / 1_000_000
    }
}

impl RedisStore {
    /// Notes that a name is there, and forgets those that were not noted for too long. False where there is no room for it.
    pub(super) async fn register(
        &self,
        index: &str,
        name: &str,
        lifetime: Duration,
        most: usize,
    ) -> Result<bool, StoreError> {
        let call = Call::script(&self.scripts.register, &[index]);
        let call = call.arg(name).arg(lifetime.as_secs()).arg(most);
        let noted: Value = self.connections.run_aside(index, call).await?;
        Ok(integer(&noted)? == 1)
    }

    pub(super) async fn registered(&self, index: &str, most: usize) -> Result<Registered, StoreError> {
        let call = Call::script(&self.scripts.registered, &[index]).arg(most);
        let reply: Vec<Value> = self.connections.run_aside(index, call).await?;
        let [seconds, micros, names @ ..] = &reply[..] else {
            return Err(malformed("registered: too short"));
        };
        let names = names.chunks(2).filter_map(name).collect();
        Ok(Registered { now: timestamp(seconds, micros)?, names })
    }
}

/// A name that is no text is none of ours.
pub(super) fn name(entry: &[Value]) -> Option<(Box<str>, u64)> {
    let [Value::BulkString(name), Value::BulkString(second)] = entry else { return None };
    Some((std::str::from_utf8(name).ok()?.into(), std::str::from_utf8(second).ok()?.parse().ok()?))
}
