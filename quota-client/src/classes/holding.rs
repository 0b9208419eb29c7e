//! What this process holds of a class: pure, the time is an argument.

mod block;
mod keeping;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use slab::Slab;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub(super) use self::block::{Block, BlockId};
use super::answer::{COME_BACK, Policy};
use super::figures::ClassFigures;
use super::no_slot::{NoSlot, NoSlotReason};
use super::slot::Slot;
use crate::work::Work;
use crate::{Denial, Meter};

/// For how long the word that there is no slot stands, where more requests than one ask within it.
const STANDS: Duration = Duration::from_millis(50);

/// The most measurements that are kept until they are looked at, once a second.
const MOST_KEPT: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Holding {
    terms: Terms,
    /// The name that the service gives the class.
    class: Arc<str>,
    policy: Policy,
    /// Whether its requests may use a part of the limits of an account alone.
    partial: bool,
    /// Whether the service did not answer when it was last asked.
    away: bool,
    blocks: Vec<Block>,
    /// Slots in use that are to be given up as their requests end: more are leased than the cap, which was lowered.
    surplus: u32,
    /// When it is looked at next how many these are.
    sheds: Option<Instant>,
    last_block: BlockId,
    running: Slab<Running>,
    waiting: VecDeque<Waiting>,
    last_waiter: u64,
    /// There was no slot, and when that was said.
    refused: Option<(Instant, NoSlotReason, Duration)>,
    /// Whether the keeper is to be woken.
    wanted: bool,
    /// Requests since slots were last asked for: as many may come again.
    entered: u32,
    /// Those whose lease has ended while they ran, and that was not told yet.
    overrun: u32,
    /// Those that have ended, and that was not told yet.
    finished: u32,
    took: Duration,
    figures: ClassFigures,
}

/// What is known of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Terms {
    #[default]
    Untold,
    /// The service knows no such class: its requests are of the class of those that name none.
    Unknown,
    /// Until then it need not be asked again.
    Uncapped(Instant),
    Capped,
}

#[derive(Debug)]
struct Running {
    /// Of which block its slot is; none of one that has run for too long, or whose lease has ended.
    block: Option<BlockId>,
    since: Instant,
    /// What is told to end where it runs for too long. It ends when it ends, whoever still holds its slot.
    work: Weak<Work>,
    /// It ran for too long, and this is what it is told.
    stopped: Option<Denial>,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    since: Instant,
    sender: oneshot::Sender<Handed>,
}

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Entry {
    /// It needs no slot.
    Free,
    Runs(usize),
    Refused(NoSlot),
    /// Nothing is known yet.
    NotTold,
    Waits {
        waiter: u64,
        until: Instant,
        receiver: oneshot::Receiver<Handed>,
    },
}

/// What becomes of one that waits.
#[derive(Debug)]
pub(super) enum Handed {
    Free,
    Slot(Slot),
    Refused(NoSlot),
}

/// What is to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// How the class is served, and slots, where some are needed.
    Acquire(Wanted),
    Renew(Renewal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) count: u32,
    pub(super) spare: u32,
    /// How many have overrun, which is told along with it.
    pub(super) overrun: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Renewal {
    pub(super) block: BlockId,
    pub(super) lease: Vec<u8>,
    pub(super) count: u32,
    /// How many requests have ended, which is told along with it, and what they took in all.
    pub(super) finished: u32,
    pub(super) took: Duration,
}

impl Holding {
    /// A request that asked at a moment. One that does not wait is answered by then when the service answers; another waits as
    /// long as its class lets it.
    pub(super) fn enter(&mut self, now: Instant, answered: Instant, deadline: Option<Instant>) -> Entry {
        match self.terms {
            Terms::Untold => {
                self.wanted = true;
                return if self.away { Entry::Free } else { Entry::NotTold };
            }
            Terms::Unknown => return Entry::Free,
            Terms::Uncapped(until) => {
                self.wanted |= until <= now;
                return Entry::Free;
            }
            Terms::Capped => {}
        }
        self.entered = self.entered.saturating_add(1);
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Entry::Refused(self.refusal(NoSlotReason::DeadlinePassed, Duration::ZERO));
        }
        if self.waiting.is_empty()
            && let Some(key) = self.begin(now, Duration::ZERO)
        {
            return Entry::Runs(key);
        }
        let longest = match self.policy.waits {
            None => {
                if let Some((said, reason, retry_after)) = self.refused
                    && now < said + STANDS
                {
                    return Entry::Refused(self.refusal(reason, retry_after));
                }
                answered
            }
            Some((max_wait, max_queue)) => {
                if self.waiting.len() >= max_queue {
                    return Entry::Refused(self.refusal(NoSlotReason::QueueFull, max_wait));
                }
                now + max_wait
            }
        };
        let until = deadline.map_or(longest, |deadline| deadline.min(longest));
        self.last_waiter += 1;
        self.wanted = true;
        let (sender, receiver) = oneshot::channel();
        self.waiting.push_back(Waiting { id: self.last_waiter, since: now, sender });
        Entry::Waits { waiter: self.last_waiter, until, receiver }
    }

    /// One that waited from a moment on waits no more.
    pub(super) fn waited(&mut self, since: Instant, deadline: Option<Instant>, now: Instant) -> NoSlot {
        let reason = if deadline.is_some_and(|deadline| deadline <= now) {
            NoSlotReason::DeadlinePassed
        } else if self.policy.waits.is_none() {
            NoSlotReason::Away
        } else {
            NoSlotReason::WaitedTooLong
        };
        self.refusal(reason, now.saturating_duration_since(since).max(COME_BACK))
    }

    pub(super) fn leave(&mut self, waiter: u64) {
        self.waiting.retain(|waiting| waiting.id != waiter);
    }

    /// Who waits next, and its slot, where there is one; none is needed where the class has no cap any more.
    pub(super) fn next(&mut self, now: Instant) -> Option<(oneshot::Sender<Handed>, Option<usize>)> {
        loop {
            let since = self.waiting.front()?.since;
            let key = match self.terms {
                Terms::Capped => Some(self.begin(now, now.saturating_duration_since(since))?),
                Terms::Untold | Terms::Unknown | Terms::Uncapped(_) => None,
            };
            let waiting = self.waiting.pop_front()?;
            if !waiting.sender.is_closed() {
                return Some((waiting.sender, key));
            }
            if let Some(key) = key {
                self.end_unstarted(key);
            }
        }
    }

    /// A request has ended.
    pub(super) fn end(&mut self, key: usize, now: Instant) {
        let Some(ended) = self.running.try_remove(key) else { return };
        let took = now.saturating_duration_since(ended.since);
        self.finished = self.finished.saturating_add(1);
        self.took = self.took.saturating_add(took);
        keep(&mut self.figures.took, took);
        self.free(ended.block);
    }

    /// Whose work it is. Returns what is to be told to it at once, where it ran for too long before it began.
    pub(super) fn attach(&mut self, key: usize, meter: &Meter) -> Option<Denial> {
        let running = self.running.get_mut(key)?;
        running.work = meter.work();
        running.stopped.clone()
    }

    pub(super) const fn is_timed(&self) -> bool {
        self.policy.max_run.is_some()
    }

    pub(super) const fn is_partial(&self) -> bool {
        self.partial
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.terms == Terms::Unknown
    }

    /// Whether nothing is lost where it is forgotten: the service knows no such class, or was never asked, and nobody waits.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.terms, Terms::Unknown | Terms::Untold) && !self.is_busy()
    }

    /// Whether the keeper is to be woken, once.
    pub(super) fn take_wanted(&mut self) -> bool {
        std::mem::take(&mut self.wanted)
    }

    /// None where the class has no cap.
    pub(super) fn figures(&mut self) -> Option<(Arc<str>, ClassFigures)> {
        if self.terms != Terms::Capped {
            return None;
        }
        let kept = ClassFigures { refused: self.figures.refused, ..ClassFigures::default() };
        let figures = std::mem::replace(&mut self.figures, kept);
        let leased = self.blocks.iter().fold(0_u32, |sum, block| sum.saturating_add(block.count));
        let (in_progress, queued) = (self.running.len(), self.waiting.len());
        Some((Arc::clone(&self.class), ClassFigures { in_progress, queued, leased, ..figures }))
    }

    /// Of the blocks with a free slot the fullest: so others become empty, and can be given back.
    fn begin(&mut self, now: Instant, waited: Duration) -> Option<usize> {
        let free = self.blocks.iter_mut().filter(|block| block.has_room(now));
        let block = free.max_by_key(|block| block.used)?;
        block.take();
        keep(&mut self.figures.waited, waited);
        let running = Running { block: Some(block.id), since: now, work: Weak::new(), stopped: None };
        Some(self.running.insert(running))
    }

    fn end_unstarted(&mut self, key: usize) {
        if let Some(running) = self.running.try_remove(key) {
            self.free(running.block);
        }
    }

    fn free(&mut self, block: Option<BlockId>) {
        if let Some(block) = self.blocks.iter_mut().find(|known| Some(known.id) == block) {
            block.give_back();
            let given_up = block.give_up(self.surplus);
            self.surplus -= given_up;
            self.wanted |= given_up > 0;
        }
    }

    fn refusal(&mut self, reason: NoSlotReason, retry_after: Duration) -> NoSlot {
        let place = NoSlotReason::ALL.iter().position(|known| *known == reason).unwrap_or_default();
        self.figures.refused[place] += 1;
        NoSlot { class: Arc::clone(&self.class), reason, retry_after }
    }
}

fn keep(kept: &mut Vec<Duration>, duration: Duration) {
    if kept.len() < MOST_KEPT {
        kept.push(duration);
    }
}

#[cfg(test)]
mod tests;
