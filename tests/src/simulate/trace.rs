use std::collections::HashMap;

use quota_core::Kind;

use super::figures::{SMOOTH, is_hot};
use super::node::{Node, Running};
use super::quota::{Quota, Refusal};
use super::scenario::Scenario;

/// What was seen in a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// The load of the machine in the resource that the scenario is about, of the nodes that are looked at on average.
    pub load: f64,
    /// Light and heavy requests that were refused, or ended by the kernel.
    pub refused: [u32; 2],
    /// Light and heavy requests that were let in.
    pub admitted: [u32; 2],
    /// The lowest limit of any kind or account, as a share of the ceiling of its kind.
    pub lowest: f64,
    /// How many accounts have a limit of their own on a node.
    pub cut: usize,
}

/// What a run showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// By second.
    pub seconds: Vec<Second>,
    /// Light requests: when they ended, and how long they took, in seconds.
    pub light: Vec<(f64, f64)>,
    /// What heavy accounts that want the same had in the last five minutes of heavy traffic.
    pub alike: Vec<f64>,
    /// Of limits that were in force in those minutes all along, and refused somebody in a tenth of those seconds: the
    /// largest over the least, of the one that moved most. 1 where there is none.
    pub swing: f64,
}

/// Writes a trace.
pub(super) struct Recorder<'a> {
    scenario: &'a Scenario,
    trace: Trace,
    second: Second,
    nodes: f64,
    /// By account, of heavy requests in the last minutes.
    spent: Vec<f64>,
    limits: HashMap<Whose, Held>,
    /// Whose limits refused somebody in this second.
    bound: Vec<Whose>,
}

/// A node, and the account or kind that a limit on it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Whose {
    Account(usize, usize),
    Kind(usize, Kind),
}

/// A limit over the last minutes.
#[derive(Clone, Copy)]
struct Held {
    least: u64,
    most: u64,
    seconds: u32,
    bound: u32,
}

/// How long the last minutes are, in seconds.
const STEADY: u32 = 300;

impl<'a> Recorder<'a> {
    pub(super) fn new(scenario: &'a Scenario, accounts: usize) -> Self {
        let nodes = (0..scenario.nodes).filter(|node| scenario.looks_at(*node as usize)).count();
        Self {
            scenario,
            trace: Trace::default(),
            second: Second::default(),
            nodes: nodes.max(1) as f64,
            spent: vec![0.0; accounts],
            limits: HashMap::new(),
            bound: Vec::new(),
        }
    }

    fn is_steady(&self) -> bool {
        let second = self.trace.seconds.len() as u32;
        (self.scenario.until.saturating_sub(STEADY)..self.scenario.until).contains(&second)
    }

    pub(super) fn admitted(&mut self, heavy: bool) {
        self.second.admitted[usize::from(heavy)] += 1;
    }

    pub(super) fn refused(&mut self, heavy: bool, node: usize, refusal: &Refusal, quota: &Quota) {
        self.second.refused[usize::from(heavy)] += 1;
        if let (true, Some(account)) = (self.is_steady(), refusal.account) {
            let kind = quota.accounts[account].kind();
            self.bound.extend([Whose::Account(node, account), Whose::Kind(node, kind)]);
        }
    }

    pub(super) fn killed(&mut self, heavy: bool) {
        self.second.refused[usize::from(heavy)] += 1;
    }

    pub(super) fn worked(&mut self, load: f64, seconds: f64) {
        self.second.load += load * seconds / self.nodes;
    }

    /// A request spent so much of the resource that the scenario is about.
    pub(super) fn spent(&mut self, running: &Running, amount: f64) {
        if running.request.heavy && self.is_steady() {
            for account in running.request.accounts {
                self.spent[account] += amount;
            }
        }
    }

    pub(super) fn ended(&mut self, running: &Running, at: f64) {
        if !running.request.heavy {
            self.trace.light.push((at, at - running.since));
        }
    }

    pub(super) fn second_ends(&mut self, nodes: &[Node], quota: &Quota) {
        let resource = self.scenario.loads;
        let (mut second, steady) = (std::mem::take(&mut self.second), self.is_steady());
        second.lowest = 1.0;
        for (number, node) in nodes.iter().enumerate() {
            let kinds = node.limits.kinds[resource]
                .into_iter()
                .flat_map(|limits| Kind::ALL.map(|kind| (Whose::Kind(number, kind), kind, limits[kind])));
            let own = node.limits.own(resource).map(|(account, limit)| {
                (Whose::Account(number, account), quota.accounts[account].kind(), limit)
            });
            for (whose, kind, limit) in kinds.chain(own) {
                let ceiling = quota.ceilings[kind][resource];
                second.lowest = second.lowest.min(limit as f64 / ceiling as f64);
                second.cut += usize::from(matches!(whose, Whose::Account(..)));
                if steady && limit < ceiling {
                    let held = self.limits.entry(whose).or_insert(Held {
                        least: limit,
                        most: limit,
                        seconds: 0,
                        bound: 0,
                    });
                    held.least = held.least.min(limit);
                    held.most = held.most.max(limit);
                    held.seconds += 1;
                    held.bound += u32::from(self.bound.contains(&whose));
                }
            }
        }
        self.bound.clear();
        self.trace.seconds.push(second);
    }

    /// Whether pressure reached the soft limit, on average over the last seconds of heavy traffic.
    pub(super) fn is_hot(&self) -> bool {
        let heavy = self.trace.seconds.get(self.scenario.from as usize..).unwrap_or_default();
        heavy.len() >= SMOOTH && is_hot(&heavy[heavy.len() - SMOOTH..])
    }

    pub(super) fn end(mut self, alike: &[usize]) -> Trace {
        self.trace.alike = alike.iter().map(|account| self.spent[*account]).collect();
        let bound = self.limits.values().filter(|held| held.seconds >= STEADY && held.bound >= STEADY / 10);
        self.trace.swing = bound.map(|held| held.most as f64 / held.least.max(1) as f64).fold(1.0, f64::max);
        self.trace
    }
}
