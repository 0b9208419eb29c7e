use quota_core::{Account, Heaviest, Kind, Resource, Timestamp};
use serde::{Deserialize, Serialize};

use super::Denied;

/// The most denials of a part that are told apart once it is over.
const MOST: usize = 512;

/// The most bytes of names in a part.
const MOST_BYTES: usize = 32 << 10;

/// What was denied in a part of time, as it is kept and told to other servers: JSON, below 80 KB whatever the names.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    /// The most that any was denied beside its count.
    pub(super) missed: u64,
    denials: Vec<Row>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    kind: String,
    id: String,
    resource: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rpc: Option<String>,
    enforced: bool,
    count: u64,
    /// When the last was, in microseconds by the store's clock.
    last: u64,
}

impl Part {
    pub(super) fn new(denied: &Heaviest<Denied, Timestamp>) -> Self {
        let heaviest = denied.heaviest(MOST + 1);
        let (mut bytes, mut denials) = (0, Vec::new());
        let mut dropped = 0;
        for (denied, kept) in heaviest {
            bytes += denied.account.id().len() + denied.rpc.as_ref().map_or(0, |rpc| rpc.len());
            if denials.len() == MOST || bytes > MOST_BYTES {
                dropped = kept.amount;
                break;
            }
            denials.push(Row {
                kind: denied.account.kind().as_str().to_owned(),
                id: denied.account.id().to_owned(),
                resource: denied.resource.as_str().to_owned(),
                rpc: denied.rpc.as_deref().map(str::to_owned),
                enforced: denied.enforced,
                count: kept.amount,
                last: kept.note.as_micros(),
            });
        }
        Self { missed: denied.missed().saturating_add(dropped), denials }
    }

    pub(super) fn write(&self) -> Vec<u8> {
        // Of texts and numbers nothing fails to be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// `None`, and a line in the log, where it cannot be read.
    pub(super) fn read(content: &[u8]) -> Option<Self> {
        serde_json::from_slice(content)
            .inspect_err(|error| {
                // Its text may repeat what is there, such as the name of an account.
                let (fault, column) = (error.classify(), error.column());
                tracing::warn!(?fault, column, "what was denied cannot be read");
            })
            .ok()
    }

    /// Each with how often it was, and when last. A name that is none is nobody's.
    pub(super) fn denials(self) -> impl Iterator<Item = (Denied, u64, Timestamp)> {
        self.denials.into_iter().filter_map(|row| {
            let kind: Kind = row.kind.parse().ok()?;
            let account = Account::from_spelling(kind, &row.id).ok()?;
            let resource = Resource::ALL.into_iter().find(|resource| resource.as_str() == row.resource)?;
            let rpc = row.rpc.map(Into::into);
            let denied = Denied { account, resource, rpc, enforced: row.enforced };
            Some((denied, row.count, Timestamp::from_micros(row.last)))
        })
    }
}
