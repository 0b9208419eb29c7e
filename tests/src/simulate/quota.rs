use std::collections::HashMap;
use std::time::Duration;

use quota_core::{
    Account, Bound, Comparison, Cost, Here, HereUsed, Ipv6Prefix, Kind, Limit, Mode, PerKind, PerResource,
    Release, Resource, Snapshot, Subject, Tick, Timestamp, Window, WindowLength, decide,
};

use super::node::Node;
use super::scenario::Scenario;
use super::traffic::Request;

/// The service: who used how much on all nodes together, and who may ask for more.
pub(super) struct Quota {
    pub(super) accounts: Vec<Account>,
    pub(super) numbers: HashMap<Account, usize>,
    pub(super) ceilings: PerKind<PerResource<u64>>,
    everywhere: Vec<Window>,
    /// Whether nodes tell nothing of accounts.
    thin: bool,
}

/// Why a request is not let in.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The account whose limit on the node is reached; `None` where it is another limit.
    pub(super) account: Option<usize>,
    /// When to ask again.
    pub(super) retry_after: Duration,
}

/// What is refused for another reason than usage.
const SOON: Duration = Duration::from_secs(1);

impl Quota {
    pub(super) fn new(names: &[(Kind, String)], scenario: &Scenario) -> Self {
        let account = |(number, (kind, name)): (usize, &(Kind, String))| {
            let address = || format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255);
            let id = if *kind == Kind::Ip { address() } else { name.clone() };
            Account::new(*kind, &id, Ipv6Prefix::default()).expect("a name of a scenario")
        };
        let accounts: Vec<Account> = names.iter().enumerate().map(account).collect();
        Self {
            numbers: accounts.iter().cloned().zip(0..).collect(),
            ceilings: scenario.ceilings(),
            everywhere: vec![Window::default(); accounts.len()],
            accounts,
            thin: scenario.thin,
        }
    }

    /// A second begins.
    pub(super) fn advance(&mut self, tick: Tick) {
        for window in &mut self.everywhere {
            window.advance(tick);
        }
    }

    /// Asks for admission, and reserves the price.
    pub(super) fn admit(
        &mut self,
        node: &mut Node,
        request: &Request,
        now: Timestamp,
    ) -> Result<Release, Refusal> {
        if node.is_full(request) {
            return Err(Refusal { account: None, retry_after: SOON });
        }
        let compared = request.accounts.map(|account| (account, self.compare(node, account)));
        if let Some((account, resource)) =
            compared.iter().find_map(|(account, all)| self.refuses(*account, all))
        {
            let is_local = !Limit::At(self.ceilings[self.accounts[account].kind()][resource])
                .reached_by(self.everywhere[account].usage()[resource]);
            let retry_after =
                if request.honours_retry_after { self.retry_after(&compared, now) } else { SOON };
            return Err(Refusal { account: is_local.then_some(account), retry_after });
        }
        let release = Release { tick: WindowLength::default().tick(now), amounts: node.price(request) };
        for account in request.accounts {
            self.everywhere[account].add(release.tick, release.amounts);
            node.reserve(account, &release);
        }
        Ok(release)
    }

    fn compare(&self, node: &Node, account: usize) -> PerResource<Comparison> {
        let kind = self.accounts[account].kind();
        PerResource::from_fn(|resource| {
            let ceiling = Bound { limit: Limit::At(self.ceilings[kind][resource]), mode: Mode::Enforce };
            let used =
                if self.thin { HereUsed::Unknown } else { HereUsed::Told(node.used(account)[resource]) };
            let here = node.limits.of(account, kind, resource);
            Comparison { ceiling, here: here.map(|limit| Here { limit: Limit::At(limit), used }) }
        })
    }

    /// The first resource of which an account has used what it may.
    fn refuses(&self, account: usize, comparisons: &PerResource<Comparison>) -> Option<(usize, Resource)> {
        let usage = self.everywhere[account].usage();
        let reached = |resource: &Resource| comparisons[*resource].bound().refuses(usage[*resource]);
        Resource::ALL.into_iter().find(reached).map(|resource| (account, resource))
    }

    fn retry_after(&self, compared: &[(usize, PerResource<Comparison>)], now: Timestamp) -> Duration {
        let subjects = compared.iter().map(|(account, comparisons)| Subject {
            account: self.accounts[*account].clone(),
            comparisons: *comparisons,
            until: None,
            snapshot: Snapshot::Full(self.everywhere[*account].clone()),
        });
        let subjects: Vec<Subject> = subjects.collect();
        let verdict = decide(&subjects, now, WindowLength::default());
        verdict.denied_by.map_or(SOON, |breach| breach.retry_after)
    }

    /// Counts what was spent, and gives back what was reserved for it.
    pub(super) fn charge(&mut self, account: usize, tick: Tick, cost: Cost, release: &Release) {
        self.everywhere[account].add(tick, cost);
        self.everywhere[account].release(release.tick, release.amounts);
    }
}
