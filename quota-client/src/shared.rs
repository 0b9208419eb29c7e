use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{io, mem};

use parking_lot::Mutex;
use quota_core::Cost;
use quota_proto::{Invalid, v1};
use slab::Slab;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout};

use crate::cgroup::{Metered, RequestCgroup, RequestCgroups};
use crate::classes::Classes;
use crate::client::Options;
use crate::concurrency::Limits;
use crate::local::{Hold, Local, Share, Stale};
use crate::metrics::Metrics;
use crate::outage::Outage;
use crate::payers::Payers;
use crate::pending::{Pending, Release, Spent};
use crate::pool::Pool;
use crate::pressure::{Sample, processors};
use crate::process::{Family, Process};
use crate::refusals::Refusals;
use crate::request::Sound;
use crate::session::Line;
use crate::shed::SheddingSettings;
use crate::usage::Usage;
use crate::work::{Reservation, Work};
use crate::{Client, Stats};

/// What the clones of a client, its work and its background task have in common. No lock is held across an await,
/// nor while another is taken.
pub(crate) struct Shared {
    pub(crate) settings: Options,
    pub(crate) pool: Pool,
    /// By which reports and pressure go while a session is open.
    pub(crate) line: Line,
    pub(crate) pending: Mutex<Pending>,
    /// What accounts used on this fileserver.
    pub(crate) usage: Mutex<Usage>,
    /// How loaded the machine is: a new sample each second, none before the first.
    pub(crate) pressure: watch::Sender<Option<Arc<Sample>>>,
    /// How many requests may run at once.
    pub(crate) limits: Limits,
    /// What is held of classes of traffic.
    pub(crate) classes: Classes,
    /// What is said of those that may not.
    pub(crate) refusals_told: Refusals,
    /// When requests in flight are ended.
    pub(crate) shedding: SheddingSettings,
    pub(crate) request_cgroups: Option<RequestCgroups>,
    pub(crate) metrics: Metrics,
    /// What is known here of limits and refusals.
    pub(crate) local: Mutex<Local>,
    /// There are charges to report.
    pub(crate) collected: Notify,
    /// A report is acknowledged or given up.
    pub(crate) landed: Notify,
    stats: Mutex<Stats>,
    checks: Outage,
    refusals: Outage,
    told_of_invalid: AtomicBool,
    told_of_no_account: AtomicBool,
    told_of_clamped: AtomicBool,
    told_of_weight: AtomicBool,
    /// Held once by each cgroup that yields the CPU.
    pub(crate) yielding: Arc<()>,
    /// How many the machine has, for bounds on what they can have done.
    pub(crate) processors: u32,
    live: Mutex<Slab<Weak<Work>>>,
    /// The cgroups of requests, and the work that each counts for: which lives, and this client with it, until the request
    /// is over and nobody is in its cgroup.
    cgroups: Arc<Mutex<Vec<Metered>>>,
    /// One at a time samples, lest what a slow one read be taken for news after that of a later one, and collects, so
    /// that who collects at the end finds no work that another still holds.
    collecting: Arc<Semaphore>,
}

impl Shared {
    pub(crate) fn new(
        settings: Options,
        pool: Pool,
        limits: Limits,
        shedding: SheddingSettings,
        request_cgroups: Option<RequestCgroups>,
    ) -> Self {
        Self {
            metrics: Metrics::new(&limits),
            limits,
            refusals_told: Refusals::default(),
            shedding,
            request_cgroups,
            classes: Classes::new(&settings.node),
            settings,
            pool,
            line: Line::default(),
            pending: Mutex::default(),
            usage: Mutex::new(Usage::new(Instant::now())),
            pressure: watch::Sender::new(None),
            local: Mutex::default(),
            collected: Notify::new(),
            landed: Notify::new(),
            stats: Mutex::default(),
            checks: Outage::default(),
            refusals: Outage::default(),
            told_of_invalid: AtomicBool::new(false),
            told_of_no_account: AtomicBool::new(false),
            told_of_clamped: AtomicBool::new(false),
            told_of_weight: AtomicBool::new(false),
            yielding: Arc::default(),
            processors: processors(),
            live: Mutex::default(),
            cgroups: Arc::default(),
            collecting: Arc::new(Semaphore::new(1)),
        }
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Stats)) {
        change(&mut self.stats.lock());
    }

    pub(crate) fn stats(&self) -> Stats {
        let (pending, lost) = {
            let mut pending = self.pending.lock();
            (pending.len() as u64, pending.take_lost())
        };
        let mut stats = self.stats.lock();
        stats.charges_lost += lost;
        Stats { charges_pending: pending, ..*stats }
    }

    /// The service checks. Returns whether it may not know yet what was used here while it was away.
    pub(crate) fn is_back(&self, now: Instant) -> bool {
        // The one lock is not held while the other is taken.
        let is_known = self.local.lock().is_known();
        !is_known && {
            let is_reported = self.pending.lock().is_drained();
            self.local.lock().checked(now, self.settings.report_interval, is_reported)
        }
    }

    /// The service has answered a check.
    pub(crate) fn checked(&self, now: Instant, change: impl FnOnce(&mut Stats)) {
        self.count(change);
        if let Some(over) = self.refusals.worked(now) {
            tracing::info!(
                lasted = ?over.lasted, refused = over.failures,
                "the quota service can check again: requests are refused no more for want of it"
            );
        }
        if let Some(over) = self.checks.worked(now) {
            tracing::info!(
                lasted = ?over.lasted, unchecked = over.failures,
                "the quota service answers again: requests are checked"
            );
        }
    }

    /// A request is decided on without an answer.
    pub(crate) fn unchecked(&self, reason: &str, now: Instant, change: impl FnOnce(&mut Stats)) {
        self.count(change);
        if self.checks.failed(now) {
            tracing::warn!(
                reason,
                "the quota service does not check: its last known limits are enforced on what is used here"
            );
        }
    }

    /// A request is refused, since the service cannot check.
    pub(crate) fn refused_unavailable(&self) {
        self.count(|stats| stats.refused_unavailable += 1);
        if self.refusals.failed(Instant::now()) {
            tracing::warn!("the quota service cannot check, and is set to refuse: requests are refused");
        }
    }

    /// A request has names that the service would not take. Told once a process: whoever sends one sends many.
    pub(crate) fn invalid(&self, faults: &[Invalid]) {
        self.count(|stats| stats.invalid += 1);
        if !self.told_of_invalid.swap(true, Ordering::Relaxed) {
            let faults: Vec<_> = faults.iter().map(Invalid::to_string).collect();
            let faults = faults.join(", ");
            tracing::warn!(faults, "names are left out of a request; further ones are only counted");
        }
    }

    /// A request names nobody whom the service would take. Told once a process.
    pub(crate) fn without_account(&self) {
        self.count(|stats| stats.without_account += 1);
        if !self.told_of_no_account.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "a request without an account is neither checked nor charged; further ones are only counted"
            );
        }
    }

    /// What the kernel counted was more than can be. Told once a process.
    pub(crate) fn cost_clamped(&self, excess: Duration) {
        self.count(|stats| stats.cost_clamped += 1);
        if !self.told_of_clamped.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                ?excess,
                "more CPU time was counted than has passed; further times are only counted"
            );
        }
    }

    /// The weight of a request's cgroup cannot be set. Told once a process; it is tried again.
    pub(crate) fn cannot_yield(&self, error: &io::Error) {
        if !self.told_of_weight.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "the CPU weight of a request's cgroup cannot be set; others are not told of");
        }
    }

    /// How many cgroups of requests yield the CPU.
    pub(crate) fn yielding(&self) -> usize {
        Arc::strong_count(&self.yielding) - 1
    }

    /// Begins to meter a piece of work.
    pub(crate) fn begin(
        &self,
        client: Client,
        request: &Sound<'_>,
        admitted: bool,
        now: Instant,
        reservation: Option<Reservation>,
        hold: Option<Hold>,
    ) -> Arc<Work> {
        let mut live = self.live.lock();
        let place = live.vacant_entry();
        let work =
            Arc::new(Work::new(place.key(), client, request, admitted, now.into_std(), reservation, hold));
        place.insert(Arc::downgrade(&work));
        work
    }

    /// The work that is metered now.
    pub(crate) fn live(&self) -> Vec<Arc<Work>> {
        self.live.lock().iter().filter_map(|(_, work)| work.upgrade()).collect()
    }

    /// A piece of work has ended, with this to be charged; a request of its own, where it was `admitted`.
    pub(crate) fn work_ended(&self, id: usize, last: Spent, admitted: bool) {
        self.live.lock().try_remove(id);
        self.spend(last, admitted, Instant::now());
    }

    fn spend(&self, mut spent: Spent, ends: bool, now: Instant) {
        {
            let mut usage = self.usage.lock();
            if let Some(release) = spent.here.take() {
                usage.release(&spent.payers, release, now);
            }
            if ends {
                usage.ended(&spent.payers, spent.cost, now);
            } else {
                usage.spend(&spent.payers, spent.cost, now);
            }
        }
        if !spent.cost.is_zero() || spent.release.is_some() || spent.finished.is_some() {
            self.pending.lock().add(spent, now);
        }
    }

    /// Gives the service back what is left of a share.
    pub(crate) fn give_back(&self, payers: &Arc<Payers>, Share { token, left, .. }: Share) {
        if !left.is_zero() {
            let release = Some(Release { reservation: token, amounts: left });
            let payers = Arc::clone(payers);
            let spent = Spent { payers, cost: Cost::ZERO, release, here: None, finished: None };
            self.pending.lock().add(spent, Instant::now());
        }
    }

    /// What was told of these may hold no more: they are asked about again.
    pub(crate) fn doubt(&self, stale: &Stale) {
        let ended = self.local.lock().doubt(stale);
        self.give_all_back(ended);
    }

    /// The service tells standings of accounts that were charged.
    pub(crate) fn learn(&self, standings: &[v1::Standing]) {
        let ended = self.local.lock().told(standings);
        self.give_all_back(ended);
    }

    fn give_all_back(&self, shares: Vec<(Arc<Payers>, Share)>) {
        for (payers, share) in shares {
            self.give_back(&payers, share);
        }
    }

    /// Samples the children and cgroups, and makes what was spent until now ready to be reported. Waits at most so long for
    /// its turn, and for the sample: all threads that may block can be busy.
    pub(crate) async fn collect(&self, patience: Duration) {
        let turn = timeout(patience, Arc::clone(&self.collecting).acquire_owned()).await;
        let live = self.live();
        // Where it is not this one's turn the last sample stands. The semaphore is closed by nobody.
        let _turn = if let Ok(Ok(turn)) = turn { self.sample(&live, turn, patience).await } else { None };
        let now = Instant::now();
        for work in live {
            self.spend(work.charge(false), false, now);
        }
        let ended = self.local.lock().sweep_shares(now);
        self.give_all_back(ended);
        self.pending.lock().close(now);
        self.collected.notify_one();
    }

    /// A sample that is waited for no more keeps its turn: the last one stands until it has ended.
    async fn sample(
        &self,
        live: &[Arc<Work>],
        turn: OwnedSemaphorePermit,
        patience: Duration,
    ) -> Option<OwnedSemaphorePermit> {
        let with_key = |work: &Arc<Work>| {
            let children = work.children();
            let work = Arc::clone(work);
            children.into_iter().map(move |(key, process)| (Arc::clone(&work), key, process))
        };
        let children: Vec<_> = live.iter().flat_map(with_key).collect();
        if children.is_empty() && self.cgroups.lock().is_empty() {
            return Some(turn);
        }
        let cgroups = Arc::clone(&self.cgroups);
        let read = tokio::task::spawn_blocking(move || {
            sample_children(children);
            sample_cgroups(&cgroups);
            turn
        });
        timeout(patience, read).await.ok()?.ok()
    }

    /// Makes a cgroup whose usage counts as this work's. Also where nobody waits for it any more, it is removed again.
    pub(crate) async fn cgroup(&self, work: Arc<Work>, parents: RequestCgroups) -> io::Result<RequestCgroup> {
        let cgroups = Arc::clone(&self.cgroups);
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let made = runtime.spawn_blocking(move || {
            let mut metered = Metered::new(work, parents.make()?);
            metered.weigh();
            let handle = metered.handle();
            cgroups.lock().push(metered);
            Ok(handle)
        });
        made.await.map_err(io::Error::other)?
    }

    /// Ends when all that was collected is acknowledged or given up.
    pub(crate) async fn drained(&self) {
        loop {
            let mut landed = std::pin::pin!(self.landed.notified());
            landed.as_mut().enable();
            if self.pending.lock().is_drained() {
                return;
            }
            landed.await;
        }
    }
}

fn sample_children(children: Vec<(Arc<Work>, u64, Process)>) {
    if children.is_empty() {
        return;
    }
    let family = Family::read();
    for (work, key, process) in children {
        if let Some(usage) = family.usage(process) {
            work.child_used(key, usage);
        }
    }
}

/// They are taken out meanwhile, since no lock is held while files are read.
fn sample_cgroups(cgroups: &Mutex<Vec<Metered>>) {
    let mut sampled = mem::take(&mut *cgroups.lock());
    sampled.iter_mut().for_each(Metered::weigh);
    sampled.retain_mut(Metered::sample);
    cgroups.lock().append(&mut sampled);
}
