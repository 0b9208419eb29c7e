use std::collections::HashMap;

use quota_core::{Account, Adaptations, Kind, NodeState, PerKind, PerResource, Resource, Timestamp};

/// The limits of a node, as servers know them.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// Of all accounts of a kind.
    pub(super) kinds: PerResource<Option<PerKind<u64>>>,
    /// Of single accounts, by number.
    own: Vec<PerResource<Option<u64>>>,
    /// Those that have one.
    cut: Vec<usize>,
}

impl Limits {
    /// None, of so many accounts.
    pub(super) fn new(accounts: usize) -> Self {
        Self { kinds: PerResource::default(), own: vec![PerResource::default(); accounts], cut: Vec::new() }
    }

    /// What is in force now.
    pub(super) fn read(
        &mut self,
        state: &NodeState,
        numbers: &HashMap<Account, usize>,
        adaptations: &Adaptations,
        now: Timestamp,
    ) {
        for account in self.cut.drain(..) {
            self.own[account] = PerResource::default();
        }
        for (resource, controller) in state.controllers.iter() {
            let (Some(controller), Some(adaptation)) = (controller, &adaptations[resource]) else { continue };
            self.kinds[resource] = Some(controller.limits_at(now, adaptation));
            for (account, cut) in controller.cuts_at(now, adaptation) {
                if let Some(number) = numbers.get(&account) {
                    self.own[*number][resource] = Some(cut.limit);
                    self.cut.push(*number);
                }
            }
        }
    }

    /// What an account may use.
    pub(super) fn of(&self, account: usize, kind: Kind, resource: Resource) -> Option<u64> {
        let of_kind = self.kinds[resource].map(|limits| limits[kind]);
        self.own[account][resource].into_iter().chain(of_kind).min()
    }

    /// Whether an account has a limit of its own.
    pub(super) fn is_cut(&self, account: usize, resource: Resource) -> bool {
        self.own[account][resource].is_some()
    }

    /// The limits of single accounts.
    pub(super) fn own(&self, resource: Resource) -> impl Iterator<Item = (usize, u64)> {
        self.cut.iter().filter_map(move |account| Some((*account, self.own[*account][resource]?)))
    }
}
