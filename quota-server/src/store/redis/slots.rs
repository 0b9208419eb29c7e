//! The slots of classes in Redis: of each class a hash, and its leases by when they end.

use std::time::Duration;

use quota_core::{Cap, LeaseId, Leased, NoSlot, Owner, Progress, Renewal, SlotStanding, Wanted};
use redis::Value;

use super::RedisStore;
use super::call::Call;
use super::codec::{integer, malformed, small};
use super::pool::{Lane, Terms};
use super::scripts::Script;
use crate::store::{SlotCall, StoreError};

/// The longest time that a script takes, in microseconds.
const MOST_MICROS: u128 = 1 << 50;

impl RedisStore {
    pub(super) async fn run_acquire(
        &self,
        call: SlotCall<'_>,
        wanted: &Wanted,
    ) -> Result<Leased, StoreError> {
        let stops = wanted.stops.map_or(0, |stops| stops.as_micros());
        let args = [u128::from(wanted.count), u128::from(wanted.spare), stops];
        self.run_on_slots(&self.scripts.acquire, call, wanted.lease, &wanted.owner, args).await
    }

    pub(super) async fn run_renew(
        &self,
        call: SlotCall<'_>,
        renewal: &Renewal,
        progress: Progress,
    ) -> Result<Leased, StoreError> {
        let args =
            [renewal.count.into(), progress.finished.into(), progress.took.as_micros().min(MOST_MICROS)];
        self.run_on_slots(&self.scripts.renew, call, renewal.lease, &renewal.owner, args).await
    }

    async fn run_on_slots(
        &self,
        script: &Script,
        call: SlotCall<'_>,
        lease: LeaseId,
        owner: &Owner,
        args: [u128; 3],
    ) -> Result<Leased, StoreError> {
        let SlotCall { class, terms, pressed } = call;
        let key = format!("q1:{{slots:{class}}}");
        let (min, max, tolerance) = match terms.cap {
            Cap::Fixed(cap) => (cap, cap, 0),
            Cap::Adaptive(adaptive) => (adaptive.min, adaptive.max, adaptive.tolerance),
        };
        let mut asked = Call::script(script, &[key.clone(), format!("{key}:ends")])
            .arg(terms.lasts.as_micros() as u64)
            .arg(u8::from(pressed))
            .arg(terms.node_cap.map_or_else(String::new, |cap| cap.to_string()));
        for number in [min, max, tolerance] {
            asked = asked.arg(number);
        }
        asked = asked.arg(&lease[..]).arg(owner.holder.as_bytes()).arg(owner.node.as_bytes());
        for number in args {
            asked = asked.arg(number.to_string());
        }
        let terms = Terms::new(Lane::Decisions, self.connections.deadline());
        let reply: Vec<Value> = self.connections.run(terms, &key, asked).await?;
        leased(&reply)
    }
}

pub(super) fn leased(reply: &[Value]) -> Result<Leased, StoreError> {
    let [count, lasts, Value::BulkString(refused), leased, leases, cap] = reply else {
        return Err(malformed("slots: shape"));
    };
    let lasts = Duration::from_micros(integer(lasts)?);
    let refused = match &refused[..] {
        b"" => None,
        b"cap" => Some(NoSlot::AtCap),
        b"node" => Some(NoSlot::AtNodeCap),
        b"opening" => Some(NoSlot::Opening(lasts)),
        b"leases" => Some(NoSlot::TooManyLeases),
        _ => return Err(malformed("slots: refused")),
    };
    let lasts = if refused.is_some() { Duration::ZERO } else { lasts };
    let standing = SlotStanding { leased: small(leased)?, leases: small(leases)?, cap: small(cap)? };
    Ok(Leased { count: small(count)?, lasts, refused, standing })
}
