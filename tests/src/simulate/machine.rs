//! A fileserver's hardware: processors and line are shared fairly among what runs, memory is held.

use quota_core::{PerResource, Resource};

use super::scenario::Machine;

/// What a request still has to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    /// Processor time, in seconds; at most one processor at a time.
    pub(super) cpu: f64,
    /// To be sent, in bytes.
    pub(super) bytes: f64,
    /// How many of them a second the client reads.
    pub(super) reads: f64,
    /// Memory that it holds, in bytes.
    pub(super) memory: f64,
    /// By how many bytes that grows a second.
    pub(super) leak: f64,
    /// How long it lasts at least, in seconds.
    pub(super) waits: f64,
    /// How much of the processors it has where they are short.
    pub(super) weight: f64,
}

impl Work {
    pub(super) fn is_done(&self) -> bool {
        self.cpu <= 1e-9 && self.bytes <= 1e-3 && self.waits <= 1e-9
    }
}

/// How much of each resource was used, as a share of what there was.
pub(super) type Load = PerResource<f64>;

/// Works on all for `dt` seconds from `at` on. Returns the load, and what each spent, in internal units.
pub(super) fn step<'a>(
    machine: &Machine,
    at: f64,
    dt: f64,
    work: impl Iterator<Item = &'a mut Work>,
) -> (Load, Vec<PerResource<f64>>) {
    let mut work: Vec<&mut Work> = work.collect();
    let cores = machine.cores_at(at);
    let weights = work.iter().filter(|work| work.cpu > 0.0).map(|work| work.weight);
    let share = fair_share(cores, weights.collect());
    let reads = work.iter().filter(|work| work.bytes > 0.0).map(|work| work.reads);
    let rate = fair_rate(machine.network * 1e6, reads.collect());
    let mut total = Load::default();
    let mut spent = Vec::with_capacity(work.len());
    for work in &mut work {
        let cpu = work.cpu.min((share * work.weight).min(1.0) * dt);
        let bytes = work.bytes.min(work.reads.min(rate) * dt);
        let of_this = PerResource::new(cpu * 1e6, work.memory * dt / 1024.0, bytes);
        work.cpu -= cpu;
        work.bytes -= bytes;
        work.waits -= dt;
        work.memory += work.leak * dt;
        for (resource, amount) in of_this.iter() {
            total[resource] += amount;
        }
        spent.push(of_this);
    }
    let capacity = PerResource::new(cores * 1e6, machine.memory * f64::from(1 << 20), machine.network * 1e6);
    let load = PerResource::from_fn(|resource: Resource| total[resource] / (capacity[resource] * dt));
    (load, spent)
}

/// Processors for each unit of weight, where each that runs uses one at most.
fn fair_share(cores: f64, mut weights: Vec<f64>) -> f64 {
    weights.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut left, mut weight) = (cores, weights.iter().sum::<f64>());
    for one in weights {
        let share = left / weight;
        if share * one <= 1.0 {
            return share;
        }
        left -= 1.0;
        weight -= one;
    }
    // Each has a whole one.
    f64::INFINITY
}

/// What each may send at most, so that all together send no more than the line carries: those who read slower leave the
/// rest to others.
fn fair_rate(line: f64, mut reads: Vec<f64>) -> f64 {
    reads.sort_unstable_by(f64::total_cmp);
    let mut left = line;
    for (done, slowest) in reads.iter().enumerate() {
        let rate = left / (reads.len() - done) as f64;
        if *slowest >= rate {
            return rate;
        }
        left -= slowest;
    }
    line
}

#[cfg(test)]
mod tests;
