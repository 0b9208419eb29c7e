use quota_core::{Adaptations, Timestamp, WindowLength};

use super::contender::Contender;
use super::node::{Node, Worked};
use super::quota::Quota;
use super::scenario::Scenario;
use super::trace::{Recorder, Trace};
use super::traffic::{Request, Traffic};

/// A step of the simulation, in seconds.
pub(super) const STEP: f64 = 0.25;

/// Steps in a second.
const STEPS: u64 = 4;

/// When scenarios start: late enough that nothing is before time.
const START: u64 = 1_000_000_000;

/// Whether the heavy traffic takes part. Without it one sees what light requests take on an idle machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heavy {
    /// It does.
    With,
    /// It does not.
    Without,
    /// It does until pressure has been at the soft limit for a while, and is gone from then on: no limit helps sooner.
    UntilHot,
}

fn moment(step: u64) -> Timestamp {
    Timestamp::from_micros(START + step * 1_000_000 / STEPS)
}

/// How long ago the scenario started.
pub(super) fn seconds(now: Timestamp) -> f64 {
    now.as_micros().saturating_sub(START) as f64 / 1e6
}

pub(super) fn is_last_of_second(now: Timestamp) -> bool {
    now.as_micros() % 1_000_000 >= 1_000_000 - 1_000_000 / STEPS
}

/// Runs a scenario under a rule.
pub fn run(scenario: &Scenario, contender: &Contender, seed: u64, heavy: Heavy) -> Trace {
    let traffic = Traffic::new(scenario, seed, heavy);
    let accounts = traffic.names.len();
    let node = |_| Node::new(accounts, scenario, contender.kit);
    let mut simulation = Simulation {
        scenario,
        adaptations: contender.adaptations(scenario),
        quota: Quota::new(&traffic.names, scenario),
        nodes: (0..scenario.nodes).map(node).collect(),
        traffic,
        recorder: Recorder::new(scenario, accounts),
        heavy,
    };
    for step in 0..u64::from(scenario.seconds) * STEPS {
        simulation.step(step);
    }
    let alike = simulation.traffic.alike(scenario.equal);
    simulation.recorder.end(&alike)
}

/// Fileservers, their users and the service.
struct Simulation<'a> {
    scenario: &'a Scenario,
    adaptations: Adaptations,
    traffic: Traffic<'a>,
    quota: Quota,
    nodes: Vec<Node>,
    recorder: Recorder<'a>,
    heavy: Heavy,
}

impl Simulation<'_> {
    fn step(&mut self, step: u64) {
        let now = moment(step);
        let at = seconds(now);
        if step.is_multiple_of(STEPS) {
            let tick = WindowLength::default().tick(now);
            self.quota.advance(tick);
            for node in &mut self.nodes {
                node.advance(tick);
            }
        }
        for request in self.traffic.arrivals(at, STEP) {
            self.ask(request, at, now);
        }
        for number in 0..self.nodes.len() {
            self.work(number, at, now);
        }
        if is_last_of_second(now) {
            let now = moment(step + 1);
            for node in &mut self.nodes {
                node.read_limits(&self.quota, &self.adaptations, now);
                node.report(self.scenario, &self.adaptations, &self.quota, now);
            }
            self.recorder.second_ends(&self.nodes, &self.quota);
            if self.heavy == Heavy::UntilHot && self.recorder.is_hot() {
                self.traffic.leave_out_heavy();
            }
        }
    }

    fn ask(&mut self, request: Request, at: f64, now: Timestamp) {
        let node = &mut self.nodes[request.node];
        match self.quota.admit(node, &request, now) {
            Ok(release) => {
                self.recorder.admitted(request.heavy);
                self.traffic.started(&request);
                node.start(request, at, release);
            }
            Err(refusal) => {
                self.recorder.refused(request.heavy, request.node, &refusal, &self.quota);
                self.traffic.refused(request, at, refusal.retry_after.as_secs_f64());
            }
        }
    }

    fn work(&mut self, number: usize, at: f64, now: Timestamp) {
        let is_looked_at = self.scenario.looks_at(number);
        let resource = self.scenario.loads;
        let recorder = &mut self.recorder;
        let spends = |running: &_, spent: &quota_core::PerResource<f64>| {
            if is_looked_at {
                recorder.spent(running, spent[resource]);
            }
        };
        let Worked { load, ended, killed } =
            self.nodes[number].work(&self.scenario.machine, at, now, &mut self.quota, spends);
        if is_looked_at {
            self.recorder.worked(load[resource], STEP);
        }
        for running in &ended {
            self.traffic.ended(&running.request);
            self.recorder.ended(running, at + STEP);
        }
        if let Some(running) = killed {
            self.traffic.ended(&running.request);
            self.recorder.killed(running.request.heavy);
        }
    }
}
