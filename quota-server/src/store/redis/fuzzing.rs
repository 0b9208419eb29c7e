use quota_core::{
    Account, Bound, Comparison, Cost, Kind, Limit, Mode, NodeReport, PerResource, Resource, Snapshot,
    Subject, Timestamp, WindowLength, decide,
};
use redis::Value;

use super::{cluster, codec, index, node_codec, slots, words};
use crate::quota;
use crate::store::{Calibrated, Snapshots};

/// A reply may hold lists in lists, but none of Redis's holds so many.
const DEEPEST: usize = 8;

/// What Redis answers: a byte says to what, and the rest is the answer.
///
/// Whatever it says: it is an error, or a window of the size that a window has, a wait of a window at most, and shares that
/// are shares.
pub(crate) fn replies(input: &[u8]) {
    let Some((question, mut rest)) = input.split_first() else { return };
    let (accounts, answer) = (accounts(), value(&mut rest, 0));
    let list = match &answer {
        Value::Array(list) => &list[..],
        _ => &[],
    };
    match question % 9 {
        0 => {
            if let Ok(admitted) = codec::admitted(list, &accounts) {
                assert_eq!(admitted.ticks.len(), accounts.len());
                check(&accounts, admitted.snapshots);
            }
        }
        1 => {
            if let Ok(snapshots) = codec::snapshots(list, &accounts) {
                check(&accounts, snapshots);
            }
        }
        2 => {
            if let Ok(told) = codec::outcomes(&answer, [1, 2]) {
                assert_eq!(told.len(), 3);
            }
        }
        3 => {
            if let Ok(Calibrated { state, now, .. }) = node_codec::calibrated(list, &NodeReport::default()) {
                quota::fuzzing::node(state, now);
            }
        }
        4 => {
            let stored = [Some(answer)];
            let now = Timestamp::from_micros(1_764_500_000_123_456);
            let told = node_codec::nodes(now, &["node"], &stored, Default::default());
            for node in told.into_iter().flat_map(|told| told.nodes) {
                quota::fuzzing::node(node.state, now);
            }
        }
        5 => drop(slots::leased(list)),
        6 => drop(list.chunks(2).filter_map(words::word_of).count()),
        7 => drop(list.chunks(2).filter_map(index::name).count()),
        _ => cluster::fuzzing::told(&answer),
    }
}

/// One value in a form in which any bytes are one, so that a change of a byte changes the value and not its shape: a byte for
/// its kind; 8 for an integer, 2 for the length of a string, 1 for that of a list.
fn value(rest: &mut &[u8], depth: usize) -> Value {
    let mut take = |most: usize| {
        let (taken, left) = rest.split_at(most.min(rest.len()));
        *rest = left;
        taken
    };
    match take(1).first().map(|kind| kind % 4) {
        Some(1) => {
            let mut integer = [0; 8];
            let taken = take(8);
            integer[..taken.len()].copy_from_slice(taken);
            Value::Int(i64::from_le_bytes(integer))
        }
        Some(2) => {
            let length = codec::read(take(2));
            Value::BulkString(take(usize::try_from(length).unwrap_or_default()).to_vec())
        }
        Some(3) if depth < DEEPEST => {
            let length = take(1).first().copied().unwrap_or_default();
            Value::Array((0..length).map(|_| value(rest, depth + 1)).collect())
        }
        _ => Value::Nil,
    }
}

fn accounts() -> Vec<Account> {
    let named = [(Kind::Repo, "project-42"), (Kind::User, "user-7"), (Kind::Ip, "192.0.2.7")];
    named.into_iter().filter_map(|(kind, id)| Account::from_spelling(kind, id).ok()).collect()
}

fn check(accounts: &[Account], Snapshots { now, accounts: told, .. }: Snapshots) {
    let window = WindowLength::default();
    assert_eq!(told.len(), accounts.len());
    for (account, snapshot) in accounts.iter().zip(told) {
        if let Snapshot::Full(told) = &snapshot {
            for resource in Resource::ALL {
                let by_bucket = told.by_bucket(resource);
                assert!(by_bucket.iter().all(|spent| *spent <= Cost::BUCKET.amounts()[resource]));
                assert_eq!(by_bucket.iter().sum::<u64>(), told.usage()[resource]);
            }
        }
        let ceiling = Bound { limit: Limit::At(1), mode: Mode::Enforce };
        let comparisons = PerResource::from_fn(|_| Comparison { ceiling, here: None });
        let subject = Subject { account: account.clone(), comparisons, until: None, snapshot };
        if let Some(breach) = decide([&subject], now, window).denied_by {
            assert!(breach.retry_after <= window.length(), "{breach:?}");
        }
    }
}
