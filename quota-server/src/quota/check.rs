use quota_core::{Accounts, Breach, Cost, Mode, Timestamp};
use quota_proto::UsedHere;

use super::{Compared, Denial, Label, Quota, QuotaError, Reservation, Retry, Share, Standing};
use crate::auth::Caller;
use crate::config::FailPolicy;
use crate::metrics::{Beyond, Outcome};
use crate::store::{Limited, StoreError};
use crate::trace;

/// May this request be executed?
#[derive(Clone, Debug)]
pub struct CheckRequest {
    /// The fileserver that would execute it.
    pub node: Label,
    /// Its full method name.
    pub rpc: Label,
    /// Who is charged.
    pub accounts: Accounts,
    /// The kind of traffic.
    pub class: Label,
    /// Stands before the price table.
    pub price: Option<Cost>,
    /// What the accounts used on the fileserver.
    pub used_here: UsedHere,
    /// What the fileserver would like to have beside, to admit further requests by itself.
    pub share_wanted: Cost,
}

/// The answer to a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResponse {
    /// Yes or no.
    pub decision: Decision,
    /// As the accounts were compared, before the price was reserved; none where the store was not asked.
    pub standings: Vec<Standing>,
    /// What the fileserver may admit by itself.
    pub share: Option<Share>,
}

/// Yes or no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Allow {
        /// What now counts on every account; none where nothing was reserved.
        reservation: Option<Reservation>,
        /// False where the store was not asked.
        checked: bool,
        /// The shadowed limit that would have refused.
        shadow: Option<Denial>,
    },
    /// Come back later.
    Deny {
        /// The limit that refused.
        denied_by: Denial,
        /// When.
        retry: Retry,
    },
}

impl Quota {
    /// Decides on a request, and reserves its price where it is allowed; nothing, where its caller has reserved more lately than
    /// his nodes can spend.
    pub async fn check(&self, caller: &Caller, request: CheckRequest) -> Result<CheckResponse, QuotaError> {
        trace::of_check(&request);
        let part = self.part_of(&request.class)?;
        let price = request.price.unwrap_or_else(|| self.settings().prices.price(request.rpc.as_deref()));
        // More than a bucket holds would not be counted, and could not be given back.
        let price = price.at_most(Cost::BUCKET);
        let price = self.spend(caller, Beyond::Check, price).map_or(Cost::ZERO, |()| price);
        let compared = self.compare(request.accounts.as_slice(), &request.node, &request.used_here, part);
        let limited: Vec<Limited> = compared.iter().map(Into::into).collect();
        let admitted = self.store.admit(&limited, price).await;
        // Where there was no answer it may be reserved.
        if admitted.as_ref().is_ok_and(|admitted| !admitted.allowed) {
            self.unspend(caller, Beyond::Check, price);
        }
        match admitted {
            Ok(admitted) => {
                let now = admitted.snapshots.now;
                let judged = Self::judged(compared, admitted.snapshots);
                let standings: Vec<_> = judged
                    .iter()
                    .map(|judged| Standing::new(judged, &request.node, now, self.window))
                    .collect();
                let verdict = self.verdict(&judged, now);
                let denial = |breach| {
                    let denial = Denial::new(breach, &judged, &request.node, now, self.window);
                    denial.of_part(&request.class, part)
                };
                let decision = match verdict.denied_by {
                    None if admitted.allowed => {
                        let accounts = request.accounts.as_slice();
                        let reservation = Reservation::new(accounts, &admitted.ticks, price);
                        let reservation = (!price.is_zero()).then_some(reservation);
                        self.allow(&request, reservation, verdict.shadowed.map(denial), now)
                    }
                    Some(denied_by) if !admitted.allowed => self.deny(&request, denial(denied_by), now),
                    // The store compares the same usage with the same limits.
                    _ => return Err(self.fail(StoreError::Malformed("its decision is not ours".to_owned()))),
                };
                let share = match decision {
                    // A limit in shadow is to be told of each time.
                    Decision::Allow { shadow: None, .. } => {
                        self.grant(caller, &request, &limited, &standings, price).await
                    }
                    _ => None,
                };
                Ok(CheckResponse { decision, standings, share })
            }
            Err(error) => {
                let error = QuotaError::from(error);
                let decision = self.decide_without_the_store(&request, compared, &error);
                let decision = decision.ok_or_else(|| self.fail(error))?;
                Ok(CheckResponse { decision, standings: Vec::new(), share: None })
            }
        }
    }

    /// Who is blocked is refused; else the fail policy decides, or nobody.
    fn decide_without_the_store(
        &self,
        request: &CheckRequest,
        compared: Vec<Compared>,
        error: &QuotaError,
    ) -> Option<Decision> {
        if !matches!(error, QuotaError::Unavailable(_)) {
            return None;
        }
        let (blocked, now) = self.blocked(compared);
        if let Some(breach) = self.verdict(&blocked, now).denied_by {
            return Some(self.deny(
                request,
                Denial::new(breach, &blocked, &request.node, now, self.window),
                now,
            ));
        }
        (self.settings().fail == FailPolicy::Open).then(|| {
            self.came_to(Outcome::Unchecked, None);
            Decision::Allow { reservation: None, checked: false, shadow: None }
        })
    }

    fn allow(
        &self,
        request: &CheckRequest,
        reservation: Option<Reservation>,
        shadow: Option<Denial>,
        now: Timestamp,
    ) -> Decision {
        match &shadow {
            None => self.came_to(Outcome::Allow, None),
            Some(shadow) => {
                self.came_to(Outcome::Shadow, Some((&shadow.breach, Mode::Shadow)));
                self.take_down(shadow, Mode::Shadow, &request.node, &request.rpc, now);
            }
        }
        Decision::Allow { reservation, checked: true, shadow }
    }

    fn deny(&self, request: &CheckRequest, denied_by: Denial, now: Timestamp) -> Decision {
        self.came_to(Outcome::Deny, Some((&denied_by.breach, Mode::Enforce)));
        self.metrics.denial(denied_by.heavy);
        self.denials.tell(&denied_by, &request.node, &request.rpc);
        self.take_down(&denied_by, Mode::Enforce, &request.node, &request.rpc, now);
        let retry = Retry::new(&denied_by.breach, self.jitter);
        Decision::Deny { denied_by, retry }
    }

    fn came_to(&self, outcome: Outcome, decided: Option<(&Breach, Mode)>) {
        self.metrics.decision(outcome, decided);
        trace::outcome(outcome);
    }

    fn fail(&self, error: impl Into<QuotaError>) -> QuotaError {
        self.came_to(Outcome::Error, None);
        error.into()
    }
}
