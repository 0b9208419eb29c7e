//! The keeper's part: what is to be asked, and what becomes of the answers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use quota_proto::v1;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::block::RENEWALS;
use super::{Ask, Block, BlockId, Handed, Holding, Renewal, STANDS, Terms, Wanted};
use crate::Denial;
use crate::classes::answer::{Answer, COME_BACK};
use crate::classes::no_slot::{NoSlot, NoSlotReason};
use crate::work::Work;

/// The most spare slots that are asked for, for requests that may come.
const MOST_SPARE: u32 = 16;

impl Holding {
    /// Blocks whose lease has ended are no more, and what runs too long is to be told so: that work, with what it is told.
    pub(in crate::classes) fn sweep(&mut self, now: Instant, node: &str) -> Vec<(Weak<Work>, Denial)> {
        for block in self.blocks.extract_if(.., |block| block.has_ended(now)) {
            let cut_off = self.running.iter_mut().filter(|(_, running)| running.block == Some(block.id));
            for (_, running) in cut_off {
                running.block = None;
                self.overrun = self.overrun.saturating_add(1);
            }
        }
        let Some(max_run) = self.policy.max_run else { return Vec::new() };
        let late: Vec<usize> = self
            .running
            .iter()
            .filter(|(_, running)| running.stopped.is_none() && running.since + max_run <= now)
            .map(|(key, _)| key)
            .collect();
        let mut told = Vec::new();
        for key in late {
            let denial = Denial::no_slot(self.refusal(NoSlotReason::RanTooLong, COME_BACK), node);
            let Some(running) = self.running.get_mut(key) else { continue };
            running.stopped = Some(denial.clone());
            let (block, work) = (running.block.take(), running.work.clone());
            self.free(block);
            told.push((work, denial));
        }
        told
    }

    /// What is to be asked now: slots for those that wait, who are not to wait for the rest, and leases that are to be renewed or given
    /// back.
    pub(in crate::classes) fn plan(&mut self, now: Instant) -> Vec<Ask> {
        let mut asks = Vec::new();
        let waiting = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let is_look = match self.terms {
            Terms::Untold | Terms::Unknown => true,
            Terms::Uncapped(until) => until <= now,
            Terms::Capped => false,
        };
        let stands = self.refused.is_some_and(|(said, ..)| now < said + STANDS);
        if waiting > 0 && !stands || is_look || self.overrun > 0 {
            // Spare ones cost others a slot: only as many as came since the last time.
            let spare = std::mem::take(&mut self.entered).saturating_sub(waiting).min(MOST_SPARE);
            let overrun = std::mem::take(&mut self.overrun);
            asks.push(Ask::Acquire(Wanted { count: waiting, spare, overrun }));
        }
        for block in &mut self.blocks {
            if let Some(count) = block.due(now) {
                let (finished, took) = (std::mem::take(&mut self.finished), std::mem::take(&mut self.took));
                let lease = block.lease.clone();
                asks.push(Ask::Renew(Renewal { block: block.id, lease, count, finished, took }));
            }
        }
        asks
    }

    /// The service has answered at a moment, who was asked for so many slots. Returns those who are told that there is none.
    pub(in crate::classes) fn acquired(
        &mut self,
        answer: Answer,
        wanted: u32,
        asked: Instant,
        now: Instant,
    ) -> Vec<(oneshot::Sender<Handed>, NoSlot)> {
        if answer.count > 0 {
            self.last_block += 1;
            let block = Block::new(self.last_block, answer.lease.clone(), answer.count, asked, answer.lasts);
            self.blocks.push(block);
        }
        self.told(&answer, asked);
        let fewer = answer.standing.is_some() && answer.count < wanted;
        let refused = answer.refused.or_else(|| fewer.then_some((NoSlotReason::AtCap, COME_BACK)));
        self.refused = refused.map(|(reason, retry_after)| (now, reason, retry_after));
        match refused {
            Some((reason, retry_after)) => self.refuse_impatient(answer.count, reason, retry_after, asked),
            None => Vec::new(),
        }
    }

    /// A lease goes on with so many slots, for so long from when that was asked; none: it has ended.
    pub(in crate::classes) fn renewed(&mut self, block: BlockId, answer: &Answer, asked: Instant) {
        if let Some(block) = self.blocks.iter_mut().find(|known| known.id == block) {
            if answer.count > 0 {
                block.renew(answer.count, asked, answer.lasts);
            } else {
                block.is_over();
            }
        }
        self.told(answer, asked);
    }

    /// How the class is served now, and whether more of it is leased than its cap, which was lowered: then everybody gives up a part.
    fn told(&mut self, answer: &Answer, asked: Instant) {
        self.away = false;
        self.class = Arc::clone(&answer.class);
        self.policy = answer.policy;
        self.partial = answer.partial;
        let Some(v1::SlotStanding { leased, cap, .. }) = answer.standing else {
            self.terms = Terms::Uncapped(asked + answer.lasts);
            self.surplus = 0;
            return;
        };
        self.terms = Terms::Capped;
        if leased <= cap {
            (self.surplus, self.sheds) = (0, None);
            return;
        }
        // Once while every holder renews once: who asks more often would give up the part of others, too.
        if answer.lasts.is_zero() || self.sheds.is_some_and(|next| asked < next) {
            return;
        }
        self.sheds = Some(asked + answer.lasts / RENEWALS);
        let (own, kept) = self.blocks.iter().fold((0_u64, 0_u64), |(own, kept), block| {
            (own + u64::from(block.leased), kept + u64::from(block.count))
        });
        let part = (own * u64::from(leased - cap)).div_ceil(u64::from(leased));
        let mut surplus = u32::try_from(part.saturating_sub(own - kept)).unwrap_or(u32::MAX);
        for block in &mut self.blocks {
            surplus -= block.give_up(surplus);
        }
        self.surplus = surplus;
    }

    /// The service knows no such class.
    pub(in crate::classes) fn unknown(&mut self) {
        self.away = false;
        self.terms = Terms::Unknown;
    }

    /// The service does not answer, and was not told of those that overran. Returns those who are told so.
    pub(in crate::classes) fn away(
        &mut self,
        overrun: u32,
        asked: Instant,
        now: Instant,
    ) -> Vec<(oneshot::Sender<Handed>, NoSlot)> {
        self.away = true;
        self.overrun = self.overrun.saturating_add(overrun);
        self.refused = Some((now, NoSlotReason::Away, COME_BACK));
        self.refuse_impatient(0, NoSlotReason::Away, COME_BACK, asked)
    }

    /// Whether the keeper has something to do before long: it holds, or somebody waits.
    pub(in crate::classes) fn is_busy(&self) -> bool {
        !self.blocks.is_empty() || !self.waiting.is_empty() || !self.running.is_empty()
    }

    /// Those that do not wait, and were there when it was asked, but for those whose slots are there.
    fn refuse_impatient(
        &mut self,
        granted: u32,
        reason: NoSlotReason,
        retry_after: Duration,
        asked: Instant,
    ) -> Vec<(oneshot::Sender<Handed>, NoSlot)> {
        if self.policy.waits.is_some() {
            return Vec::new();
        }
        let there = self.waiting.iter().take_while(|waiting| waiting.since <= asked).count();
        let granted = usize::try_from(granted).unwrap_or(usize::MAX).min(there);
        let told: Vec<_> = self.waiting.drain(granted..there).collect();
        told.into_iter().map(|waiting| (waiting.sender, self.refusal(reason, retry_after))).collect()
    }
}
