//! Sixty million CI calls a day, interactive requests beside them, a hundred workers for both, and two minutes in which every
//! call takes a hundred times as long: with traffic classes, and without. Discrete events, no clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use fastrand::Rng;
use quota_core::{Cap, Leased, Owner, Progress, Renewal, SlotTerms, Slots, Timestamp, Wanted};

use crate::chart::{Axis, Chart, Line, Scale};

/// Interactive requests, and CI calls.
pub const CLASSES: [&str; 2] = ["interactive", "ci"];

/// Of each class in a second: 60 million a day are 700.
const PER_SECOND: [f64; 2] = [50.0, 700.0];

const WORKERS: usize = 100;

/// How long calls take, as a rule and in the outage.
const WORK: [u64; 2] = [5_000, 500_000];

/// The outage, and the end, in seconds.
const SLOW: std::ops::Range<u64> = 60..180;
const SECONDS: u64 = 300;

/// What waits for a worker longer than this is given up by its caller.
const PATIENCE: u64 = 10_000_000;

/// Of CI: its cap, how many wait in the process, and for how long.
const CI_SLOTS: u32 = 50;
const CI_QUEUE: usize = 100;
const CI_MAX_WAIT: u64 = 2_000_000;

/// A CI call that is told to come back does so as often as this.
const RETRIES: u8 = 3;

const SECOND: u64 = 1_000_000;

/// What became of the requests of a class that came in a second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Served.
    pub served: u32,
    /// Told that there is no slot, for good: 503 with Retry-After.
    pub refused: u32,
    /// Given up by their callers.
    pub given_up: u32,
    /// How long those that were served had waited, in microseconds.
    pub waited: Vec<u64>,
}

/// What became of all, by class and second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    seconds: [Vec<Second>; 2],
    /// The most CI calls that were in progress at a time.
    pub most_ci: u32,
}

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
    let empty = || vec![Second::default(); SECONDS as usize];
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
        outcome: Outcome { seconds: [empty(), empty()], most_ci: 0 },
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
        if came < SECONDS * SECOND {
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
            self.at(self.now + CI_MAX_WAIT, Event::WaitedForSlot(call));
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
            self.second(call).refused += 1;
        }
    }

    /// Free workers take what is ready, in order.
    fn work(&mut self) {
        while self.idle > 0
            && let Some(call) = self.ready.pop_front()
        {
            if self.now - call.asked > PATIENCE {
                self.second(call).given_up += 1;
                self.give_back(call);
                continue;
            }
            self.idle -= 1;
            self.ci += u32::from(call.class == 1);
            self.outcome.most_ci = self.outcome.most_ci.max(self.ci);
            let waited = self.now - call.asked;
            self.second(call).waited.push(waited);
            let is_slow = SLOW.contains(&(self.now / SECOND));
            self.at(self.now + WORK[usize::from(is_slow)], Event::Ends(call));
        }
    }

    fn ends(&mut self, call: Call) {
        self.idle += 1;
        self.ci -= u32::from(call.class == 1);
        self.second(call).served += 1;
        self.give_back(call);
    }

    fn second(&mut self, call: Call) -> &mut Second {
        &mut self.outcome.seconds[call.class][(call.came / SECOND) as usize]
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

impl Outcome {
    /// The share of a class's requests that were served, of those that came within some seconds.
    pub fn success(&self, class: usize, within: std::ops::Range<u64>) -> f64 {
        let (mut served, mut all) = (0, 0);
        for second in self.within(class, within) {
            served += second.served;
            all += second.served + second.refused + second.given_up;
        }
        f64::from(served) / f64::from(all.max(1))
    }

    /// What 99 of 100 that were served waited for at most.
    pub fn p99_wait(&self, class: usize, within: std::ops::Range<u64>) -> Duration {
        let mut waited: Vec<u64> =
            self.within(class, within).flat_map(|second| second.waited.iter().copied()).collect();
        waited.sort_unstable();
        let at = (waited.len() * 99).div_ceil(100).saturating_sub(1);
        Duration::from_micros(waited.get(at).copied().unwrap_or_default())
    }

    /// How many were told to come back, and gave up after that.
    pub fn refused(&self, class: usize) -> u32 {
        self.seconds[class].iter().map(|second| second.refused).sum()
    }

    /// How long after the outage it was until from then on 99 of 100 of a class were served; nothing where they never were.
    pub fn recovery(&self, class: usize) -> Option<Duration> {
        let is_good = |second: u64| self.success(class, second..second + 1) >= 0.99;
        let last_bad = (SLOW.end..SECONDS).rev().find(|second| !is_good(*second));
        match last_bad {
            None => Some(Duration::ZERO),
            Some(last) if last + 1 == SECONDS => None,
            Some(last) => Some(Duration::from_secs(last + 1 - SLOW.end)),
        }
    }

    fn within(&self, class: usize, within: std::ops::Range<u64>) -> impl Iterator<Item = &Second> {
        self.seconds[class].iter().skip(within.start as usize).take((within.end - within.start) as usize)
    }
}

/// When calls take long, in seconds from the beginning.
pub const fn slow() -> std::ops::Range<u64> {
    SLOW
}

/// What share was served, over time.
pub fn chart(with: &Outcome, without: &Outcome) -> Chart {
    let line = |label: &str, outcome: &Outcome, class: usize| Line {
        label: label.to_owned(),
        points: (0..SECONDS / 5)
            .map(|five| (five as f64 * 5.0, 100.0 * outcome.success(class, five * 5..five * 5 + 5)))
            .collect(),
    };
    let ticks = |values: &[u32]| values.iter().map(|value| (f64::from(*value), value.to_string())).collect();
    Chart {
        title: "Requests that were served, by when they came: calls take 500 ms from 60 s to 180 s"
            .to_owned(),
        x: Axis {
            label: "seconds".to_owned(),
            scale: Scale::Linear,
            ticks: ticks(&[0, 60, 120, 180, 240, 300]),
        },
        y: Axis { label: "% served".to_owned(), scale: Scale::Linear, ticks: ticks(&[0, 25, 50, 75, 100]) },
        lines: vec![
            line("interactive, with classes", with, 0),
            line("interactive, without", without, 0),
            line("CI, with classes", with, 1),
            line("CI, without", without, 1),
        ],
    }
}
