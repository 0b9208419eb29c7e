//! Amounts of time, and what operators say, in a few words.

use std::collections::HashMap;
use std::time::Duration;

use quota_core::{Account, Kind, Limit, Override, Place, Resource, WindowLength};

use crate::quota::{Explanation, NodeStanding, OverrideStanding, limit_in_words, override_in_words};

/// In the largest unit of which there are two, rounded down.
pub(super) fn duration(duration: Duration) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400, "days"), (3600, "h"), (60, "min")];
    let seconds = duration.as_secs();
    match UNITS.into_iter().find(|(unit, _)| seconds >= 2 * unit) {
        Some((unit, name)) => format!("{} {name}", seconds / unit),
        None => format!("{seconds} s"),
    }
}

/// What may be used within a window.
pub(super) fn limit(resource: Resource, limit: Limit, window: WindowLength) -> String {
    match limit {
        Limit::At(amount) => limit_in_words(resource, amount, window.length()),
        Limit::Unlimited => "unlimited".to_owned(),
    }
}

/// What was spent in a bucket of a window.
pub(super) fn spent(resource: Resource, amount: u64, window: WindowLength) -> String {
    limit_in_words(resource, amount, Duration::from_micros(window.bucket_micros()))
}

/// Several accounts of a kind.
pub(super) const fn accounts(kind: Kind) -> &'static str {
    match kind {
        Kind::Repo => "repositories",
        Kind::User => "users",
        Kind::Ip => "addresses",
    }
}

/// A part of the system that can be switched.
pub(super) fn part(place: &Place) -> String {
    match place {
        Place::System => "everything".to_owned(),
        Place::Kind(kind) => format!("all {}", accounts(*kind)),
        Place::Node(node) => format!("fileserver {node}"),
    }
}

/// What an operator says of an account, and why.
pub(super) fn said(said: &OverrideStanding, window: WindowLength) -> String {
    format!("{}: {}", override_in_words(&said.word, window), said.reason)
}

/// What is said of accounts and limits them on fileservers, to be looked up for each row of a page.
pub(super) struct Known<'a> {
    /// By account; of two for the same one, the one that holds comes first.
    overrides: &'a [OverrideStanding],
    cuts: HashMap<(&'a Account, Resource), &'a Explanation>,
    window: WindowLength,
}

impl<'a> Known<'a> {
    pub(super) fn new(
        overrides: &'a [OverrideStanding],
        nodes: &'a [NodeStanding],
        window: WindowLength,
    ) -> Self {
        let mut cuts = HashMap::new();
        for (limit, explanation) in nodes.iter().flat_map(|node| &node.accounts) {
            cuts.entry((&limit.account, limit.resource)).or_insert(explanation);
        }
        Self { overrides, cuts, window }
    }

    /// Why an account is refused for what it uses of a resource, as far as that is known by now.
    pub(super) fn why(&self, account: &Account, resource: Resource) -> String {
        let first = self.overrides.partition_point(|said| said.account < *account);
        let holds = self.overrides.get(first).filter(|said| said.account == *account);
        match (holds, self.cuts.get(&(account, resource))) {
            (Some(blocked), _) if blocked.word == Override::Blocked => said(blocked, self.window),
            (_, Some(explanation)) => explanation.why.to_string(),
            (Some(own), None) => said(own, self.window),
            (None, None) => format!("its limit of {resource}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use quota_core::Ipv6Prefix;

    use super::*;
    use crate::quota::OverrideOrigin;

    #[test]
    fn a_time_is_told_in_a_unit_that_says_something() {
        let told = |seconds| duration(Duration::from_secs(seconds));
        let told = [0, 119, 120, 7199, 7200, 172_799, 172_800].map(told);
        assert_eq!(told, ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 days"]);
    }

    #[test]
    fn of_many_words_the_one_of_the_account_that_holds_is_found() {
        let account = |id: &str| Account::new(Kind::User, id, Ipv6Prefix::default()).unwrap();
        let word = |id: &str, reason: &str| OverrideStanding {
            account: account(id),
            word: Override::Blocked,
            reason: reason.into(),
            author: "admin".into(),
            origin: OverrideOrigin::Api,
            expires_in: None,
        };
        let overrides = [word("a", "1"), word("b", "2"), word("b", "3"), word("d", "4")];
        let known = Known::new(&overrides, &[], WindowLength::default());
        let why = ["a", "b", "c", "d"].map(|id| known.why(&account(id), Resource::Cpu));
        assert_eq!(why, ["blocked: 1", "blocked: 2", "its limit of cpu", "blocked: 4"]);
    }
}
