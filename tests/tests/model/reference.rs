//! The store that `quota-core` describes: ledgers in a map, nothing shared, nothing packed.

use std::collections::HashMap;

use quota_core::{
    Account, Cost, Ledger, PerResource, Settled, Snapshot, Tick, Timestamp, WindowLength, admit,
};
use quota_server::store::{Admitted, Limited, Report, Settlement, Snapshots};

pub(crate) struct Reference {
    ledgers: HashMap<Account, Ledger>,
    length: WindowLength,
    /// Each account is in a call of its own, as on a Cluster.
    is_spread: bool,
}

/// The ledgers of a call, brought to now.
struct Opened {
    ledgers: Vec<Ledger>,
    rebased: Vec<bool>,
    tick: Tick,
}

impl Opened {
    fn rebased(&self) -> u32 {
        self.rebased.iter().map(|&rebased| u32::from(rebased)).sum()
    }
}

impl Reference {
    pub(crate) fn new(length: WindowLength, is_spread: bool) -> Self {
        Self { ledgers: HashMap::new(), length, is_spread }
    }

    pub(crate) fn admit(&mut self, accounts: &[Limited], price: Cost, now: Timestamp) -> Admitted {
        if !self.is_spread || accounts.len() == 1 {
            return self.admit_together(accounts, price, now);
        }
        let mut admit_each = |price| {
            let one = |limited| self.admit_together(std::slice::from_ref(limited), price, now);
            whole(accounts.iter().map(one).collect(), now)
        };
        let peeked = admit_each(Cost::ZERO);
        if !peeked.allowed {
            return peeked;
        }
        let mut reserved = admit_each(price);
        reserved.snapshots.rebased += peeked.snapshots.rebased;
        reserved
    }

    /// Counts reports that arrive together: each account is brought to now once, and takes them in their order.
    pub(crate) fn settle(&mut self, reports: &[Report], now: Timestamp) -> Vec<Settlement> {
        let mut names = Vec::<&Account>::new();
        for entry in reports.iter().flat_map(|report| &report.entries) {
            if !names.contains(&&entry.account) {
                names.push(&entry.account);
            }
        }
        let mut settlements = vec![Settlement::default(); reports.len()];
        let calls: Vec<&[&Account]> =
            if self.is_spread { names.chunks(1).collect() } else { vec![&names[..]] };
        for names in calls {
            self.settle_call(names, reports, now, &mut settlements);
        }
        settlements
    }

    pub(crate) fn usage(&mut self, accounts: &[Account], now: Timestamp) -> Snapshots {
        if !self.is_spread {
            return self.usage_together(accounts, now);
        }
        let each = accounts.iter().map(|account| self.usage_together(std::slice::from_ref(account), now));
        all_snapshots(each.collect(), now)
    }

    fn admit_together(&mut self, accounts: &[Limited], price: Cost, now: Timestamp) -> Admitted {
        let names: Vec<&Account> = accounts.iter().map(|limited| &limited.account).collect();
        let mut opened = self.open(&names, now);
        let told = opened.ledgers.iter().zip(accounts).map(|(ledger, limited)| told(ledger, limited));
        let snapshots = Snapshots { now, accounts: told.collect(), rebased: opened.rebased() };
        let bounds = accounts.iter().map(|limited| limited.bounds);
        let mut compared: Vec<(&mut Ledger, PerResource<_>)> =
            opened.ledgers.iter_mut().zip(bounds).collect();
        let allowed = admit(&mut compared, price);
        let ticks = vec![opened.tick; accounts.len()];
        let written = vec![allowed && !price.is_zero(); accounts.len()];
        self.keep(&names, opened, &written);
        Admitted { allowed, ticks, snapshots }
    }

    fn settle_call(
        &mut self,
        names: &[&Account],
        reports: &[Report],
        now: Timestamp,
        settlements: &mut [Settlement],
    ) {
        let mut opened = self.open(names, now);
        let mut written = vec![false; names.len()];
        for (at, name) in names.iter().enumerate() {
            let mut rebased = u32::from(opened.rebased[at]);
            for (report, settlement) in reports.iter().zip(&mut *settlements) {
                let Some(entry) = report.entries.iter().find(|entry| entry.account == **name) else {
                    continue;
                };
                let ledger = &mut opened.ledgers[at];
                match ledger.settle(report.mark, &entry.charges, &entry.releases, now, self.length) {
                    Settled::Applied { excess_releases } => {
                        settlement.applied += 1;
                        settlement.excess_releases += excess_releases;
                        written[at] = true;
                    }
                    Settled::Duplicate => settlement.duplicates += 1,
                    Settled::TooManySources => panic!("so many sources are not in the operations"),
                }
                settlement.rebased += std::mem::take(&mut rebased);
            }
        }
        self.keep(names, opened, &written);
    }

    fn usage_together(&mut self, accounts: &[Account], now: Timestamp) -> Snapshots {
        let names: Vec<&Account> = accounts.iter().collect();
        let opened = self.open(&names, now);
        let rebased = opened.rebased();
        let accounts = opened.ledgers.iter().map(|ledger| Snapshot::Full(ledger.window().clone())).collect();
        self.keep(&names, opened, &vec![false; names.len()]);
        Snapshots { now, accounts, rebased }
    }

    fn open(&self, accounts: &[&Account], now: Timestamp) -> Opened {
        let mut ledgers: Vec<Ledger> =
            accounts.iter().map(|account| self.ledgers.get(account).cloned().unwrap_or_default()).collect();
        let tick = Ledger::now(now, self.length, &ledgers);
        let rebased = ledgers.iter_mut().map(|ledger| ledger.advance(tick)).collect();
        Opened { ledgers, rebased, tick }
    }

    /// What was only looked at stays as it was, unless the clock had stepped back.
    fn keep(&mut self, accounts: &[&Account], opened: Opened, written: &[bool]) {
        let changed = opened.rebased.iter().zip(written).map(|(&rebased, &written)| rebased || written);
        for ((account, ledger), _) in
            accounts.iter().zip(opened.ledgers).zip(changed).filter(|(_, changed)| *changed)
        {
            self.ledgers.insert((*account).clone(), ledger);
        }
    }
}

fn whole(each: Vec<Admitted>, now: Timestamp) -> Admitted {
    let allowed = each.iter().all(|admitted| admitted.allowed);
    let (ticks, snapshots): (Vec<_>, Vec<_>) =
        each.into_iter().map(|admitted| (admitted.ticks, admitted.snapshots)).unzip();
    Admitted { allowed, ticks: ticks.concat(), snapshots: all_snapshots(snapshots, now) }
}

fn all_snapshots(each: Vec<Snapshots>, now: Timestamp) -> Snapshots {
    let rebased = each.iter().map(|snapshots| snapshots.rebased).sum();
    Snapshots { now, accounts: each.into_iter().flat_map(|snapshots| snapshots.accounts).collect(), rebased }
}

fn told(ledger: &Ledger, limited: &Limited) -> Snapshot {
    let window = ledger.window();
    if limited.bounds.iter().any(|(resource, bound)| bound.breached_by(window.usage()[resource])) {
        Snapshot::Full(window.clone())
    } else {
        Snapshot::Below(*window.usage())
    }
}
