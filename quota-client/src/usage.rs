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
    accounts: HashMap<Account, Used>,
    /// When idle accounts were last dropped.
    swept: Tick,
}

struct Used {
    /// As a request gave it: the service may group addresses otherwise.
    id: String,
    window: Window,
    /// What of the window is reserved and not spent yet, in the same buckets.
    reserved: Window,
    lately: Lately,
}

impl Usage {
    pub(crate) fn new(now: Instant) -> Self {
        Self { started: now, accounts: HashMap::new(), swept: 0 }
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
            used.reserved.add(tick, price);
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
                let mut used = Used::new(id, tick);
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
                let _ = used.reserved.release(release.tick, release.amounts);
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
            let of_kind: Vec<_> =
                of_kind.map(|(_, used)| Told { used, recent: used.spent_lately(tick) }).collect();
            let count = Some(u32::try_from(of_kind.len()).unwrap_or(u32::MAX));
            match kind {
                Kind::Repo => active.repo = count,
                Kind::User => active.user = count,
                Kind::Ip => active.ip = count,
            }
            heaviest.extend(heaviest_of(&of_kind).into_iter().map(|Told { used, recent }| {
                v1::HeavyAccount {
                    kind: v1::Kind::from(kind).into(),
                    id: used.id.clone(),
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
    fn tick(&self, now: Instant) -> Tick {
        WindowLength::default().tick(self.clock(now))
    }

    /// The time by which seconds are counted: it began a bucket before this did.
    pub(crate) fn clock(&self, now: Instant) -> Timestamp {
        let micros = now.saturating_duration_since(self.started).as_micros();
        Timestamp::from_micros(WindowLength::default().bucket_micros())
            .after_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl Used {
    fn new(id: &str, tick: Tick) -> Self {
        let mut used = Self {
            id: id.to_owned(),
            window: Window::default(),
            reserved: Window::default(),
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
        self.reserved.advance(tick);
    }

    /// What was spent in the last buckets; what is reserved in them is not spent.
    fn spent_lately(&self, now: Tick) -> quota_core::Usage {
        let since = (now + 1).saturating_sub(RECENT);
        let (used, reserved) = (self.window.spent_since(since), self.reserved.spent_since(since));
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
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;
    use crate::payers::tests::{payers, user};

    fn cpu(micros: u64) -> Cost {
        Cost::ZERO.with_cpu_micros(micros).unwrap()
    }

    fn used(usage: &mut Usage, name: &str, now: Instant) -> Option<u64> {
        usage.here(&user(name), now).user.and_then(|amounts| amounts.cpu_micros)
    }

    #[test]
    fn what_was_used_leaves_after_a_minute() {
        let start = Instant::now();
        let mut usage = Usage::new(start);
        usage.spend(&user("alice"), cpu(5), start);
        usage.spend(&user("alice"), cpu(7), start + Duration::from_secs(30));
        let at = |usage: &mut Usage, seconds| used(usage, "alice", start + Duration::from_secs(seconds));
        assert_eq!(
            [at(&mut usage, 31), at(&mut usage, 60), at(&mut usage, 90)],
            [Some(12), Some(7), Some(0)]
        );
        let (active, heaviest) = usage.heaviest(start + Duration::from_secs(91));
        assert_eq!((active.user, heaviest.len()), (Some(0), 0));
    }

    #[test]
    fn the_heaviest_of_each_kind_are_told_and_all_are_counted() {
        let now = Instant::now();
        let mut usage = Usage::new(now);
        for number in 1..=60 {
            let accounts = payers([(Kind::Repo, "r"), (Kind::User, &number.to_string())]);
            usage.spend(&accounts, cpu(number), now);
        }
        let (active, heaviest) = usage.heaviest(now);
        assert_eq!((active.repo, active.user, active.ip), (Some(1), Some(60), Some(0)));
        let told: Vec<_> = heaviest
            .iter()
            .map(|heavy| (heavy.id.as_str(), heavy.used.unwrap().cpu_micros.unwrap()))
            .collect();
        assert_eq!((told.len(), told[0], told[1], told[50]), (51, ("r", 1830), ("60", 60), ("11", 11)));
    }

    #[test]
    fn the_heaviest_of_one_resource_crowd_out_none_of_another() {
        let now = Instant::now();
        let mut usage = Usage::new(now);
        for number in 1..=100 {
            usage.spend(&user(&format!("cpu-{number}")), cpu(1000 + number), now);
            let network = cpu(1).with_network_bytes(number).unwrap();
            usage.spend(&user(&format!("network-{number}")), network, now);
        }
        let all = cpu(5000).with_memory_byte_seconds(1 << 20).unwrap().with_network_bytes(5).unwrap();
        usage.spend(&user("all"), all, now);
        let memory = Cost::ZERO.with_memory_byte_seconds(2048).unwrap();
        usage.spend(&user("memory"), memory, now);
        let (_, heaviest) = usage.heaviest(now);
        let told: Vec<_> = heaviest.iter().map(|heavy| heavy.id.as_str()).collect();
        let first = ["all", "memory", "network-100", "cpu-100", "network-99", "cpu-99"];
        assert_eq!((told.len(), &told[..6]), (50, &first[..]));
        let memory = heaviest[1].used.unwrap();
        assert_eq!((memory.cpu_micros, memory.memory_byte_seconds), (Some(0), Some(2048)));
        let distinct: HashSet<_> = told.iter().collect();
        assert_eq!(distinct.len(), 50, "each is named once");
    }

    #[test]
    fn what_was_spent_in_the_last_ten_seconds_is_told_apart_and_what_is_reserved_is_not_spent() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut usage = Usage::new(start);
        let told = |usage: &mut Usage, seconds| {
            let (_, heaviest) = usage.heaviest(at(seconds));
            let amounts = |told: Option<v1::Amounts>| told.unwrap().cpu_micros.unwrap();
            (amounts(heaviest[0].used), amounts(heaviest[0].recent))
        };
        let alice = user("alice");
        usage.spend(&alice, cpu(1), start);
        usage.spend(&alice, cpu(10), at(1));
        assert_eq!(
            [told(&mut usage, 9), told(&mut usage, 10), told(&mut usage, 11)],
            [(11, 11), (11, 10), (11, 0)]
        );
        let tick = usage.reserve(&alice, cpu(100), at(12));
        usage.spend(&alice, cpu(40), at(13));
        assert_eq!(told(&mut usage, 13), (151, 40));
        usage.release(&alice, Release { tick, amounts: cpu(40) }, at(14));
        assert_eq!(told(&mut usage, 14), (111, 40));
        usage.release(&alice, Release { tick, amounts: cpu(60) }, at(15));
        assert_eq!(told(&mut usage, 15), (51, 40));
    }

    #[test]
    fn the_dearest_is_told_of_each_resource_that_is_asked_about() {
        let now = Instant::now();
        let mut usage = Usage::new(now);
        for (name, micros, bytes) in [("alice", 100, 7), ("bob", 30, 9)] {
            for _ in 0..3 {
                usage.spend(&user(name), cpu(micros), now);
                usage.ended(&user(name), Cost::ZERO.with_network_bytes(bytes).unwrap(), now);
            }
        }
        let [alice, bob, nobody] = ["alice", "bob", "nobody"].map(|name| user(name).accounts()[0].clone());
        let mut dearest = |of: &[(&Account, Resource)]| {
            let of: Vec<_> = of.iter().map(|(account, resource)| ((*account).clone(), *resource)).collect();
            usage.dearest(&of, now)
        };
        let both = [(&alice, Resource::Cpu), (&bob, Resource::Cpu), (&bob, Resource::Network)];
        assert_eq!(dearest(&both), cpu(100).with_network_bytes(9).unwrap());
        assert_eq!(dearest(&[(&bob, Resource::Cpu), (&nobody, Resource::Network)]), cpu(30));
        assert_eq!(dearest(&[]), Cost::ZERO);
    }

    #[test]
    fn who_has_just_begun_is_told_beside_those_that_used_more_in_the_minute() {
        let start = Instant::now();
        let mut usage = Usage::new(start);
        for number in 0..100 {
            usage.spend(&user(&format!("old-{number}")), cpu(1000 + number), start);
        }
        let later = start + Duration::from_secs(30);
        for number in 1..=100 {
            usage.spend(&user(&format!("new-{number}")), cpu(number), later);
        }
        let (_, heaviest) = usage.heaviest(later);
        let told: Vec<_> = heaviest.iter().map(|heavy| heavy.id.as_str()).collect();
        assert_eq!((told.len(), &told[..4]), (50, &["old-99", "new-100", "old-98", "new-99"][..]));
    }

    #[test]
    fn accounts_are_bounded_and_what_is_not_kept_is_not_known() {
        let now = Instant::now();
        let mut usage = Usage::new(now);
        for number in 0..MAX_ACCOUNTS + 10 {
            usage.spend(&user(&number.to_string()), cpu(1), now);
        }
        assert_eq!(usage.accounts.len(), MAX_ACCOUNTS);
        assert_eq!(used(&mut usage, "3", now), Some(1));
        assert_eq!(used(&mut usage, "somebody else", now), None);
        let later = now + Duration::from_secs(61);
        usage.spend(&user("newcomer"), cpu(3), later);
        assert_eq!((usage.accounts.len(), used(&mut usage, "newcomer", later)), (1, Some(3)));
    }

    #[test]
    fn spellings_of_one_account_are_one() {
        let now = Instant::now();
        let mut usage = Usage::new(now);
        let repo = |id| payers([(Kind::Repo, id)]);
        usage.spend(&repo("group//project.git"), cpu(5), now);
        assert_eq!(usage.here(&repo("/group/project"), now).repo.unwrap().cpu_micros, Some(5));
    }
}
