//! What fileservers may charge: no more than their machines can have spent. A credential that is stolen locks out few accounts
//! then, and a client that counts wrong does little harm.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quota_core::{Allowance, Cost, Limit, Mark, PerResource, Resource, WindowLength};

use super::{Quota, QuotaError, ReportRequest};
use crate::auth::{Caller, Nodes};
use crate::metrics::Beyond;
use crate::places::{Place, Places};
use crate::store::{Cause, StoreError};

/// The most callers that are kept while nothing is missing of what they may charge: as many as a configuration knows.
const MOST_IDLE: usize = 2000;

/// The most reports of a fileserver that are on their way to the store at a time: one process sends one after the other. The largest of them go in
/// one flush with those of others.
const MOST_REPORTS: usize = 4;

/// The most reports of a caller that are known to have been taken for: those that may be sent again. A source has one at a time.
const MOST_PAID: usize = 64;

/// A report that was taken for: its mark, and a digest of what it charges to whom, so that another under the same mark is not it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paid {
    pub(super) mark: Mark,
    pub(super) charges: u64,
}

/// What is left of what each fileserver may charge, and reserve, within a window.
pub struct Allowances {
    started: Instant,
    /// Digests of this process alone, so that nobody makes two reports of one.
    digests: RandomState,
    of_callers: Mutex<HashMap<Arc<str>, OfCaller>>,
    reports: Places<Arc<str>>,
}

#[derive(Default)]
struct OfCaller {
    charged: Allowance,
    /// A price is charged once more when it is settled, so that it counts apart.
    reserved: Allowance,
    /// Reports that were taken for and failed, so that it is not known on which accounts they count. Sent again, they are not taken for
    /// again; and whoever has them fail on purpose has nothing back.
    paid: VecDeque<Paid>,
    /// When was last said that it is beyond.
    told: Option<Duration>,
}

impl Default for Allowances {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            digests: RandomState::new(),
            of_callers: Mutex::default(),
            reports: Places::default(),
        }
    }
}

impl Allowances {
    fn take(
        &self,
        caller: &Arc<str>,
        of: Beyond,
        most: &PerResource<Limit>,
        window: WindowLength,
        cost: Cost,
    ) -> Result<(), Lacking> {
        let now = self.started.elapsed();
        let mut of_callers = self.of_callers.lock();
        if of_callers.len() > MOST_IDLE && !of_callers.contains_key(caller) {
            of_callers.retain(|_, known| !known.is_idle(now, window));
        }
        let known = of_callers.entry(Arc::clone(caller)).or_default();
        known.of(of).take(now, most, window, cost).map_err(|resource| {
            let is_news = known.told.is_none_or(|told| now.saturating_sub(told) >= window.length());
            if is_news {
                known.told = Some(now);
            }
            Lacking { resource, is_news }
        })
    }

    fn is_paid(&self, caller: &str, report: &Paid) -> bool {
        self.of_callers.lock().get(caller).is_some_and(|known| known.paid.contains(report))
    }

    fn remember_paid(&self, caller: &str, report: &Paid, is_paid: bool) {
        if let Some(known) = self.of_callers.lock().get_mut(caller) {
            known.paid.retain(|paid| paid != report);
            if is_paid {
                known.paid.truncate(MOST_PAID - 1);
                known.paid.push_front(*report);
            }
        }
    }

    fn give_back(&self, caller: &str, of: Beyond, window: WindowLength, cost: Cost) {
        if let Some(known) = self.of_callers.lock().get_mut(caller) {
            known.of(of).give_back(window, cost);
        }
    }
}

/// There is too little of a resource.
struct Lacking {
    resource: Resource,
    /// It was not said within a window.
    is_news: bool,
}

impl OfCaller {
    const fn of(&mut self, of: Beyond) -> &mut Allowance {
        match of {
            Beyond::Report => &mut self.charged,
            Beyond::Check => &mut self.reserved,
        }
    }

    fn is_idle(&self, now: Duration, window: WindowLength) -> bool {
        self.charged.is_full(now, window) && self.reserved.is_full(now, window)
    }
}

impl Quota {
    /// Takes a cost from what a fileserver may charge or reserve; the error names the resource of which there is too little.
    /// Who may speak for all nodes may charge what he likes.
    pub(super) fn spend(&self, caller: &Caller, of: Beyond, cost: Cost) -> Result<(), Resource> {
        let Nodes::Named(nodes) = &caller.nodes else { return Ok(()) };
        let machines = nodes.len().max(1) as u64;
        let most = self.settings().charges.map(|most| match most {
            Limit::At(most) => Limit::At(most.saturating_mul(machines)),
            Limit::Unlimited => Limit::Unlimited,
        });
        let taken = self.allowances.take(&caller.name, of, &most, self.window, cost);
        taken.map_err(|Lacking { resource, is_news }| {
            self.metrics.beyond(of);
            if is_news {
                tracing::warn!(
                    caller = &*caller.name,
                    %resource,
                    what = of.as_str(),
                    "it charges more than its nodes can have spent (charges.*): that is not counted"
                );
            }
            resource
        })
    }

    /// A place for a report of a fileserver on its way to the store.
    pub(super) fn enter_report(&self, caller: &Caller) -> Result<Option<Place<Arc<str>>>, QuotaError> {
        let Nodes::Named(nodes) = &caller.nodes else { return Ok(None) };
        let most = MOST_REPORTS * nodes.len().max(1);
        let place = self.allowances.reports.take(Arc::clone(&caller.name), most);
        let refused = || {
            StoreError::Refused(format!("{most} reports of {} are on their way", caller.name), Cause::Busy)
        };
        Ok(Some(place.ok_or_else(refused)?))
    }

    /// What a report is known by when it is sent again, which changes nothing but how long it was held.
    pub(super) fn paid_as(&self, request: &ReportRequest) -> Option<Paid> {
        let mark = request.mark?;
        let mut digest = self.allowances.digests.build_hasher();
        for charge in &request.charges {
            (charge.accounts.as_slice(), charge.cost.amounts(), charge.age).hash(&mut digest);
        }
        Some(Paid { mark, charges: digest.finish() })
    }

    /// Takes what a report comes to, unless that was done when it was sent before. Whether it was taken now.
    pub(super) fn pay(&self, caller: &Caller, report: Option<&Paid>, cost: Cost) -> Result<bool, Resource> {
        if report.is_some_and(|report| self.allowances.is_paid(&caller.name, report)) {
            return Ok(false);
        }
        self.spend(caller, Beyond::Report, cost).map(|()| true)
    }

    /// Remembers a report that failed, or forgets one that did not.
    pub(super) fn remember_paid(&self, caller: &Caller, report: Option<&Paid>, has_failed: bool) {
        if let Some(report) = report {
            self.allowances.remember_paid(&caller.name, report, has_failed);
        }
    }

    /// What was taken was not counted, or is given back.
    pub(super) fn unspend(&self, caller: &Caller, of: Beyond, cost: Cost) {
        self.allowances.give_back(&caller.name, of, self.window, cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_idle_is_forgotten_and_who_is_not_is_not() {
        let allowances = Allowances::default();
        let window = WindowLength::default();
        let most = PerResource::from_fn(|_| Limit::At(100));
        let take = |name: String, amount| {
            let cost = Cost::ZERO.with_cpu_micros(amount).unwrap();
            allowances.take(&name.into(), Beyond::Report, &most, window, cost)
        };
        assert!(take("busy".to_owned(), 100).is_ok());
        for number in 0..3 * MOST_IDLE {
            assert!(take(number.to_string(), 0).is_ok());
        }
        assert!(allowances.of_callers.lock().len() <= MOST_IDLE + 1);
        let [first, second] = [(); 2].map(|()| take("busy".to_owned(), 1).unwrap_err());
        assert_eq!((first.resource, first.is_news, second.is_news), (Resource::Cpu, true, false));
        allowances.give_back("busy", Beyond::Report, window, Cost::ZERO.with_cpu_micros(1).unwrap());
        assert!(take("busy".to_owned(), 1).is_ok());
    }
}
