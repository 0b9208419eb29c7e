use std::collections::{HashMap, HashSet};

use quota_core::{Account, Cost, Kind, NodeReport, Release, Resource, Tick, Timestamp, Window, WindowLength};
use quota_proto::v1;
use tokio::time::Instant;

use crate::payers::Payers;

/// The most accounts whose usage is kept. What a further one uses is not known here until others have been idle for a
/// window.
const MAX_ACCOUNTS: usize = 16_384;

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
}

impl Usage {
    pub(crate) fn new(now: Instant) -> Self {
        Self { started: now, accounts: HashMap::new(), swept: 0 }
    }

    /// Counts a cost that was spent just now. Returns the second in which.
    pub(crate) fn add(&mut self, payers: &Payers, cost: Cost, now: Instant) -> Tick {
        let tick = self.tick(now);
        if cost.is_zero() {
            return tick;
        }
        for (account, id) in payers.iter() {
            if let Some(used) = self.accounts.get_mut(account) {
                used.window.advance(tick);
                used.window.add(tick, cost);
                continue;
            }
            if self.accounts.len() >= MAX_ACCOUNTS {
                self.drop_idle(tick);
            }
            if self.accounts.len() < MAX_ACCOUNTS {
                let mut window = Window::default();
                window.advance(tick);
                window.add(tick, cost);
                self.accounts.insert(account.clone(), Used { id: id.to_owned(), window });
            }
        }
        tick
    }

    /// Gives back what was reserved for accounts.
    pub(crate) fn release(&mut self, payers: &Payers, release: Release, now: Instant) {
        let tick = self.tick(now);
        for account in payers.accounts() {
            if let Some(used) = self.accounts.get_mut(account) {
                used.window.advance(tick);
                // An account for which there was no room when it was reserved holds less than that.
                let _ = used.window.release(release.tick, release.amounts);
            }
        }
    }

    /// What an account used, and when. Nothing of one that is not kept.
    pub(crate) fn window(&mut self, account: &Account, now: Instant) -> Window {
        let tick = self.tick(now);
        self.accounts.get_mut(account).map_or_else(Window::default, |used| {
            used.window.advance(tick);
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
                    used.window.advance(tick);
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
        self.drop_idle(self.tick(now));
        let mut active = v1::Active::default();
        let mut heaviest = Vec::new();
        for kind in Kind::ALL {
            let of_kind = self.accounts.iter().filter(|(account, _)| account.kind() == kind);
            let of_kind: Vec<&Used> = of_kind.map(|(_, used)| used).collect();
            let count = Some(u32::try_from(of_kind.len()).unwrap_or(u32::MAX));
            match kind {
                Kind::Repo => active.repo = count,
                Kind::User => active.user = count,
                Kind::Ip => active.ip = count,
            }
            let of_kind = heaviest_of(of_kind);
            heaviest.extend(of_kind.into_iter().map(|used| v1::HeavyAccount {
                kind: v1::Kind::from(kind).into(),
                id: used.id.clone(),
                used: Some(wire(used.window.usage())),
            }));
        }
        (active, heaviest)
    }

    /// At most once a second, since it looks at all of them.
    fn drop_idle(&mut self, tick: Tick) {
        if self.swept < tick {
            self.swept = tick;
            self.accounts.retain(|_, used| {
                used.window.advance(tick);
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

/// The heaviest of one kind, at most as many as a report may name: the heaviest of each resource in turn, so that none of
/// CPU crowds out one of memory or network.
fn heaviest_of(used: Vec<&Used>) -> Vec<&Used> {
    let mut ranks = Resource::ALL.map(|resource| heaviest_in(resource, used.clone()).into_iter());
    let (mut heaviest, mut named) = (Vec::new(), HashSet::new());
    loop {
        let before = heaviest.len();
        for rank in &mut ranks {
            if heaviest.len() < NodeReport::MAX_HEAVIEST {
                heaviest.extend(rank.find(|used| named.insert(used.id.as_str())));
            }
        }
        if heaviest.len() == before {
            return heaviest;
        }
    }
}

/// Those that used any of it, the heaviest first.
fn heaviest_in(resource: Resource, mut used: Vec<&Used>) -> Vec<&Used> {
    used.retain(|used| used.window.usage()[resource] > 0);
    let weight = |used: &&Used| std::cmp::Reverse(used.window.usage()[resource]);
    if used.len() > NodeReport::MAX_HEAVIEST {
        // Of thousands only these are put in order.
        used.select_nth_unstable_by_key(NodeReport::MAX_HEAVIEST, weight);
        used.truncate(NodeReport::MAX_HEAVIEST);
    }
    used.sort_unstable_by_key(weight);
    used
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
    use std::time::Duration;

    use super::*;
    use crate::payers::tests::user;

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
        usage.add(&user("alice"), cpu(5), start);
        usage.add(&user("alice"), cpu(7), start + Duration::from_secs(30));
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
            let named =
                v1::Accounts { repo: Some("r".to_owned()), ..user(&number.to_string()).named().clone() };
            let (accounts, _) = Payers::new(named);
            usage.add(&accounts, cpu(number), now);
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
            usage.add(&user(&format!("cpu-{number}")), cpu(1000 + number), now);
            let network = cpu(1).with_network_bytes(number).unwrap();
            usage.add(&user(&format!("network-{number}")), network, now);
        }
        let all = cpu(5000).with_memory_byte_seconds(1 << 20).unwrap().with_network_bytes(5).unwrap();
        usage.add(&user("all"), all, now);
        let memory = Cost::ZERO.with_memory_byte_seconds(2048).unwrap();
        usage.add(&user("memory"), memory, now);
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
    fn accounts_are_bounded_and_what_is_not_kept_is_not_known() {
        let now = Instant::now();
        let mut usage = Usage::new(now);
        for number in 0..MAX_ACCOUNTS + 10 {
            usage.add(&user(&number.to_string()), cpu(1), now);
        }
        assert_eq!(usage.accounts.len(), MAX_ACCOUNTS);
        assert_eq!(used(&mut usage, "3", now), Some(1));
        assert_eq!(used(&mut usage, "somebody else", now), None);
        let later = now + Duration::from_secs(61);
        usage.add(&user("newcomer"), cpu(3), later);
        assert_eq!((usage.accounts.len(), used(&mut usage, "newcomer", later)), (1, Some(3)));
    }

    #[test]
    fn spellings_of_one_account_are_one() {
        let now = Instant::now();
        let mut usage = Usage::new(now);
        let repo =
            |id: &str| Payers::new(v1::Accounts { repo: Some(id.to_owned()), ..v1::Accounts::default() }).0;
        usage.add(&repo("group//project.git"), cpu(5), now);
        assert_eq!(usage.here(&repo("/group/project"), now).repo.unwrap().cpu_micros, Some(5));
    }
}
