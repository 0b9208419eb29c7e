//! A machine that does `capacity` requests at once at full speed, and more of them the slower. So many run as the
//! limit allows, which moves as the verdict says.

use fastrand::Rng;

use super::*;
use crate::concurrency::adaptive::{AdaptiveLimit, BackoffFactor};

const BASE: f64 = 0.05;

struct Machine {
    capacity: f64,
    /// By so much longer than [`BASE`] everything takes.
    slowness: f64,
    requests: u32,
    limit: AdaptiveLimit,
    latency: Latency,
    random: Rng,
}

impl Machine {
    fn new(seed: u64) -> Self {
        println!("seed {seed}");
        Self {
            capacity: 20.0,
            slowness: 1.0,
            requests: 1_000,
            limit: AdaptiveLimit::new(5, 10, 60).unwrap(),
            latency: Latency::new(0.5),
            random: Rng::with_seed(seed),
        }
    }

    /// Runs so many intervals. Returns the limit after each.
    fn run(&mut self, intervals: usize) -> Vec<usize> {
        let factor = BackoffFactor::new(0.75).unwrap();
        (0..intervals)
            .map(|_| {
                for _ in 0..self.requests {
                    let request = self.request();
                    self.latency.add(request, self.limit.current());
                }
                let verdict = self.latency.end_interval(false, self.limit.is_at_min());
                self.limit.calibrate(verdict.is_some_and(|verdict| verdict.is_event), factor);
                self.limit.current()
            })
            .collect()
    }

    /// Spread as requests are: one in twenty takes more than four times the middle one.
    fn request(&mut self) -> Duration {
        let congestion = (self.limit.current() as f64 / self.capacity).max(1.0);
        let normal: f64 = (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0;
        Duration::from_secs_f64(BASE * self.slowness * congestion * (0.9 * normal).exp())
    }

    fn baseline(&self) -> f64 {
        self.latency.baseline.unwrap().exp() / BASE
    }
}

#[test]
fn at_a_steady_load_that_the_machine_can_do_the_limit_rises_to_its_maximum() {
    let mut machine = Machine { capacity: 100.0, ..Machine::new(1) };
    assert_eq!(machine.run(100)[60..], [60; 40]);
}

#[test]
fn few_samples_and_the_first_interval_give_no_verdict() {
    let mut latency = Latency::new(0.0);
    let feed = |latency: &mut Latency, count, millis| {
        (0..count).for_each(|_| latency.add(Duration::from_millis(millis), 10));
        latency.end_interval(false, false)
    };
    assert_eq!(feed(&mut latency, 1_000, 50), None, "there is nothing to compare with");
    assert_eq!(feed(&mut latency, 19, 500), None);
    let verdict = feed(&mut latency, 1, 500).unwrap();
    assert!(verdict.is_event, "the samples of both intervals count");
    assert_eq!((verdict.short_term.as_millis(), verdict.long_term.as_millis()), (500, 50));
}

#[test]
fn a_difference_that_may_be_chance_is_no_event() {
    let mut latency = Latency::new(0.0);
    (0..100).for_each(|_| latency.add(Duration::from_millis(50), 10));
    latency.end_interval(false, false);
    // Of 20, 18 take as long as ever and 2 a thousand times that: twice as long in the geometric mean.
    (0..18).for_each(|_| latency.add(Duration::from_millis(50), 10));
    (0..2).for_each(|_| latency.add(Duration::from_secs(50), 10));
    let verdict = latency.end_interval(false, false).unwrap();
    assert!(!verdict.is_event && verdict.short_term > verdict.long_term * 19 / 10, "{verdict:?}");
}

#[test]
fn where_nobody_else_runs_slow_requests_are_no_event() {
    let mut latency = Latency::new(0.0);
    for millis in [50, 500] {
        (0..100).for_each(|_| latency.add(Duration::from_millis(millis), 1));
        let verdict = latency.end_interval(false, false);
        assert!(verdict.is_none_or(|verdict| !verdict.is_event), "{verdict:?}");
    }
}

#[test]
fn a_load_that_makes_requests_wait_for_each_other_cuts_the_limit_and_is_never_taken_as_usual() {
    let mut machine = Machine { capacity: 20.0, ..Machine::new(2) };
    let limits = machine.run(1_000);
    let settled = &limits[50..];
    let (lowest, highest) = (settled.iter().min().unwrap(), settled.iter().max().unwrap());
    assert!(*lowest >= 20 && *highest <= 36, "{lowest} to {highest} where 20 run at full speed");
    assert!((0.9..1.1).contains(&machine.baseline()), "{}", machine.baseline());
}

#[test]
fn when_other_work_takes_half_of_the_machine_the_limit_follows_and_comes_back() {
    let mut machine = Machine { capacity: 40.0, ..Machine::new(3) };
    machine.run(100);
    machine.capacity = 12.0;
    let limits = machine.run(200);
    assert!(limits[10..].iter().all(|limit| (12..=24).contains(limit)), "{limits:?}");
    machine.capacity = 100.0;
    assert_eq!(machine.run(60).last(), Some(&60));
}

#[test]
fn work_that_has_become_slower_for_good_is_usual_after_a_probe() {
    let mut machine = Machine { capacity: 100.0, ..Machine::new(4) };
    machine.run(100);
    machine.slowness = 2.0;
    let limits = machine.run(150);
    // Seven cuts to the minimum, fifteen intervals there, and one step up in each further one.
    assert_eq!((limits[8], limits[20]), (5, 5));
    assert_eq!(limits[85..], [60; 65]);
    assert!((1.8..2.2).contains(&machine.baseline()), "{}", machine.baseline());
    machine.slowness = 1.0;
    machine.run(50);
    assert!((0.9..1.1).contains(&machine.baseline()), "faster is usual at once: {}", machine.baseline());
}

#[test]
fn probes_are_spread_and_need_a_machine_that_is_not_overloaded() {
    let intervals = |jitter, overloaded| {
        let mut latency = Latency::new(jitter);
        for interval in 0..50 {
            let millis = if interval == 0 { 50 } else { 100 };
            (0..100).for_each(|_| latency.add(Duration::from_millis(millis), 10));
            let verdict = latency.end_interval(interval > 0 && overloaded, true);
            if verdict.is_some_and(|verdict| !verdict.is_event) {
                return Some(interval);
            }
        }
        None
    };
    assert_eq!([0.0, 0.5, 1.0].map(|jitter| intervals(jitter, false)), [Some(11), Some(16), Some(21)]);
    assert_eq!(intervals(0.0, true), None);
}

#[test]
fn a_small_lasting_change_is_learnt_slowly_while_nobody_waits() {
    let mut latency = Latency::new(0.0);
    let mut end = |millis| {
        (0..100).for_each(|_| latency.add(Duration::from_millis(millis), 1));
        latency.end_interval(false, false);
        latency.baseline.unwrap().exp() * 1e3
    };
    assert_eq!(end(100).round(), 100.0);
    assert_eq!(end(200).round(), 102.0);
    let after_a_while = (0..50).map(|_| end(200)).last();
    assert_eq!(after_a_while.map(f64::round), Some(200.0));
}
