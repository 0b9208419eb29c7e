use std::time::Duration;

use quota_core::{
    Account, Breach, Cut, Limit, Override, PerResource, Ratio, Resource, Scope, Timestamp, WindowLength,
};

use super::words::{cut_in_words, overriding_in_words, part_in_words};
use super::{Judged, Label, Overriding, Sentence};

/// Why an account has a limit of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// For how long it has had it, by the store's clock, where that is known.
    pub since: Option<Duration>,
    /// The limit, since when and why.
    pub why: Sentence,
}

/// A limit that is reached, and why it is what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The limit.
    pub breach: Breach,
    /// Where it is the account's own.
    pub explanation: Option<Explanation>,
    /// The account has a limit of its own on the node, be it this one or of another resource.
    pub heavy: bool,
    /// An operator has blocked the account.
    pub blocked: bool,
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
            since: Some(Duration::from_micros(now.since(cut.since))),
            why: cut_in_words(account, resource, cut, node, window.length()),
        }
    }

    /// Of a limit that an operator has set.
    fn of_override(said: &Overriding, resource: Resource, now: Timestamp) -> Option<Self> {
        if matches!(&said.word, Override::Limits(limits) if limits[resource].is_none()) {
            return None;
        }
        let since = said.said.map(|moment| Duration::from_micros(now.since(moment)));
        Some(Self { since, why: overriding_in_words(said) })
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
        let explanation = by.and_then(|by| match &by.cuts[breach.resource] {
            Some(cut) if breach.scope == Scope::Node => {
                Some(Explanation::new(&breach.account, breach.resource, cut, node.as_str(), now, window))
            }
            _ => Explanation::of_override(by.overriding.as_deref()?, breach.resource, now),
        });
        let said = by.and_then(|by| by.overriding.as_ref());
        let blocked = said.is_some_and(|said| said.word == Override::Blocked);
        let heavy = by.is_some_and(|by| by.cuts.iter().any(|(_, cut)| cut.is_some()));
        Self { breach, explanation, heavy, blocked }
    }

    /// The same of a request whose class may use so much of the limits; said where nothing else explains the limit.
    pub(super) fn of_part(mut self, class: &Label, part: Ratio) -> Self {
        if part < Ratio::ONE && self.explanation.is_none() {
            let why = part_in_words(&self.breach.account, class, part);
            self.explanation = Some(Explanation { since: None, why });
        }
        self
    }
}
