//! Arguments and replies of the scripts, as the header of each describes them.

use quota_core::{
    Account, BUCKET_CAP, Bucket, Cost, Limit, Mark, Mode, PerResource, Resource, Settled, Snapshot, Tick,
    Timestamp, Usage, Window,
};
use redis::Value;

use crate::store::{Admitted, Entry, Limited, Snapshots, StoreError};

/// The head of a value, the sums in it, and each closed bucket after it.
const HEAD: usize = 42;
const SUMS: usize = 18;
const CLOSED: usize = 16;

/// A report's head with its mark, a charge and a release.
const REPORT: usize = 5 + 14;
const CHARGE: usize = 20;
const RELEASE: usize = 21;

/// The longest age that a script takes, in microseconds.
const MAX_AGE_MICROS: u64 = (1 << 40) - 1;

/// Stands for no limit: above every sum.
const UNLIMITED: u64 = (1 << 48) - 1;

/// What became of a report on one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// `None`: what is stored of the account cannot be read.
    pub(super) settled: Option<Settled>,
    /// Windows that were dated back.
    pub(super) rebased: u32,
}

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

/// What a report says of an account.
pub(super) fn report(mark: Option<Mark>, entry: &Entry) -> Vec<u8> {
    let Entry { charges, releases, .. } = entry;
    let mut packed = Vec::with_capacity(REPORT + CHARGE * charges.len() + RELEASE * releases.len());
    packed.push(u8::from(mark.is_some()));
    push(&mut packed, charges.len() as u64, 2);
    push(&mut packed, releases.len() as u64, 2);
    packed.extend_from_slice(mark.map_or([0; 7], |mark| *mark.source.as_bytes()).as_slice());
    push(&mut packed, mark.map_or(0, |mark| mark.sequence), 7);
    for charge in charges {
        // Above 12 days an age does not fit; below an hour it counts at all.
        push(&mut packed, u64::try_from(charge.age.as_micros()).unwrap_or(u64::MAX).min(MAX_AGE_MICROS), 5);
        amounts(&mut packed, charge.cost);
    }
    for release in releases {
        push(&mut packed, release.tick, 6);
        amounts(&mut packed, release.amounts);
    }
    packed
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

/// What became of reports, of which there are so many on each account of a call.
pub(super) fn outcomes(
    reply: &Value,
    reports: impl IntoIterator<Item = usize>,
) -> Result<Vec<Outcome>, StoreError> {
    let Value::BulkString(told) = reply else { return Err(malformed("settle: no string")) };
    let mut told = told.iter().copied();
    let mut next = || told.next().ok_or_else(|| malformed("settle: too short"));
    let mut outcomes = Vec::new();
    for reports in reports {
        // That the account was dated back is told with the first.
        let mut rebased = u32::from(next()?);
        for _ in 0..reports {
            let (status, excess) = (next()?, u16::from_le_bytes([next()?, next()?]));
            let settled = match status {
                b'A' => Some(Settled::Applied { excess_releases: excess.into() }),
                b'D' => Some(Settled::Duplicate),
                b'F' => Some(Settled::TooManySources),
                b'U' => None,
                _ => return Err(malformed("settle: status")),
            };
            outcomes.push(Outcome { settled, rebased: std::mem::take(&mut rebased) });
        }
    }
    Ok(outcomes)
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

/// What sums tell, or the head of a value and the closed buckets behind it. `None` where they are no window.
fn snapshot(state: &[u8]) -> Option<Snapshot> {
    if state.len() == SUMS {
        return Some(Snapshot::Below(sums(state)));
    }
    let (head, closed) = state.split_at_checked(HEAD)?;
    let (buckets, first) = (usize::from(head[40]), usize::from(head[41]));
    if closed.len() != buckets * CLOSED {
        return None;
    }
    let open = Bucket { tick: read(&head[1..7]), spent: spent(&head[25..40]) };
    let closed = closed
        .chunks_exact(CLOSED)
        .cycle()
        .skip(first)
        .take(buckets)
        .map(|bucket| Bucket { tick: tick(u64::from(bucket[0]), open.tick), spent: spent(&bucket[1..]) });
    let window = Window::from_buckets(open, closed)?;
    (*window.usage() == sums(&head[7..25])).then_some(Snapshot::Full(window))
}

fn sums(packed: &[u8]) -> Usage {
    PerResource::new(read(&packed[..6]), read(&packed[6..12]), read(&packed[12..18]))
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
