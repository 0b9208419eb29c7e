//! Discrete events, no clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use fastrand::Rng;
use quota_core::{Cap, Leased, Owner, Progress, Renewal, SlotTerms, Slots, Timestamp, Wanted};

use super::{
    CI_MAX_WAIT, CI_QUEUE, CI_SLOTS, CLASSES, Fate, Outcome, PATIENCE, PER_SECOND, RETRIES, Times, WORK,
    WORKERS,
};

const SECOND: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    class: usize,
    number: u64,
    /// When it first came.
    came: u64,
    attempt: u8,
    /// When it came this time.
    asked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Comes(Call),
    /// It has waited for a slot as long as it may, if it waits still.
    WaitedForSlot(Call),
    Ends(Call),
}

struct Run {
    random: Rng,
    now: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    numbers: u64,
    idle: usize,
    /// Who waits for a worker.
    ready: VecDeque<Call>,
    /// The slots of CI, where there are classes, and who waits for one.
    slots: Option<Slots>,
    waiting: VecDeque<Call>,
    ci: u32,
    outcome: Outcome,
}

/// What becomes of the requests, with classes or without.
pub fn run(with_classes: bool, seed: u64) -> Outcome {
    let mut run = Run {
        random: Rng::with_seed(seed),
        now: 0,
        events: BinaryHeap::new(),
        numbers: 0,
        idle: WORKERS,
        ready: VecDeque::new(),
        slots: with_classes.then(Slots::default),
        waiting: VecDeque::new(),
        ci: 0,
        outcome: Outcome::new(&Times::FULL),
    };
    for class in 0..CLASSES.len() {
        run.next_comes(class, 0);
    }
    while let Some(Reverse((now, event))) = run.events.pop() {
        run.now = now;
        match event {
            Event::Comes(call) => run.comes(call),
            Event::WaitedForSlot(call) => run.waited_for_slot(call),
            Event::Ends(call) => run.ends(call),
        }
        run.work();
    }
    run.outcome
}

impl Run {
    fn next_comes(&mut self, class: usize, after: u64) {
        let gap = -(1.0 - self.random.f64()).ln() / PER_SECOND[class] * SECOND as f64;
        let came = after + gap as u64;
        if came < Times::FULL.seconds * SECOND {
            self.numbers += 1;
            let call = Call { class, number: self.numbers, came, attempt: 0, asked: came };
            self.at(came, Event::Comes(call));
        }
    }

    fn at(&mut self, when: u64, event: Event) {
        self.events.push(Reverse((when, event)));
    }

    fn comes(&mut self, call: Call) {
        if call.attempt == 0 {
            self.next_comes(call.class, call.came);
        }
        if call.class == 0 || self.slots.is_none() || self.waiting.is_empty() && self.takes_slot(call) {
            self.ready.push_back(call);
        } else if self.waiting.len() < CI_QUEUE {
            self.waiting.push_back(call);
            self.at(self.now + micros(CI_MAX_WAIT), Event::WaitedForSlot(call));
        } else {
            self.refuse(call);
        }
    }

    fn waited_for_slot(&mut self, call: Call) {
        if let Some(place) = self.waiting.iter().position(|waiting| *waiting == call) {
            self.waiting.remove(place);
            self.refuse(call);
        }
    }

    /// It comes back when it is told to, which is after a second or a little more, or gives up.
    fn refuse(&mut self, call: Call) {
        if call.attempt < RETRIES {
            let asked = self.now + SECOND + self.random.u64(..SECOND / 5);
            self.at(asked, Event::Comes(Call { attempt: call.attempt + 1, asked, ..call }));
        } else {
            self.became(call, Fate::Refused);
        }
    }

    /// Free workers take what is ready, in order.
    fn work(&mut self) {
        while self.idle > 0
            && let Some(call) = self.ready.pop_front()
        {
            let waited = Duration::from_micros(self.now - call.asked);
            if waited > PATIENCE {
                self.became(call, Fate::GivenUp);
                self.give_back(call);
                continue;
            }
            self.idle -= 1;
            self.ci += u32::from(call.class == 1);
            self.outcome.most_ci = self.outcome.most_ci.max(self.ci);
            self.became(call, Fate::Served(waited));
            let is_slow = Times::FULL.slow.contains(&(self.now / SECOND));
            self.at(self.now + micros(WORK[usize::from(is_slow)]), Event::Ends(call));
        }
    }

    fn ends(&mut self, call: Call) {
        self.idle += 1;
        self.ci -= u32::from(call.class == 1);
        self.give_back(call);
    }

    fn became(&mut self, call: Call, fate: Fate) {
        self.outcome.add(call.class, call.came / SECOND, fate);
    }

    fn takes_slot(&mut self, call: Call) -> bool {
        let now = self.moment();
        let wanted = Wanted { owner: owner(), lease: lease(call), count: 1, spare: 0, stops: None };
        let slots = self.slots.get_or_insert_default();
        let Leased { count, .. } = slots.acquire(now, &wanted, &terms(), false);
        count > 0
    }

    /// Its slot goes to the next that waits.
    fn give_back(&mut self, call: Call) {
        if call.class == 0 || self.slots.is_none() {
            return;
        }
        let now = self.moment();
        let renewal = Renewal { owner: owner(), lease: lease(call), count: 0 };
        self.slots.get_or_insert_default().renew(now, &renewal, Progress::default(), &terms(), false);
        if let Some(next) = self.waiting.pop_front() {
            if self.takes_slot(next) {
                self.ready.push_back(next);
            } else {
                self.waiting.push_front(next);
            }
        }
    }

    fn moment(&self) -> Timestamp {
        Timestamp::from_micros(1_764_500_000_000_000 + self.now)
    }
}

fn owner() -> Owner {
    Owner { holder: "web".into(), node: "".into() }
}

fn lease(call: Call) -> [u8; 16] {
    u128::from(call.number).to_le_bytes()
}

/// Longer than any call waits and works: what holds needs no renewal.
const fn terms() -> SlotTerms {
    SlotTerms { cap: Cap::Fixed(CI_SLOTS), node_cap: None, lasts: Duration::from_secs(60) }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).expect("a time within reach")
}
