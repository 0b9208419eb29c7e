//! Leave to run: a slot of the class, and a permit of the RPC.

use std::sync::Arc;

use tokio::time::Instant;

use super::Client;
use crate::{Denial, Permit, Request, Slot};

impl Client {
    /// Waits for a slot of the request's class, where that has a cap: as long as the class lets its requests wait, and until
    /// the deadline. The [`QuotaLayer`](crate::QuotaLayer) does this for requests that it [checks](crate::Classification::Check),
    /// before it asks. Drop the slot when the request, with its stream, has ended.
    ///
    /// `None` where the class has no cap, or nothing is known of it and the service does not answer.
    ///
    /// # Errors
    /// Where there is none: nothing was started, and the denial, [`Cause::NoSlot`](crate::Cause::NoSlot), tells when to come back.
    pub async fn slot(&self, request: &Request, deadline: Option<Instant>) -> Result<Option<Slot>, Denial> {
        let shared = &self.handle.shared;
        let class = shared.classes.get(request.class_name(), shared);
        let slot = class.acquire(shared, deadline).await?;
        if slot.is_none() && class.is_unknown() {
            // The service knows no such class: it is as if none was named.
            return shared.classes.get(&Arc::default(), shared).acquire(shared, deadline).await;
        }
        Ok(slot)
    }

    /// Waits until one more request of this RPC may run, of the repository or address that it is limited by: at most as long
    /// as the settings let it wait, and until the deadline. The [`QuotaLayer`](crate::QuotaLayer) does this for requests
    /// that it [checks](crate::Classification::Check); a handler does it for work whose cost shows only within, as when a
    /// cache has missed. Drop the permit when the request, with its stream, has ended.
    ///
    /// `None` where nothing limits it: its RPC has no limit, the request names no repository or address to be limited by,
    /// or it comes from this very machine and that is exempt. A request without a user is an unauthenticated one.
    ///
    /// # Errors
    /// Where it may not run: nothing was started, and the denial tells when to come back.
    pub async fn acquire(
        &self,
        request: &Request,
        deadline: Option<Instant>,
    ) -> Result<Option<Permit>, Denial> {
        let shared = self.shared();
        match shared.limits.acquire(request, deadline).await {
            Ok(permit) => {
                if let Some(permit) = &permit {
                    let authenticated = request.is_authenticated();
                    shared.metrics.acquired(request.rpc_name(), authenticated, permit.waited());
                }
                Ok(permit)
            }
            Err(refusal) => {
                shared.refusals_told.tell(request, &refusal, Instant::now());
                Err(refusal.into())
            }
        }
    }
}
