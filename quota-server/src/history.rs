use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use quota_core::{PerResource, Resource};

/// How often the fileservers are looked at.
pub(crate) const EVERY: Duration = Duration::from_secs(5);

/// How many of these looks are kept: 15 minutes.
pub(crate) const KEPT: usize = 180;

/// Of at most so many fileservers, the first by name: 16 bytes for each look and resource.
const NODES: usize = 256;

/// Pressure and limits of fileservers in the last 15 minutes, as far as this server has run.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<BTreeMap<Box<str>, Looks>>);

/// At one fileserver, the oldest first.
type Looks = VecDeque<PerResource<Look>>;

/// A resource of a fileserver at a moment. Both are shares from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Look {
    /// How loaded it is, where that was told.
    pub(crate) pressure: Option<f32>,
    /// The lowest limit in force, of a kind or of a single account, of the most that it can be; where limits adapt.
    pub(crate) lowest: Option<f32>,
}

impl History {
    /// Adds a look at all fileservers that are known. One that is not any more is forgotten.
    pub(crate) fn add(&self, nodes: impl IntoIterator<Item = (Box<str>, PerResource<Look>)>) {
        let mut kept = self.0.lock();
        let mut before = std::mem::take(&mut *kept);
        for (name, look) in nodes {
            let mut looks = before.remove(&name).unwrap_or_default();
            if looks.len() == KEPT {
                looks.pop_front();
            }
            looks.push_back(look);
            kept.insert(name, looks);
            if kept.len() > NODES {
                kept.pop_last();
            }
        }
    }

    /// Of a fileserver, the oldest first.
    pub(crate) fn of(&self, node: &str, resource: Resource) -> Vec<Look> {
        let kept = self.0.lock();
        kept.get(node).into_iter().flatten().map(|look| look[resource]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(name: String, cpu: f32) -> (Box<str>, PerResource<Look>) {
        let cpu = Look { pressure: Some(cpu), lowest: Some(1.0) };
        (name.into(), PerResource::new(cpu, Look::default(), Look::default()))
    }

    #[test]
    fn the_last_looks_are_kept_and_nodes_that_are_gone_are_not() {
        let history = History::default();
        for number in 0..=KEPT {
            history.add([look("a".to_owned(), number as f32), look("b".to_owned(), 1.0)]);
        }
        let cpu = history.of("a", Resource::Cpu);
        assert_eq!((cpu.len(), cpu[0].pressure, cpu[KEPT - 1].pressure), (KEPT, Some(1.0), Some(180.0)));
        assert_eq!(history.of("a", Resource::Memory), vec![Look::default(); KEPT]);
        history.add([look("b".to_owned(), 1.0)]);
        assert!(history.of("a", Resource::Cpu).is_empty());
    }

    #[test]
    fn there_are_not_more_than_so_many() {
        let history = History::default();
        history.add((0..1000).map(|number| look(format!("node-{number:04}"), 0.5)));
        assert_eq!(history.0.lock().len(), NODES);
        assert_eq!(history.of("node-0255", Resource::Cpu).len(), 1);
    }
}
