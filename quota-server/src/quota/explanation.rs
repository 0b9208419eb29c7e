use std::time::Duration;

use quota_core::{Account, Breach, Cut, Limit, PerResource, Resource, Scope, Timestamp, WindowLength};

use super::words::cut_in_words;
use super::{Judged, Label};

/// Why an account has a limit of its own on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// For how long it has had it, by the store's clock.
    pub since: Duration,
    /// The limit, since when and why, as a sentence.
    pub why: String,
}

/// A limit that is reached, and why it is what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The limit.
    pub breach: Breach,
    /// Where it is the account's own on the node.
    pub explanation: Option<Explanation>,
    /// The account has a limit of its own on the node, be it this one or of another resource.
    pub heavy: bool,
}

/// The limit of a single account on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountLimit {
    /// Whose.
    pub account: Account,
    /// Of what.
    pub resource: Resource,
    /// The most that it may use within a window.
    pub limit: Limit,
}

impl Explanation {
    pub(super) fn new(
        account: &Account,
        resource: Resource,
        cut: &Cut,
        node: &str,
        now: Timestamp,
        window: WindowLength,
    ) -> Self {
        Self {
            since: Duration::from_micros(now.since(cut.since)),
            why: cut_in_words(account, resource, cut, node, window.length()),
        }
    }

    /// Of each resource of which the account has a limit of its own.
    pub(super) fn of(
        judged: &Judged,
        node: &Label,
        now: Timestamp,
        window: WindowLength,
    ) -> PerResource<Option<Self>> {
        PerResource::from_fn(|resource| {
            let cut = judged.cuts[resource].as_ref()?;
            Some(Self::new(&judged.subject.account, resource, cut, node.as_str(), now, window))
        })
    }
}

impl Denial {
    /// Of a breach by one of these accounts.
    pub(super) fn new(
        breach: Breach,
        judged: &[Judged],
        node: &Label,
        now: Timestamp,
        window: WindowLength,
    ) -> Self {
        let by = judged.iter().find(|judged| judged.subject.account == breach.account);
        let explanation = by.filter(|_| breach.scope == Scope::Node).and_then(|by| {
            let cut = by.cuts[breach.resource].as_ref()?;
            Some(Explanation::new(&breach.account, breach.resource, cut, node.as_str(), now, window))
        });
        let heavy = by.is_some_and(|by| by.cuts.iter().any(|(_, cut)| cut.is_some()));
        Self { breach, explanation, heavy }
    }
}
