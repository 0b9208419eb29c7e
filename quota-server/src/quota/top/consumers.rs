use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quota_core::{
    Account, Cost, Heaviest, Kind, Lately, PerKind, PerResource, Resource, Slices, WindowLength,
};

use super::summary::Summary;

/// Slices of a window.
const SLICES: u64 = 6;

/// What is held of usage, of each kind and resource: in the open slice 4,096 accounts at the most, of each one before it
/// the heaviest 512. Of 1,000,000 accounts by Zipf's law the hundredth heaviest has 0.07 % of all usage, and what is missed
/// of an account is at most 0.05 %.
const USED: Slices = Slices { before: SLICES, open: 2048, closed: 512 };

/// What is held of denials.
const DENIED: Slices = Slices { before: SLICES, open: 1024, closed: 512 };

/// Who consumed how much lately, and was denied how often, by what this server was told. Bounded, whoever is named.
///
/// It finds the heaviest; how much they used is the store's to say.
pub(crate) struct Consumers {
    started: Instant,
    slice: Duration,
    used: PerKind<Mutex<PerResource<Lately<Arc<Account>>>>>,
    denied: Mutex<Lately<Arc<Account>>>,
}

impl Consumers {
    /// Nobody yet.
    pub(crate) fn new(window: WindowLength) -> Self {
        Self {
            started: Instant::now(),
            slice: window.length() / SLICES as u32,
            used: PerKind::from_fn(|_| Mutex::new(PerResource::from_fn(|_| Lately::new(USED)))),
            denied: Mutex::new(Lately::new(DENIED)),
        }
    }

    /// The number of the present slice.
    fn slice(&self) -> u64 {
        (self.started.elapsed().as_nanos() / self.slice.as_nanos()) as u64
    }

    pub(in crate::quota) fn spent(&self, account: &Account, cost: Cost) {
        let slice = self.slice();
        // One name for all resources, made where it is new to one.
        let mut owned: Option<Arc<Account>> = None;
        let mut used = self.used[account.kind()].lock();
        for resource in Resource::ALL {
            let own = || Arc::clone(owned.get_or_insert_with(|| Arc::new(account.clone())));
            used[resource].add(slice, account, cost.amounts()[resource], (), own);
        }
    }

    pub(in crate::quota) fn denied(&self, account: &Account) {
        self.denied.lock().add(self.slice(), account, 1, (), || Arc::new(account.clone()));
    }

    /// Who used most of a resource within a window.
    pub(super) fn heaviest(&self, kind: Kind, resource: Resource) -> Heaviest<Arc<Account>> {
        self.used[kind].lock()[resource].sum(self.slice())
    }

    /// Who was denied how often within a window.
    pub(super) fn denials(&self) -> Heaviest<Arc<Account>> {
        self.denied.lock().sum(self.slice())
    }

    /// What other servers are told.
    pub(super) fn summary(&self) -> Summary {
        let used = PerKind::from_fn(|kind| PerResource::from_fn(|resource| self.heaviest(kind, resource)));
        Summary::new(&used, &self.denials())
    }
}
