use std::sync::Arc;

use quota_core::{Account, Heaviest, Kept, Kind, PerKind, PerResource, Resource};
use serde::{Deserialize, Serialize};

/// The most accounts in one list of a summary.
const MOST: usize = 256;

/// The most bytes of names in one list: of names of ordinary length, all find room.
const MOST_BYTES: usize = 32 << 10;

/// The heaviest accounts as a server tells them to others: JSON, below 700 KB whatever the names.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Summary {
    used: Vec<Used>,
    denied: Vec<Denied>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Used {
    kind: String,
    resource: String,
    /// By id, in internal units.
    accounts: Vec<(String, u64)>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Denied {
    kind: String,
    /// How often, by id.
    accounts: Vec<(String, u64)>,
}

impl Summary {
    pub(super) fn new(
        used: &PerKind<PerResource<Heaviest<Arc<Account>>>>,
        denied: &Heaviest<Arc<Account>>,
    ) -> Self {
        let used = used.iter().flat_map(|(kind, used)| {
            used.iter().map(move |(resource, heaviest)| Used {
                kind: kind.as_str().to_owned(),
                resource: resource.as_str().to_owned(),
                accounts: named(heaviest.heaviest(MOST)),
            })
        });
        let denials = denied.heaviest(MOST);
        let denied = Kind::ALL.map(|kind| Denied {
            kind: kind.as_str().to_owned(),
            accounts: named(denials.iter().filter(|(account, _)| account.kind() == kind).copied()),
        });
        Self {
            used: used.filter(|used| !used.accounts.is_empty()).collect(),
            denied: denied.into_iter().filter(|denied| !denied.accounts.is_empty()).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used.is_empty() && self.denied.is_empty()
    }

    /// Who used most of a resource.
    pub(super) fn used(&self, kind: Kind, resource: Resource) -> impl Iterator<Item = (Arc<Account>, Kept)> {
        let used = self
            .used
            .iter()
            .filter(move |used| used.kind == kind.as_str() && used.resource == resource.as_str());
        used.flat_map(move |used| accounts(kind, &used.accounts))
    }

    /// Who of a kind was denied how often.
    pub(super) fn denied(&self, kind: Kind) -> impl Iterator<Item = (Arc<Account>, Kept)> {
        let denied = self.denied.iter().filter(move |denied| denied.kind == kind.as_str());
        denied.flat_map(move |denied| accounts(kind, &denied.accounts))
    }
}

fn named<'a>(heaviest: impl IntoIterator<Item = (&'a Arc<Account>, Kept)>) -> Vec<(String, u64)> {
    let mut bytes = 0;
    let named = heaviest.into_iter().map(|(account, kept)| (account.id().to_owned(), kept.amount));
    named
        .take_while(|(id, _)| {
            bytes += id.len();
            bytes <= MOST_BYTES
        })
        .collect()
}

/// A name that is none is nobody's.
fn accounts(kind: Kind, named: &[(String, u64)]) -> impl Iterator<Item = (Arc<Account>, Kept)> {
    named.iter().filter_map(move |(id, amount)| {
        let account = Account::from_spelling(kind, id).ok()?;
        Some((Arc::new(account), Kept { amount: *amount, note: () }))
    })
}
