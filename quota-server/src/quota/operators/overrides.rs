use std::sync::Arc;
use std::time::Duration;

use quota_core::{Account, BUCKET_CAP, BUCKETS, Ipv6Prefix, Kind, Limit, Override, Said};
use quota_proto::{Invalid, check_label};

use super::overriding::{Overriding, text};
use super::{OverrideOrigin, OverrideStanding};
use crate::quota::{Quota, QuotaError};
use crate::store::{Heard, Saying, StoreError};

/// An account, of which something is asked or taken back.
#[derive(Clone, Debug)]
pub struct OverrideRequest {
    /// Of whom.
    pub account: Account,
    /// Who asks.
    pub author: Arc<str>,
}

/// What is to be said of an account.
#[derive(Clone, Debug)]
pub struct PutOverride {
    account: Account,
    word: Override,
    reason: Box<str>,
    lasts: Option<Duration>,
    author: Arc<str>,
}

impl OverrideRequest {
    /// From an account as a caller names it.
    pub fn new(kind: Kind, id: &str, prefix: Ipv6Prefix, author: Arc<str>) -> Result<Self, Invalid> {
        let account = Account::new(kind, id, prefix).map_err(|error| Invalid::new("id", error))?;
        Ok(Self { account, author })
    }
}

impl PutOverride {
    /// The longest time that an override may end after; for longer, it is put without an end.
    const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

    /// The same of a named account; the field `expires` holds how long.
    pub fn new(
        OverrideRequest { account, author }: OverrideRequest,
        word: Override,
        reason: &str,
        (expires, lasts): (&str, Option<Duration>),
    ) -> Result<Self, Invalid> {
        check_reason(reason)?;
        if lasts.is_some_and(|lasts| lasts.is_zero() || lasts > Self::LONGEST) {
            return Err(Invalid::new(expires, "must be more than 0 and at most 366 days"));
        }
        if let Override::Limits(limits) = &word {
            for (resource, limit) in limits.iter() {
                if matches!(limit, Some(Limit::At(amount)) if *amount > BUCKETS * BUCKET_CAP) {
                    let reason = "is more than a window can hold: unlimited is no limit";
                    return Err(Invalid::new(format!("limits.{resource}"), reason));
                }
            }
        }
        Ok(Self { account, word, reason: reason.into(), lasts, author })
    }
}

/// Refuses what gives no reason, in the field `reason`.
pub(super) fn check_reason(reason: &str) -> Result<(), Invalid> {
    if reason.trim().is_empty() {
        return Err(Invalid::new("reason", "must say why"));
    }
    check_label("reason", reason)
}

impl Quota {
    /// What operators say of accounts, by account; of two for the same one, the one that holds comes first.
    pub async fn list_overrides(&self) -> Result<Vec<OverrideStanding>, QuotaError> {
        let now = self.refresh_operators().await?;
        Ok(self.operators.in_force().listed.iter().map(|said| said.at(now)).collect())
    }

    /// What holds of an account.
    pub async fn get_override(&self, account: &Account) -> Result<OverrideStanding, QuotaError> {
        let now = self.refresh_operators().await?;
        let in_force = self.operators.in_force();
        in_force.of(account).map(|said| said.at(now)).ok_or(QuotaError::NothingSaid)
    }

    /// Says something of an account, in place of what was said before.
    pub async fn put_override(&self, request: PutOverride) -> Result<OverrideStanding, QuotaError> {
        let PutOverride { account, word, reason, lasts, author } = request;
        let (name, text) = (account.key(), text(&account, &word, &reason, &author));
        let heard = self.say(&author, Saying { name: &name, text: Some(&text), lasts }).await?;
        let Said::Done { before } = heard.said else { return Err(QuotaError::TooManyOverrides) };
        let before = before.and_then(|before| Overriding::read(&name, &before));
        self.audit_override(&author, &account, before.as_ref(), Some((&word, lasts)), &reason);
        self.learn_what_was_said().await;
        let origin = OverrideOrigin::Api;
        Ok(OverrideStanding { account, word, reason, author: (&*author).into(), origin, expires_in: lasts })
    }

    /// Takes back what was put of an account. What the configuration file says then holds.
    pub async fn delete_override(&self, request: OverrideRequest) -> Result<(), QuotaError> {
        let OverrideRequest { account, author } = request;
        let name = account.key();
        let heard = self.say(&author, Saying { name: &name, text: None, lasts: None }).await?;
        let Said::Done { before } = heard.said else { return Err(QuotaError::NothingSaid) };
        let before = before.and_then(|before| Overriding::read(&name, &before));
        self.audit_override(&author, &account, before.as_ref(), None, "");
        self.learn_what_was_said().await;
        Ok(())
    }

    /// Says it in somebody's name. An answer that is lost leaves open whether it was heard, which is on record then.
    pub(super) async fn say(&self, who: &str, saying: Saying<'_>) -> Result<Heard, StoreError> {
        self.store.say(saying).await.inspect_err(|error| {
            tracing::warn!(target: "audit", who, what = saying.name, %error, "perhaps changed");
        })
    }

    /// So that it is in force here at once. It is stored: that it cannot be read at the moment is no failure.
    pub(super) async fn learn_what_was_said(&self) {
        if let Err(error) = self.refresh_operators().await {
            tracing::warn!(%error, "what was said is stored, and not in force here before the store answers");
        }
    }
}
