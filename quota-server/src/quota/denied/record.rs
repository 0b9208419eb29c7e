use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quota_core::{Account, Heaviest, Mode, Resource, Timestamp};

use super::Denied;
use super::part::Part;
use crate::store::Board;

/// How long a part of the record is.
pub(super) const PART: Duration = Duration::from_secs(300);

/// Parts that are kept beside the open one.
const PARTS: u64 = Board::DENIALS_KEPT.as_secs() / PART.as_secs();

/// Denials told apart in the open part; twice as many are held.
const OPEN: usize = 1000;

/// The most names of RPCs in a part. Whatever else is called, is [`OTHER`].
const MAX_RPCS: usize = 512;

/// Stands for the RPCs beyond.
pub(super) const OTHER: &str = "other";

/// What was denied on this server in the last hours, bounded whoever was: of each five minutes what was denied most often.
pub(crate) struct DenialRecord {
    /// The number of the open part, by the store's clock.
    number: u64,
    open: Heaviest<Denied, Timestamp>,
    rpcs: HashSet<Arc<str>>,
    /// Whether the open part has changed since it was posted.
    changed: bool,
    closed: VecDeque<Closed>,
}

/// A part that is over, as it is told to others.
struct Closed {
    number: u64,
    content: Vec<u8>,
    posted: bool,
}

impl Default for DenialRecord {
    fn default() -> Self {
        Self {
            number: 0,
            open: Heaviest::new(OPEN),
            rpcs: HashSet::new(),
            changed: false,
            closed: VecDeque::new(),
        }
    }
}

impl DenialRecord {
    pub(super) fn add(
        &mut self,
        now: Timestamp,
        account: &Account,
        resource: Resource,
        rpc: Option<&str>,
        mode: Mode,
    ) {
        self.advance(number(now));
        let rpc = rpc.map(|rpc| self.name(rpc));
        let denied = Denied { account: account.clone(), resource, rpc, enforced: mode == Mode::Enforce };
        self.open.add(&denied, 1, now, || denied.clone());
        self.changed = true;
    }

    /// The parts that were not over at a moment.
    pub(super) fn parts(&self, from: Timestamp) -> Vec<Part> {
        let closed = self.closed.iter().filter(|closed| closed.number >= number(from));
        let mut parts: Vec<Part> = closed.filter_map(|closed| Part::read(&closed.content)).collect();
        if self.number >= number(from) {
            parts.push(Part::new(&self.open));
        }
        parts
    }

    /// What has changed since it was posted, which it counts as from now on.
    pub(super) fn unposted(&mut self) -> Vec<(u64, Vec<u8>)> {
        let mut unposted = Vec::new();
        for closed in self.closed.iter_mut().filter(|closed| !closed.posted) {
            closed.posted = true;
            unposted.push((closed.number, closed.content.clone()));
        }
        if std::mem::take(&mut self.changed) {
            unposted.push((self.number, Part::new(&self.open).write()));
        }
        unposted
    }

    /// A part was not posted.
    pub(super) fn post_again(&mut self, number: u64) {
        if number == self.number {
            self.changed = true;
        }
        self.closed.iter_mut().filter(|closed| closed.number == number).for_each(|closed| {
            closed.posted = false;
        });
    }

    /// Opens the part of this number. A clock that steps back goes on in the one that is open.
    fn advance(&mut self, number: u64) {
        if number <= self.number {
            return;
        }
        let open = std::mem::replace(&mut self.open, Heaviest::new(OPEN));
        self.rpcs.clear();
        if !open.is_empty() {
            let (content, posted) = (Part::new(&open).write(), !self.changed);
            self.closed.push_back(Closed { number: self.number, content, posted });
        }
        (self.number, self.changed) = (number, false);
        let oldest = number.saturating_sub(PARTS);
        while self.closed.front().is_some_and(|closed| closed.number < oldest) {
            self.closed.pop_front();
        }
    }

    fn name(&mut self, rpc: &str) -> Arc<str> {
        if let Some(known) = self.rpcs.get(rpc) {
            return Arc::clone(known);
        }
        let name: Arc<str> = if self.rpcs.len() < MAX_RPCS { rpc.into() } else { OTHER.into() };
        self.rpcs.insert(Arc::clone(&name));
        name
    }
}

fn number(moment: Timestamp) -> u64 {
    moment.as_micros() / PART.as_micros() as u64
}
