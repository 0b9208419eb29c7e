use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use quota_core::{PerResource, Ratio, Resource};

/// How often the pressures of the fileservers are looked at.
pub(crate) const EVERY: Duration = Duration::from_secs(5);

/// How many of these looks are kept: 15 minutes.
pub(crate) const KEPT: usize = 180;

/// Of at most so many fileservers, the first by name: 4 bytes for each look and resource.
const NODES: usize = 256;

/// What fileservers told of their pressure in the last 15 minutes, as far as this server has run.
#[derive(Debug, Default)]
pub(crate) struct Pressures(Mutex<BTreeMap<Box<str>, Looks>>);

/// At one fileserver, the oldest first.
type Looks = VecDeque<PerResource<Option<f32>>>;

impl Pressures {
    /// Adds a look at all fileservers that are known. One that is not any more is forgotten.
    pub(crate) fn add(&self, nodes: impl IntoIterator<Item = (Box<str>, PerResource<Option<Ratio>>)>) {
        let mut kept = self.0.lock();
        let mut before = std::mem::take(&mut *kept);
        for (name, pressure) in nodes {
            let mut looks = before.remove(&name).unwrap_or_default();
            if looks.len() == KEPT {
                looks.pop_front();
            }
            looks.push_back(pressure.map(|pressure| pressure.map(|pressure| f64::from(pressure) as f32)));
            kept.insert(name, looks);
            if kept.len() > NODES {
                kept.pop_last();
            }
        }
    }

    /// Of a fileserver, the oldest first; `None` where nothing was told.
    pub(crate) fn of(&self, node: &str, resource: Resource) -> Vec<Option<f32>> {
        let kept = self.0.lock();
        kept.get(node).into_iter().flatten().map(|look| look[resource]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(name: String, cpu: f64) -> (Box<str>, PerResource<Option<Ratio>>) {
        (name.into(), PerResource::new(Some(Ratio::try_from(cpu).unwrap()), None, None))
    }

    #[test]
    fn the_last_looks_are_kept_and_nodes_that_are_gone_are_not() {
        let pressures = Pressures::default();
        for number in 0..=KEPT {
            pressures.add([look("a".to_owned(), number as f64 / 1000.0), look("b".to_owned(), 1.0)]);
        }
        let cpu = pressures.of("a", Resource::Cpu);
        assert_eq!((cpu.len(), cpu[0], cpu[KEPT - 1]), (KEPT, Some(0.001), Some(0.18)));
        assert_eq!(pressures.of("a", Resource::Memory), vec![None; KEPT]);
        pressures.add([look("b".to_owned(), 1.0)]);
        assert!(pressures.of("a", Resource::Cpu).is_empty());
    }

    #[test]
    fn there_are_not_more_than_so_many() {
        let pressures = Pressures::default();
        pressures.add((0..1000).map(|number| look(format!("node-{number:04}"), 0.5)));
        assert_eq!(pressures.0.lock().len(), NODES);
        assert_eq!(pressures.of("node-0255", Resource::Cpu).len(), 1);
    }
}
