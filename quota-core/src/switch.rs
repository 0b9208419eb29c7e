//! How far limits are enforced at all, by an operator's word on the whole system, one node, or one kind of account.

use std::collections::BTreeMap;

use crate::{Bound, Kind, Mode, PerKind};

/// A part of the system that an operator can switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// All of it.
    System,
    /// Every account of a kind.
    Kind(Kind),
    /// One fileserver.
    Node(Box<str>),
}

/// The most that is done when a limit is reached; where nothing is said, what the limit says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switch {
    system: Option<Mode>,
    kinds: PerKind<Option<Mode>>,
    nodes: BTreeMap<Box<str>, Mode>,
}

impl Switch {
    /// Sets one part.
    pub fn set(&mut self, place: Place, mode: Mode) {
        match place {
            Place::System => self.system = Some(mode),
            Place::Kind(kind) => self.kinds[kind] = Some(mode),
            Place::Node(node) => drop(self.nodes.insert(node, mode)),
        }
    }

    /// The most for an account of a kind on a node: the least of what is said of either and of the system.
    pub fn most(&self, kind: Kind, node: Option<&str>) -> Mode {
        let of_node = node.and_then(|node| self.nodes.get(node).copied());
        [self.system, self.kinds[kind], of_node].into_iter().flatten().min().unwrap_or(Mode::Enforce)
    }
}

impl Bound {
    /// The same limit, with no more done about it than this.
    #[must_use]
    pub fn at_most(self, mode: Mode) -> Self {
        Self { mode: self.mode.min(mode), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;

    #[test]
    fn the_least_of_system_kind_and_node_holds_and_never_raises_a_limit_s_mode() {
        let mut switch = Switch::default();
        let most = |switch: &Switch| {
            [(Kind::User, None), (Kind::User, Some("a")), (Kind::Repo, Some("a")), (Kind::Repo, Some("b"))]
                .map(|(kind, node)| switch.most(kind, node))
        };
        use Mode::{Enforce, Off, Shadow};
        assert_eq!(most(&switch), [Enforce; 4]);
        switch.set(Place::Node("a".into()), Shadow);
        assert_eq!(most(&switch), [Enforce, Shadow, Shadow, Enforce]);
        switch.set(Place::Kind(Kind::User), Off);
        assert_eq!(most(&switch), [Off, Off, Shadow, Enforce]);
        switch.set(Place::System, Shadow);
        assert_eq!(most(&switch), [Off, Off, Shadow, Shadow]);
        switch.set(Place::System, Enforce);
        assert_eq!(most(&switch), [Off, Off, Shadow, Enforce], "it undoes nothing that is said of a part");

        for (own, most, least) in [(Enforce, Shadow, Shadow), (Shadow, Enforce, Shadow), (Off, Shadow, Off)] {
            let bound = Bound { limit: Limit::At(7), mode: own };
            assert_eq!(bound.at_most(most), Bound { limit: Limit::At(7), mode: least });
        }
    }
}
