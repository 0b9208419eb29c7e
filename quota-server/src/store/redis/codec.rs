//! Arguments and replies of the scripts, as the header of each describes them.

use quota_core::{
    Account, BUCKET_CAP, Bucket, Charge, Cost, Limit, Mark, Mode, PerResource, Release, Resource, Settled,
    Snapshot, Tick, Timestamp, Usage, Window,
};
use redis::Value;

use crate::store::{Admitted, Entry, Limited, Settlement, Snapshots, StoreError};

/// The head of a value, and each closed bucket after it.
const HEAD: usize = 42;
const CLOSED: usize = 16;

/// The longest age that a script takes, in microseconds.
const MAX_AGE_MICROS: u64 = (1 << 40) - 1;

/// Stands for no limit: above every sum.
const UNLIMITED: u64 = (1 << 48) - 1;

pub(super) fn price(price: Cost) -> Vec<u8> {
    let mut packed = Vec::with_capacity(15);
    amounts(&mut packed, price);
    packed
}

pub(super) fn bounds(accounts: &[Limited]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(21 * accounts.len());
    for (_, bound) in accounts.iter().flat_map(|limited| limited.bounds.iter()) {
        let limit = match bound.limit {
            Limit::At(amount) if bound.mode != Mode::Off => amount.min(UNLIMITED),
            Limit::At(_) | Limit::Unlimited => UNLIMITED,
        };
        push(&mut packed, limit, 6);
        packed.push(u8::from(bound.mode == Mode::Enforce));
    }
    packed
}

pub(super) fn mark(mark: Option<Mark>) -> Vec<u8> {
    let mut packed = Vec::with_capacity(14);
    if let Some(mark) = mark {
        packed.extend_from_slice(mark.source.as_bytes());
        push(&mut packed, mark.sequence, 7);
    }
    packed
}

pub(super) fn charges(charges: &[Charge]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(20 * charges.len());
    for charge in charges {
        // Above 12 days an age does not fit; below an hour it counts at all.
        push(&mut packed, u64::try_from(charge.age.as_micros()).unwrap_or(u64::MAX).min(MAX_AGE_MICROS), 5);
        amounts(&mut packed, charge.cost);
    }
    packed
}

pub(super) fn releases(releases: &[Release]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(21 * releases.len());
    for release in releases {
        push(&mut packed, release.tick, 6);
        amounts(&mut packed, release.amounts);
    }
    packed
}

/// Cuts a report into calls of at most so many accounts and charges; each entry alone is within the bound.
pub(super) fn chunks(entries: &[Entry], accounts: usize, charges: usize) -> Vec<&[Entry]> {
    let (mut chunks, mut start, mut size) = (Vec::new(), 0, 0);
    for (at, entry) in entries.iter().enumerate() {
        let more = entry.charges.len().max(entry.releases.len());
        if at > start && (at - start == accounts || size + more > charges) {
            chunks.push(&entries[start..at]);
            (start, size) = (at, 0);
        }
        size += more;
    }
    chunks.push(&entries[start..]);
    chunks.retain(|chunk| !chunk.is_empty());
    chunks
}

pub(super) fn admitted<'a>(
    reply: &[Value],
    accounts: impl IntoIterator<Item = &'a Account>,
) -> Result<Admitted, StoreError> {
    let [seconds, micros, tick, allowed, rebased, states @ ..] = reply else {
        return Err(malformed("admit: too short"));
    };
    let snapshots = states_of(seconds, micros, rebased, states, accounts)?;
    let ticks = vec![integer(tick)?; snapshots.accounts.len()];
    Ok(Admitted { allowed: integer(allowed)? == 1, ticks, snapshots })
}

pub(super) fn snapshots<'a>(
    reply: &[Value],
    accounts: impl IntoIterator<Item = &'a Account>,
) -> Result<Snapshots, StoreError> {
    let [seconds, micros, rebased, states @ ..] = reply else { return Err(malformed("standing: too short")) };
    states_of(seconds, micros, rebased, states, accounts)
}

/// Adds what became of one call; an account that failed is the error, after all others are counted.
pub(super) fn settled<'a>(
    reply: &[Value],
    accounts: impl IntoIterator<Item = &'a Account>,
    settlement: &mut Settlement,
) -> Result<(), StoreError> {
    let [rebased, excess, Value::BulkString(status)] = reply else { return Err(malformed("settle: shape")) };
    settlement.rebased += small(rebased)?;
    settlement.excess_releases += small(excess)?;
    let mut status = status.iter();
    let mut outcome = Ok(());
    for account in accounts {
        outcome = outcome.and(match status.next() {
            Some(b'A') => settlement.count(account, Settled::Applied { excess_releases: 0 }),
            Some(b'D') => settlement.count(account, Settled::Duplicate),
            Some(b'F') => settlement.count(account, Settled::TooManySources),
            Some(b'U') => Err(StoreError::Corrupt(account.clone())),
            _ => Err(malformed("settle: status")),
        });
    }
    outcome
}

fn states_of<'a>(
    seconds: &Value,
    micros: &Value,
    rebased: &Value,
    states: &[Value],
    accounts: impl IntoIterator<Item = &'a Account>,
) -> Result<Snapshots, StoreError> {
    let now = timestamp(seconds, micros)?;
    let mut states = states.iter();
    let accounts = accounts
        .into_iter()
        .map(|account| match states.next() {
            Some(Value::BulkString(state)) => {
                snapshot(state).ok_or_else(|| StoreError::Corrupt(account.clone()))
            }
            _ => Err(malformed("a state is missing")),
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Snapshots { now, accounts, rebased: small(rebased)? })
}

/// What the head of a value and the closed buckets behind it tell. `None` where they are no window.
fn snapshot(state: &[u8]) -> Option<Snapshot> {
    let (head, closed) = state.split_at_checked(HEAD)?;
    let sums = PerResource::new(read(&head[7..13]), read(&head[13..19]), read(&head[19..25]));
    let buckets = usize::from(head[40]);
    if closed.is_empty() && buckets > 0 {
        return Some(Snapshot::Below(sums));
    }
    if closed.len() != buckets * CLOSED {
        return None;
    }
    let open = Bucket { tick: read(&head[1..7]), spent: spent(&head[25..40]) };
    let closed = closed
        .chunks_exact(CLOSED)
        .map(|bucket| Bucket { tick: tick(u64::from(bucket[0]), open.tick), spent: spent(&bucket[1..]) });
    let window = Window::from_buckets(open, closed)?;
    (*window.usage() == sums).then_some(Snapshot::Full(window))
}

/// The tick before `open` whose last byte is `low`.
fn tick(low: u64, open: Tick) -> Tick {
    open.saturating_sub(open.wrapping_sub(low) % 256)
}

fn spent(packed: &[u8]) -> Usage {
    PerResource::new(read(&packed[..5]), read(&packed[5..10]), read(&packed[10..15]))
}

fn amounts(packed: &mut Vec<u8>, cost: Cost) {
    for resource in Resource::ALL {
        push(packed, cost.amounts()[resource].min(BUCKET_CAP), 5);
    }
}

/// Appends the low `bytes` of a value that fits them, little-endian.
pub(super) fn push(packed: &mut Vec<u8>, value: u64, bytes: usize) {
    packed.extend_from_slice(&value.to_le_bytes()[..bytes]);
}

pub(super) fn read(packed: &[u8]) -> u64 {
    packed.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// What `TIME` says.
pub(super) fn timestamp(seconds: &Value, micros: &Value) -> Result<Timestamp, StoreError> {
    let micros = integer(seconds)?.saturating_mul(1_000_000).saturating_add(integer(micros)?);
    Ok(Timestamp::from_micros(micros))
}

pub(super) fn integer(value: &Value) -> Result<u64, StoreError> {
    match value {
        Value::Int(int) => u64::try_from(*int).map_err(|_| malformed("a negative integer")),
        _ => Err(malformed("no integer")),
    }
}

pub(super) fn small(value: &Value) -> Result<u32, StoreError> {
    u32::try_from(integer(value)?).map_err(|_| malformed("a count out of range"))
}

pub(super) fn malformed(what: &str) -> StoreError {
    StoreError::Malformed(what.to_owned())
}
