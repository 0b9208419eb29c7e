use quota_core::{
    Adaptation, Adaptations, Cost, Kind, NodeReport, NodeState, PerResource, Ratio, Release, Resource, Rule,
    Tick, Timestamp, Usage, Window, WindowLength,
};

use super::contender::Kit;
use super::limits::Limits;
use super::machine::{self, Load};
use super::quota::Quota;
use super::run::{STEP, is_last_of_second, seconds};
use super::scenario::{Machine, Scenario};
use super::traffic::Request;

/// A fileserver, with the client that asks and reports for it.
pub(super) struct Node {
    kit: Kit,
    thin: bool,
    running: Vec<Running>,
    /// By account, as the client counts.
    windows: Vec<Window>,
    recent: Vec<[Usage; RECENT]>,
    /// By account.
    lately: Vec<Lately>,
    pub(super) limits: Limits,
    /// Calibrated since the limits were read.
    is_stale: bool,
    state: Option<NodeState>,
    /// What it tells next: the load of this second so far, and that a process was killed.
    load: Load,
    oom_kill: bool,
}

/// A request that runs.
pub(super) struct Running {
    pub(super) request: Request,
    /// Since when, in seconds.
    pub(super) since: f64,
    release: Release,
    /// What is spent and not charged yet, in internal units.
    owed: PerResource<f64>,
}

/// What happened in a step.
pub(super) struct Worked {
    pub(super) load: Load,
    pub(super) ended: Vec<Running>,
    /// What the kernel ended for want of memory.
    pub(super) killed: Option<Running>,
}

/// What requests of an account cost lately.
#[derive(Clone, Debug, Default)]
struct Lately {
    spent: PerResource<f64>,
    ended: f64,
}

const RECENT: usize = NodeReport::RECENT.as_secs() as usize;

/// The price of a request whose account is not cut, in microseconds.
const PRICE: u64 = 10_000;

/// A request from so many seconds ago counts a third in an account's average cost.
const MEMORY: f64 = 32.0;

impl Node {
    pub(super) fn new(accounts: usize, scenario: &Scenario, kit: Kit) -> Self {
        Self {
            kit,
            thin: scenario.thin,
            running: Vec::new(),
            windows: vec![Window::default(); accounts],
            recent: vec![Default::default(); accounts],
            lately: vec![Lately::default(); accounts],
            limits: Limits::new(accounts),
            is_stale: false,
            state: None,
            load: Load::default(),
            oom_kill: false,
        }
    }

    /// A second begins.
    pub(super) fn advance(&mut self, tick: Tick) {
        for window in &mut self.windows {
            window.advance(tick);
        }
        for recent in &mut self.recent {
            recent[slot(tick)] = Usage::default();
        }
        for lately in &mut self.lately {
            lately.spent = lately.spent.map(|spent| spent - spent / MEMORY);
            lately.ended -= lately.ended / MEMORY;
        }
    }

    /// What an account used here within the window.
    pub(super) fn used(&self, account: usize) -> &Usage {
        self.windows[account].usage()
    }

    /// Whether no more requests of an address may run.
    pub(super) fn is_full(&self, request: &Request) -> bool {
        let [.., address] = request.accounts;
        let of_address =
            || self.running.iter().filter(|running| running.request.accounts[2] == address).count();
        self.kit.at_once.is_some_and(|most| of_address() >= most)
    }

    /// What is reserved for a request: of a resource in which one of its accounts is cut, as much as its requests cost
    /// lately.
    pub(super) fn price(&self, request: &Request) -> Cost {
        let learned = |resource| {
            let cut = request.accounts.iter().filter(|account| self.limits.is_cut(**account, resource));
            let mean = |account: &usize| {
                let Lately { spent, ended } = &self.lately[*account];
                (spent[resource] / ended.max(1.0)) as u64
            };
            cut.map(mean).max().unwrap_or_default()
        };
        let mut price = PerResource::from_fn(learned);
        price[Resource::Cpu] = price[Resource::Cpu].max(PRICE);
        Cost::saturating(price)
    }

    pub(super) fn reserve(&mut self, account: usize, release: &Release) {
        self.windows[account].add(release.tick, release.amounts);
    }

    pub(super) fn start(&mut self, request: Request, since: f64, release: Release) {
        self.running.push(Running { request, since, release, owed: PerResource::default() });
    }

    /// Works for a step on all that runs, and has it charged once a second and when it ends.
    pub(super) fn work(
        &mut self,
        machine: &Machine,
        at: f64,
        now: Timestamp,
        quota: &mut Quota,
        mut spends: impl FnMut(&Running, &PerResource<f64>),
    ) -> Worked {
        for running in &mut self.running {
            let is_cut =
                running.request.accounts.iter().any(|account| self.limits.is_cut(*account, Resource::Cpu));
            running.request.work.weight = if is_cut { self.kit.weight } else { 1.0 };
        }
        let work = self.running.iter_mut().map(|running| &mut running.request.work);
        let (load, spent) = machine::step(machine, at, STEP, work);
        for (resource, load) in load.iter() {
            self.load[resource] += load * STEP;
        }
        let mut running = std::mem::take(&mut self.running);
        for (running, spent) in running.iter_mut().zip(&spent) {
            spends(running, spent);
            for (resource, spent) in spent.iter() {
                running.owed[resource] += spent;
            }
            if is_last_of_second(now) || running.request.work.is_done() {
                self.charge(running, now, quota);
            }
        }
        let ended = running.extract_if(.., |running| running.request.work.is_done()).collect();
        self.running = running;
        let killed = if load[Resource::Memory] > 1.0 { self.kill() } else { None };
        Worked { load, ended, killed }
    }

    fn charge(&mut self, running: &mut Running, now: Timestamp, quota: &mut Quota) {
        let tick = WindowLength::default().tick(now);
        let is_done = running.request.work.is_done();
        let whole = PerResource::from_fn(|resource| running.owed[resource] as u64);
        for (resource, whole) in whole.iter() {
            running.owed[resource] -= *whole as f64;
        }
        let cost = Cost::saturating(whole);
        let held = running.release.amounts;
        let amounts = if is_done { held } else { held.at_most(cost) };
        running.release.amounts = held.minus(amounts);
        let release = Release { tick: running.release.tick, amounts };
        for account in running.request.accounts {
            let lately = &mut self.lately[account];
            lately.ended += f64::from(u8::from(is_done));
            for (resource, whole) in whole.iter() {
                lately.spent[resource] += *whole as f64;
                self.recent[account][slot(tick)][resource] += whole;
            }
            self.windows[account].add(tick, cost);
            self.windows[account].release(release.tick, release.amounts);
            quota.charge(account, tick, cost, &release);
        }
    }

    /// The kernel ends the largest process.
    fn kill(&mut self) -> Option<Running> {
        let memory = |at: &usize| self.running[*at].request.work.memory;
        let largest = (0..self.running.len()).max_by(|a, b| memory(a).total_cmp(&memory(b)))?;
        self.oom_kill = true;
        Some(self.running.swap_remove(largest))
    }

    /// Servers read the limits anew; those that a report of the same second leads to, they read a second later.
    pub(super) fn read_limits(&mut self, quota: &Quota, adaptations: &Adaptations, now: Timestamp) {
        if let (true, Some(state)) = (std::mem::take(&mut self.is_stale), &self.state) {
            self.limits.read(state, &quota.numbers, adaptations, now);
        }
    }

    /// The client tells its pressure.
    pub(super) fn report(
        &mut self,
        scenario: &Scenario,
        adaptations: &Adaptations,
        quota: &Quota,
        now: Timestamp,
    ) {
        let mut report = NodeReport {
            pressure: std::mem::take(&mut self.load).map(|load| Ratio::try_from(load).ok()),
            oom_kill: std::mem::take(&mut self.oom_kill),
            ..NodeReport::default()
        };
        // Of no consequence in the midst of an interval, and dear to tell each second.
        if !self.thin && (report.oom_kill || self.ends_interval(adaptations, now)) {
            report.capacity = scenario.machine.capacity_at(seconds(now)).map(Some);
            for kind in Kind::ALL {
                self.tell_accounts(&mut report, kind, scenario.loads, quota);
            }
        }
        let (state, observed) = NodeState::observe(self.state.take(), now, report, adaptations);
        self.state = Some(state);
        self.is_stale |= observed.iter().any(|(_, observed)| observed.calibrated);
    }

    /// Whether limits are calibrated at the next report, by a rule that asks who used what.
    fn ends_interval(&self, adaptations: &Adaptations, now: Timestamp) -> bool {
        let Some(state) = &self.state else { return false };
        let ends = |adaptation: &Adaptation, since: Timestamp| {
            adaptation.rule != Rule::DoubleHalve && now.since(since) >= adaptation.interval_micros()
        };
        state.controllers.iter().any(|(resource, controller)| {
            let both = controller.as_ref().zip(adaptations[resource].as_ref());
            both.is_some_and(|(controller, adaptation)| ends(adaptation, controller.since))
        })
    }

    /// How many accounts of a kind are active, and which are the heaviest.
    fn tell_accounts(&self, report: &mut NodeReport, kind: Kind, resource: Resource, quota: &Quota) {
        let of_kind = quota.accounts.iter().zip(0..).filter(|(account, _)| account.kind() == kind);
        let is_active = |account: usize| self.used(account).iter().any(|(_, used)| *used > 0);
        let mut active: Vec<usize> = of_kind.map(|(_, number)| number).filter(|it| is_active(*it)).collect();
        report.active[kind] = u32::try_from(active.len()).ok();
        active.sort_unstable_by_key(|account| (std::cmp::Reverse(self.used(*account)[resource]), *account));
        active.truncate(NodeReport::MAX_HEAVIEST);
        for account in active {
            let recent = |resource| self.recent[account].iter().map(|second| second[resource]).sum();
            let recent = PerResource::from_fn(|resource| Some(recent(resource)));
            report.add_heaviest(quota.accounts[account].clone(), self.used(account).map(Some), Some(recent));
        }
    }
}

fn slot(tick: Tick) -> usize {
    (tick % RECENT as u64) as usize
}
