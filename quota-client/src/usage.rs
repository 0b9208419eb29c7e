mod heaviest;
mod lately;

use std::collections::HashMap;

use quota_core::{
    Account, Cost, Kind, NodeReport, PerResource, Release, Resource, Tick, Timestamp, Window, WindowLength,
};
use quota_proto::v1;
use tokio::time::Instant;

use self::heaviest::{Told, heaviest_of};
use self::lately::Lately;
use crate::payers::Payers;

/// The most accounts whose usage is kept. What a further one uses is not known here until others have been idle for a
/// window.
const MAX_ACCOUNTS: usize = 16_384;

/// In buckets: the open one, and those before it.
const RECENT: Tick = NodeReport::RECENT.as_secs();

/// What accounts used on this fileserver within the last minute, as this process metered it: the limits that the service
/// sets for this fileserver are compared with it.
pub(crate) struct Usage {
    started: Instant,
    /// Each apart from the map, which has room for more than are in it.
    accounts: HashMap<Account, Box<Used>>,
    /// The last second in which something happened.
    latest: Tick,
    /// When idle accounts were last dropped.
    swept: Tick,
}

struct Used {
    /// As a request gave it, where that is another spelling: the service may group addresses otherwise.
    named: Option<Box<str>>,
    window: Window,
    /// What of the window is reserved and not spent yet, in the same buckets; none where that is nothing, as it mostly is.
    reserved: Option<Box<Window>>,
    lately: Lately,
}

impl Usage {
    pub(crate) fn new(now: Instant) -> Self {
        Self { started: now, accounts: HashMap::new(), latest: 0, swept: 0 }
    }

    /// Counts a cost that was spent just now.
    pub(crate) fn spend(&mut self, payers: &Payers, cost: Cost, now: Instant) {
        let tick = self.tick(now);
        self.each(payers, cost, tick, |used| used.spent(cost, tick));
    }

    /// A request that was admitted has ended, and has spent this last. One that spent nothing says little of what requests
    /// cost where nothing else was used.
    pub(crate) fn ended(&mut self, payers: &Payers, last: Cost, now: Instant) {
        let tick = self.tick(now);
        if last.is_zero() {
            for account in payers.accounts() {
                if let Some(used) = self.accounts.get_mut(account) {
                    used.lately.ended(tick);
                }
            }
        }
        self.each(payers, last, tick, |used| {
            used.spent(last, tick);
            used.lately.ended(tick);
        });
    }

    /// What requests of each account cost lately on average, with what was metered beside them, of the resource that it
    /// comes with: of each resource the most. Nothing where that is not known.
    pub(crate) fn dearest(&mut self, of: &[(Account, Resource)], now: Instant) -> Cost {
        let tick = self.tick(now);
        let mut dearest = PerResource::default();
        for (account, resource) in of {
            let mean = self.accounts.get_mut(account).map_or(0, |used| used.lately.mean(*resource, tick));
            dearest[*resource] = mean.max(dearest[*resource]);
        }
        Cost::saturating(dearest)
    }

    /// Reserves a price, which counts as used until it is released. Returns the second in which.
    pub(crate) fn reserve(&mut self, payers: &Payers, price: Cost, now: Instant) -> Tick {
        let tick = self.tick(now);
        self.each(payers, price, tick, |used| {
            used.window.add(tick, price);
            let reserved = used.reserved.get_or_insert_default();
            reserved.advance(tick);
            reserved.add(tick, price);
        });
        tick
    }

    /// Nothing where it is about nothing.
    fn each(&mut self, payers: &Payers, cost: Cost, tick: Tick, count: impl Fn(&mut Used)) {
        if cost.is_zero() {
            return;
        }
        for (account, id) in payers.iter() {
            if let Some(used) = self.accounts.get_mut(account) {
                used.advance(tick);
                count(used);
                continue;
            }
            if self.accounts.len() >= MAX_ACCOUNTS {
                self.drop_idle(tick);
            }
            if self.accounts.len() < MAX_ACCOUNTS {
                let mut used = Box::new(Used::new(account, id, tick));
                count(&mut used);
                self.accounts.insert(account.clone(), used);
            }
        }
    }

    /// Gives back what was reserved for accounts.
    pub(crate) fn release(&mut self, payers: &Payers, release: Release, now: Instant) {
        let tick = self.tick(now);
        for account in payers.accounts() {
            if let Some(used) = self.accounts.get_mut(account) {
                used.advance(tick);
                // An account for which there was no room when it was reserved holds less than that.
                let _ = used.window.release(release.tick, release.amounts);
                if let Some(reserved) = &mut used.reserved {
                    let _ = reserved.release(release.tick, release.amounts);
                }
            }
        }
    }

    /// What an account used, and when. Nothing of one that is not kept.
    pub(crate) fn window(&mut self, account: &Account, now: Instant) -> Window {
        let tick = self.tick(now);
        self.accounts.get_mut(account).map_or_else(Window::default, |used| {
            used.advance(tick);
            used.window.clone()
        })
    }

    /// What the accounts of a request used. One that is not kept has used nothing, unless there was no room for it.
    pub(crate) fn here(&mut self, payers: &Payers, now: Instant) -> v1::UsedHere {
        let tick = self.tick(now);
        let full = self.accounts.len() >= MAX_ACCOUNTS;
        let mut here = v1::UsedHere::default();
        for account in payers.accounts() {
            let used = match self.accounts.get_mut(account) {
                Some(used) => {
                    used.advance(tick);
                    *used.window.usage()
                }
                None if full => continue,
                None => quota_core::Usage::default(),
            };
            let amounts = wire(&used);
            match account.kind() {
                Kind::Repo => here.repo = Some(amounts),
                Kind::User => here.user = Some(amounts),
                Kind::Ip => here.ip = Some(amounts),
            }
        }
        here
    }

    /// How many accounts of each kind used something, and the heaviest of them.
    pub(crate) fn heaviest(&mut self, now: Instant) -> (v1::Active, Vec<v1::HeavyAccount>) {
        let tick = self.tick(now);
        self.drop_idle(tick);
        let mut active = v1::Active::default();
        let mut heaviest = Vec::new();
        for kind in Kind::ALL {
            let of_kind = self.accounts.iter().filter(|(account, _)| account.kind() == kind);
            let of_kind: Vec<_> = of_kind
                .map(|(account, used)| Told { account, used, recent: used.spent_lately(tick) })
                .collect();
            let count = Some(u32::try_from(of_kind.len()).unwrap_or(u32::MAX));
            match kind {
                Kind::Repo => active.repo = count,
                Kind::User => active.user = count,
                Kind::Ip => active.ip = count,
            }
            heaviest.extend(heaviest_of(&of_kind).into_iter().map(|Told { account, used, recent }| {
                v1::HeavyAccount {
                    kind: v1::Kind::from(kind).into(),
                    id: used.named.as_deref().unwrap_or(account.id()).to_owned(),
                    used: Some(wire(used.window.usage())),
                    recent: Some(wire(&recent)),
                }
            }));
        }
        (active, heaviest)
    }

    /// At most once a second, since it looks at all of them.
    fn drop_idle(&mut self, tick: Tick) {
        if self.swept < tick {
            self.swept = tick;
            self.accounts.retain(|_, used| {
                used.advance(tick);
                *used.window.usage() != quota_core::Usage::default()
            });
        }
    }

    /// The second, counted from 1.
    /// A moment that was read before another had its turn is that other's: no window goes back for it.
    fn tick(&mut self, now: Instant) -> Tick {
        self.latest = self.latest.max(WindowLength::default().tick(self.clock(now)));
        self.latest
    }

    /// The time by which seconds are counted: it began a bucket before this did.
    pub(crate) fn clock(&self, now: Instant) -> Timestamp {
        let micros = now.saturating_duration_since(self.started).as_micros();
        Timestamp::from_micros(WindowLength::default().bucket_micros())
            .after_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl Used {
    fn new(account: &Account, id: &str, tick: Tick) -> Self {
        let mut used = Self {
            named: (id != account.id()).then(|| id.into()),
            window: Window::default(),
            reserved: None,
            lately: Lately::default(),
        };
        used.advance(tick);
        used
    }

    fn spent(&mut self, cost: Cost, tick: Tick) {
        self.window.add(tick, cost);
        self.lately.spent(cost, tick);
    }

    fn advance(&mut self, tick: Tick) {
        self.window.advance(tick);
        self.reserved.take_if(|reserved| {
            reserved.advance(tick);
            *reserved.usage() == quota_core::Usage::default()
        });
    }

    /// What was spent in the last buckets; what is reserved in them is not spent.
    fn spent_lately(&self, now: Tick) -> quota_core::Usage {
        let since = (now + 1).saturating_sub(RECENT);
        let used = self.window.spent_since(since);
        let reserved = self.reserved.as_ref().map(|reserved| reserved.spent_since(since)).unwrap_or_default();
        quota_core::Usage::from_fn(|resource| used[resource].saturating_sub(reserved[resource]))
    }
}

fn wire(usage: &quota_core::Usage) -> v1::Amounts {
    let most = |amount: u64| Some(amount.min(Cost::MAX));
    v1::Amounts {
        cpu_micros: most(usage[Resource::Cpu]),
        memory_byte_seconds: most(usage[Resource::Memory].saturating_mul(1024)),
        network_bytes: most(usage[Resource::Network]),
    }
}

#[cfg(test)]
mod tests;
