use std::sync::Arc;
use std::time::Duration;

use quota_core::{Account, Cost};
use quota_proto::v1;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use crate::payers::Payers;

/// The most sets of accounts whose shares and demand are kept. About a further one the service is asked each time.
const MAX_SETS: usize = 16_384;

/// Demand is counted in periods of so long, which is about as long as a share lasts.
const PERIOD: Duration = Duration::from_millis(500);

/// Of so many requests in a period on a share is wanted: below that, it saves nothing.
const WORTH_IT: u32 = 4;

/// Shares of requests that come again and again from the same accounts: what the service has reserved for them beforehand.
#[derive(Debug, Default)]
pub(super) struct Shares(FxHashMap<Arc<Payers>, Set>);

/// What is known of requests of the same accounts.
#[derive(Debug)]
struct Set {
    share: Option<Share>,
    demand: Demand,
    /// Since when a share is being asked for, which is over when it was answered.
    renewing: Option<Instant>,
}

/// A reservation that requests are admitted by.
#[derive(Debug)]
pub(crate) struct Share {
    /// As it was granted; opaque.
    pub(crate) token: Arc<str>,
    /// What is left of it.
    pub(crate) left: Cost,
    pub(crate) granted: Cost,
    pub(crate) began: Instant,
    pub(crate) until: Instant,
}

/// What requests of a set would have reserved, in the present period and in the one before.
#[derive(Debug)]
struct Demand {
    began: Instant,
    now: (u32, Cost),
    before: (u32, Cost),
}

/// What is to become of a request.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Of the share that it is admitted by; where there is none, the service is to be asked.
    pub(crate) token: Option<Arc<str>>,
    /// So much of a share is to be asked for, without waiting; nothing, where one is on its way or would not be worth it.
    pub(crate) wanted: Cost,
}

impl Taken {
    /// The service is to be asked, and for no share.
    pub(crate) const ASK: Self = Self { token: None, wanted: Cost::ZERO };
}

impl Demand {
    fn new(now: Instant) -> Self {
        let nothing = (0, Cost::ZERO);
        Self { began: now, now: nothing, before: nothing }
    }

    fn add(&mut self, price: Cost, now: Instant) {
        let passed = now.saturating_duration_since(self.began);
        if passed >= PERIOD {
            let nothing = (0, Cost::ZERO);
            self.before = if passed < 2 * PERIOD { self.now } else { nothing };
            (self.began, self.now) = (now, nothing);
        }
        self.now = (self.now.0.saturating_add(1), self.now.1.plus(price));
    }

    /// Twice what was wanted in a period: a share that is used up early is followed by a larger one.
    fn wanted(&self) -> Cost {
        let (count, cost) = if self.now.0 > self.before.0 { self.now } else { self.before };
        if count >= WORTH_IT { cost.plus(cost) } else { Cost::ZERO }
    }

    fn is_idle(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.began) >= 2 * PERIOD
    }
}

impl Share {
    /// The longest that one is believed to last.
    const LONGEST: Duration = Duration::from_secs(10);

    /// As it was granted to a question of this moment; none where it cannot be read.
    pub(crate) fn granted(wire: &v1::Share, asked: Instant) -> Option<Self> {
        let amounts = Cost::try_from(wire.amounts.unwrap_or_default()).ok()?;
        let lasts = quota_proto::duration(wire.lasts.as_ref()?, "lasts").ok()?.min(Self::LONGEST);
        let is_one = !wire.reservation.is_empty() && !amounts.is_zero();
        is_one.then(|| Self {
            token: wire.reservation.as_str().into(),
            left: amounts,
            granted: amounts,
            began: asked,
            until: asked + lasts,
        })
    }

    /// Whether a next one is due: half of it, or of its time, is over.
    fn is_half_over(&self, now: Instant) -> bool {
        let time = self.until.saturating_duration_since(self.began) / 2;
        let is_half_used = self
            .granted
            .amounts()
            .iter()
            .any(|(resource, granted)| self.left.amounts()[resource] <= granted / 2 && *granted > 0);
        is_half_used || now.saturating_duration_since(self.began) >= time
    }
}

impl Shares {
    /// A request of these accounts that is expected to cost so much.
    pub(super) fn take(&mut self, payers: &Arc<Payers>, price: Cost, now: Instant) -> Taken {
        // What reserves nothing is bounded by no share.
        if price.is_zero() {
            return Taken::ASK;
        }
        let Some(set) = self.0.get_mut(payers) else {
            if self.0.len() < MAX_SETS {
                let mut demand = Demand::new(now);
                demand.add(price, now);
                self.0.insert(Arc::clone(payers), Set { share: None, demand, renewing: None });
            }
            return Taken::ASK;
        };
        set.demand.add(price, now);
        let fits = |share: &&mut Share| share.until > now && price.at_most(share.left) == price;
        let share = set.share.as_mut().filter(fits).map(|share| {
            share.left = share.left.minus(price);
            &*share
        });
        // One that is on its way is enough.
        let is_renewing = set.renewing.is_some_and(|since| now.saturating_duration_since(since) < PERIOD);
        let is_due = !is_renewing && share.is_none_or(|share| share.is_half_over(now));
        let wanted = if is_due { set.demand.wanted() } else { Cost::ZERO };
        if !wanted.is_zero() {
            set.renewing = Some(now);
        }
        Taken { token: share.map(|share| Arc::clone(&share.token)), wanted }
    }

    /// The service was asked for a share, and granted this one, if any. Returns the one before, whose rest is to be given back.
    pub(super) fn granted(&mut self, payers: &Payers, share: Option<Share>) -> Option<Share> {
        let Some(set) = self.0.get_mut(payers) else { return share };
        set.renewing = None;
        share.and_then(|share| set.share.replace(share))
    }

    /// Nobody is admitted any more by the share of these accounts. Returns it, to be given back.
    pub(super) fn end(&mut self, payers: &Payers) -> Option<Share> {
        self.0.get_mut(payers)?.share.take()
    }

    /// Nobody is admitted any more by the shares of such accounts. Returns them, each with its accounts, to be given back.
    pub(super) fn end_of(&mut self, is_such: impl Fn(&Account) -> bool) -> Vec<(Arc<Payers>, Share)> {
        let of_such = self.0.iter_mut().filter(|(payers, _)| payers.accounts().iter().any(&is_such));
        of_such.filter_map(|(payers, set)| Some((Arc::clone(payers), set.share.take()?))).collect()
    }

    /// Forgets who does not ask any more. Returns the shares that have ended, each with its accounts. To be called about once a second.
    pub(super) fn sweep(&mut self, now: Instant) -> Vec<(Arc<Payers>, Share)> {
        let mut ended = Vec::new();
        self.0.retain(|payers, set| {
            if let Some(share) = set.share.take_if(|share| share.until <= now) {
                ended.push((Arc::clone(payers), share));
            }
            set.share.is_some() || !set.demand.is_idle(now)
        });
        ended
    }
}

#[cfg(test)]
mod tests;
