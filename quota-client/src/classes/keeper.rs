//! Asks the service for slots of a class, renews what is held of them, and gives back what is not needed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use quota_proto::v1;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tonic::{Code, Response, Status};

use super::Class;
use super::holding::{Ask, Handed, Renewal, Wanted};
use crate::pool::{NoAnswer, Service};
use crate::shared::Shared;
use crate::status;

/// How often it looks at what is held, and asks for those who wait.
const ROUND: Duration = Duration::from_millis(100);

/// How often it looks whether there is still a client, where nothing is held.
const IDLE: Duration = Duration::from_secs(5);

/// The most calls about a class that are on their way at a time.
const MOST_CALLS: usize = 16;

/// How long a call may take; leases last a second at least.
const CALL: Duration = Duration::from_millis(500);

/// Runs until there is no client any more.
pub(super) async fn keep(class: Arc<Class>, shared: Weak<Shared>) {
    loop {
        let Some(client) = shared.upgrade() else { return };
        if class.is_forgotten.load(Ordering::Relaxed) {
            return;
        }
        let is_busy = round(&class, &client).await;
        drop(client);
        // Woken, or in time: either way it looks.
        let _ = timeout(if is_busy { ROUND } else { IDLE }, class.wake.notified()).await;
    }
}

/// Looks once, and returns whether it is to look again soon.
async fn round(class: &Arc<Class>, shared: &Arc<Shared>) -> bool {
    let now = Instant::now();
    let late = class.holding.lock().sweep(now, &shared.settings.node);
    for (work, denial) in late {
        if let Some(work) = work.upgrade() {
            // One that was told already ends anyway.
            let _ = work.end(denial);
        }
    }
    class.hand_out();
    // Together: where there are many leases, the last must not end while the first are renewed.
    let mut calls = JoinSet::new();
    let asks = class.holding.lock().plan(now);
    for ask in asks {
        if calls.len() >= MOST_CALLS {
            calls.join_next().await;
        }
        let (class, shared) = (Arc::clone(class), Arc::clone(shared));
        calls.spawn(async move {
            match ask {
                Ask::Acquire(wanted) => acquire(&class, &shared, wanted).await,
                Ask::Renew(renewal) => renew(&class, &shared, renewal).await,
            }
        });
    }
    while calls.join_next().await.is_some() {}
    class.holding.lock().is_busy()
}

async fn renew(class: &Class, shared: &Shared, renewal: Renewal) {
    let Renewal { block, lease, count, finished, took } = renewal;
    let asked = Instant::now();
    let message = || v1::RenewSlotsRequest {
        class: class.name.to_string(),
        holder: shared.classes.holder.clone(),
        node: shared.settings.node.clone(),
        lease: lease.clone(),
        count,
        finished,
        took: prost_types::Duration::try_from(took).ok(),
    };
    let call = |mut client: Service, message| async move { client.renew_slots(message).await };
    let answer = shared.pool.ask(message, asked + CALL, call).await;
    // Without an answer the lease goes on until it ends; it is renewed by the next round.
    if let Ok(slots) = answer {
        class.holding.lock().renewed(block, &slots.into(), asked);
        shared.classes.told(class);
    }
}

async fn acquire(class: &Arc<Class>, shared: &Shared, wanted: Wanted) {
    let Wanted { count, spare, overrun } = wanted;
    let asked = Instant::now();
    let message = || v1::AcquireSlotsRequest {
        class: class.name.to_string(),
        holder: shared.classes.holder.clone(),
        node: shared.settings.node.clone(),
        count,
        spare,
        pooled: true,
        overrun,
    };
    let call = |mut client: Service, message| async move { or_uncapped(client.acquire_slots(message).await) };
    let answer = shared.pool.ask(message, asked + CALL, call).await;
    let now = Instant::now();
    let refused = match answer {
        Ok(slots) => class.holding.lock().acquired(slots.into(), count, asked, now),
        Err(NoAnswer::Status(status)) if status::names(&status, "class") => {
            class.holding.lock().unknown();
            Vec::new()
        }
        Err(_) => class.holding.lock().away(overrun, asked, now),
    };
    shared.classes.told(class);
    for (waiter, refusal) in refused {
        // Who has gone need not know.
        let _ = waiter.send(Handed::Refused(refusal));
    }
    class.hand_out();
}

/// A service of before knows nothing of classes: none has a cap.
fn or_uncapped(answer: Result<Response<v1::Slots>, Status>) -> Result<Response<v1::Slots>, Status> {
    match answer {
        Err(status) if status.code() == Code::Unimplemented => Ok(Response::new(v1::Slots::default())),
        answer => answer,
    }
}
