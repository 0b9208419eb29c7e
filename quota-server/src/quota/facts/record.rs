use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quota_core::{Histogram, PerResource};

use super::{Finished, PricesRequest, RpcCosts};
use crate::metrics::OTHER_RPCS;

/// How long a part of the record is.
const PART: Duration = Duration::from_secs(2 * 3600);

/// Parts that are kept beside the open one.
const PARTS: u64 = PricesRequest::LONGEST.as_secs() / PART.as_secs();

/// The most RPCs that are told apart in a part: those of which most finished.
const MAX_RPCS: usize = 512;

/// What requests cost lately, bounded whatever they are called: of each two hours, histograms of at most 512 RPCs.
pub(crate) struct FactRecord {
    started: Instant,
    parts: VecDeque<Part>,
}

#[derive(Default)]
struct Part {
    number: u64,
    rpcs: BTreeMap<Arc<str>, Costs>,
}

#[derive(Default)]
struct Costs {
    cost: PerResource<Histogram>,
    wall: Histogram,
    count: u64,
}

impl Default for FactRecord {
    fn default() -> Self {
        Self { started: Instant::now(), parts: VecDeque::new() }
    }
}

impl FactRecord {
    pub(super) fn add(&mut self, finished: &Finished) {
        self.add_at(self.started.elapsed(), finished);
    }

    pub(super) fn costs(&self, since: Duration) -> Vec<RpcCosts> {
        self.costs_at(self.started.elapsed(), since)
    }

    /// So long after it began.
    fn add_at(&mut self, now: Duration, finished: &Finished) {
        let number = number(now);
        if self.parts.back().is_none_or(|open| open.number < number) {
            self.parts.push_back(Part { number, ..Part::default() });
            let oldest = number.saturating_sub(PARTS);
            while self.parts.front().is_some_and(|part| part.number < oldest) {
                self.parts.pop_front();
            }
        }
        let Some(open) = self.parts.back_mut() else { return };
        let costs = open.costs_of(&finished.rpc);
        for (resource, amount) in finished.cost.amounts().iter() {
            costs.cost[resource].add(*amount);
        }
        if let Some(wall) = finished.wall {
            costs.wall.add_duration(wall);
        }
        costs.count += 1;
    }

    fn costs_at(&self, now: Duration, since: Duration) -> Vec<RpcCosts> {
        let from = number(now.saturating_sub(since));
        let mut sums: BTreeMap<Arc<str>, Costs> = BTreeMap::new();
        for part in self.parts.iter().filter(|part| part.number >= from) {
            for (rpc, costs) in &part.rpcs {
                sums.entry(Arc::clone(rpc)).or_default().absorb(costs);
            }
        }
        let mut rpcs: Vec<RpcCosts> = sums
            .into_iter()
            .map(|(rpc, Costs { cost, wall, count })| RpcCosts { rpc, count, cost, wall })
            .collect();
        rpcs.sort_by_key(|costs| std::cmp::Reverse(costs.count));
        rpcs
    }
}

impl Part {
    fn costs_of(&mut self, rpc: &str) -> &mut Costs {
        if self.rpcs.len() >= MAX_RPCS && !self.rpcs.contains_key(rpc) {
            self.forget_lightest();
        }
        self.rpcs.entry(rpc.into()).or_default()
    }

    /// The RPC of which fewest finished is another of the others.
    fn forget_lightest(&mut self) {
        let named = self.rpcs.iter().filter(|(name, _)| &***name != OTHER_RPCS);
        let lightest = named.min_by_key(|(_, costs)| costs.count).map(|(name, _)| Arc::clone(name));
        if let Some(costs) = lightest.and_then(|name| self.rpcs.remove(&name)) {
            self.rpcs.entry(OTHER_RPCS.into()).or_default().absorb(&costs);
        }
    }
}

impl Costs {
    fn absorb(&mut self, other: &Self) {
        for (resource, histogram) in other.cost.iter() {
            self.cost[resource].absorb(histogram);
        }
        self.wall.absorb(&other.wall);
        self.count += other.count;
    }
}

fn number(moment: Duration) -> u64 {
    moment.as_secs() / PART.as_secs()
}

#[cfg(test)]
mod tests {
    use quota_core::{Cost, Resource};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn finished(rpc: &str, cpu_micros: u64) -> Finished {
        let cost = Cost::ZERO.with_cpu_micros(cpu_micros).unwrap();
        Finished { rpc: rpc.into(), cost, wall: Some(Duration::from_secs(2)) }
    }

    fn told(record: &FactRecord, now: Duration, since: Duration) -> Vec<(String, u64, u64)> {
        let costs = record.costs_at(now, since).into_iter();
        costs.map(|costs| (costs.rpc.to_string(), costs.count, costs.cost[Resource::Cpu].mean())).collect()
    }

    #[test]
    fn costs_are_told_by_rpc_for_a_day() {
        let mut record = FactRecord::default();
        record.add_at(HOUR, &finished("/svc/A", 100));
        record.add_at(3 * HOUR, &finished("/svc/A", 300));
        record.add_at(3 * HOUR, &finished("/svc/B", 7));
        let [a, b] = [("/svc/A".to_owned(), 2, 200), ("/svc/B".to_owned(), 1, 7)];
        assert_eq!(told(&record, 3 * HOUR, 24 * HOUR), [a, b.clone()]);
        assert_eq!(told(&record, 3 * HOUR, HOUR / 2), [("/svc/A".to_owned(), 1, 300), b]);
        assert_eq!(record.costs_at(3 * HOUR, HOUR)[0].wall.mean(), 2_000_000);
        record.add_at(40 * HOUR, &finished("/svc/C", 1));
        assert_eq!(told(&record, 40 * HOUR, 24 * HOUR), [("/svc/C".to_owned(), 1, 1)]);
        assert_eq!(record.parts.len(), 1);
    }

    #[test]
    fn any_number_of_names_takes_no_more_room_than_the_bound() {
        let mut record = FactRecord::default();
        for number in 0..10_000 {
            record.add_at(HOUR, &finished(&format!("/svc/{number}"), 1));
        }
        let told = told(&record, HOUR, HOUR);
        assert_eq!(told.len(), MAX_RPCS + 1);
        assert_eq!(told[0], (OTHER_RPCS.to_owned(), 10_000 - MAX_RPCS as u64, 1));
    }

    #[test]
    fn who_makes_up_names_hides_none_that_is_called_more_often() {
        let mut record = FactRecord::default();
        for number in 0..2_000 {
            record.add_at(HOUR, &finished(&format!("/junk/{number}"), 1));
            if number >= 1_000 {
                record.add_at(HOUR, &finished("/svc/Late", 7));
            }
        }
        let told = told(&record, HOUR, HOUR);
        assert_eq!(told[..2], [(OTHER_RPCS.to_owned(), 2_000 - 511, 1), ("/svc/Late".to_owned(), 1_000, 7)]);
        assert_eq!(
            told.iter().map(|(_, count, _)| count).sum::<u64>(),
            3_000,
            "each request is told of once"
        );
    }
}
