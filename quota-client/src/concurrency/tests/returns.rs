//! Clients who come back when they are told to, at a limit of 10, a queue of 50 and requests of 100 ms, more or
//! less: how many are admitted at the first try, how many within twice the time, and whether slots stand idle
//! meanwhile.

use std::sync::Mutex;

use fastrand::Rng;
use tokio::time::{Instant, sleep, sleep_until};

use super::*;

/// What was seen of those who were refused while the load lasted.
#[derive(Debug, Default)]
struct Seen {
    first_tries: usize,
    admitted_at_first_try: usize,
    admitted_within_twice: usize,
    /// Seconds that slots were held while the load lasted, and that they could have been.
    held: f64,
    available: f64,
    longest_told: Duration,
    told: Duration,
    refusals: u32,
}

#[derive(Clone)]
struct World {
    limiter: Limiter,
    limit: usize,
    /// Seconds that a request takes, half less to half more.
    request: f64,
    seen: Arc<Mutex<Seen>>,
    random: Arc<Mutex<Rng>>,
    /// When the load begins and ends.
    began: Instant,
    end: Instant,
    /// Clients come later than they are told, by up to so much.
    late: Duration,
}

impl World {
    fn new(seed: u64, lasts: u64, late: u64) -> Self {
        println!("seed {seed}");
        fastrand::seed(seed);
        Self {
            limiter: limiter(10, 50, Duration::from_secs(60), Order::Fifo),
            limit: 10,
            request: 0.1,
            seen: Arc::default(),
            random: Arc::new(Mutex::new(Rng::with_seed(seed))),
            began: Instant::now(),
            end: Instant::now() + Duration::from_secs(lasts),
            late: millis(late),
        }
    }

    fn random(&self) -> f64 {
        self.random.lock().unwrap().f64()
    }

    /// One request, tried again as told until it is admitted.
    async fn request(&self, caller: u64) {
        let mut first: Option<(Instant, Duration)> = None;
        for tries in 0_usize.. {
            let asked = Instant::now();
            let acquired = self.limiter.acquire(&key(), caller, None).await;
            if let Some((refused, told)) = first
                && refused + told * 2 < self.end
            {
                // The wait in the queue is part of the time.
                let in_time = refused.elapsed() <= told * 2 + self.late * 2;
                self.seen.lock().unwrap().tried(tries, acquired.is_ok(), in_time);
            }
            match acquired {
                Ok(_permit) => {
                    let time = Duration::from_secs_f64(self.request * (0.5 + self.random()));
                    sleep(time).await;
                    self.seen.lock().unwrap().held += time.as_secs_f64();
                    return;
                }
                Err(refusal) => {
                    first.get_or_insert((asked, refusal.retry_after));
                    self.seen.lock().unwrap().told(refusal.retry_after);
                    sleep(refusal.retry_after + self.late.mul_f64(self.random())).await;
                }
            }
        }
    }

    /// Clients who ask again as soon as they have been served.
    async fn closed_loop(self, clients: u64, caller: impl Fn(u64) -> u64) -> Seen {
        let clients: Vec<_> = (0..clients)
            .map(|client| {
                let (world, caller) = (self.clone(), caller(client));
                tokio::spawn(async move {
                    while Instant::now() < world.end {
                        world.request(caller).await;
                    }
                })
            })
            .collect();
        self.seen_after(clients).await
    }

    /// Beside one who asks each 10 ms, whatever he is told.
    fn hammered(self) -> Self {
        let world = self.clone();
        tokio::spawn(async move {
            while Instant::now() < world.end {
                let world = world.clone();
                tokio::spawn(async move {
                    if let Ok(_permit) = world.limiter.acquire(&key(), u64::MAX, None).await {
                        sleep(Duration::from_secs_f64(world.request)).await;
                    }
                });
                sleep(millis(10)).await;
            }
        });
        self
    }

    /// New clients, so many a second.
    async fn open(self, per_second: f64, caller: impl Fn(u64) -> u64) -> Seen {
        let mut clients = Vec::new();
        let mut next = Instant::now();
        while next < self.end {
            sleep_until(next).await;
            let (world, caller) = (self.clone(), caller(clients.len() as u64));
            clients.push(tokio::spawn(async move { world.request(caller).await }));
            next += Duration::from_secs_f64(-(1.0 - self.random()).ln() / per_second);
        }
        self.seen_after(clients).await
    }

    /// So many clients at once, and no others.
    async fn burst(self, clients: u64, caller: impl Fn(u64) -> u64) -> Seen {
        let clients = (0..clients).map(|client| {
            let (world, caller) = (self.clone(), caller(client));
            tokio::spawn(async move { world.request(caller).await })
        });
        let clients = clients.collect();
        self.seen_after(clients).await
    }

    async fn seen_after(self, clients: Vec<tokio::task::JoinHandle<()>>) -> Seen {
        sleep_until(self.end).await;
        let held = self.seen.lock().unwrap().held;
        for client in clients {
            client.await.unwrap();
        }
        assert_all_free(&self.limiter).await;
        let mut seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.held = held;
        seen.available = self.limit as f64 * (self.end - self.began).as_secs_f64();
        println!("{seen:?}");
        seen
    }
}

impl Seen {
    fn tried(&mut self, tries: usize, admitted: bool, in_time: bool) {
        self.first_tries += usize::from(tries == 1);
        self.admitted_at_first_try += usize::from(tries == 1 && admitted);
        self.admitted_within_twice += usize::from(admitted && in_time);
    }

    fn told(&mut self, wait: Duration) {
        self.longest_told = self.longest_told.max(wait);
        self.told += wait;
        self.refusals += 1;
    }

    fn mean_told(&self) -> Duration {
        self.told / self.refusals
    }

    /// As shares of those who were refused.
    fn shares(&self) -> (f64, f64) {
        let share = |count: usize| count as f64 / self.first_tries as f64;
        (share(self.admitted_at_first_try), share(self.admitted_within_twice))
    }

    fn utilisation(&self) -> f64 {
        self.held / self.available
    }
}

/// Of at least 1,000 who were refused: so many admitted at the first try and within twice the time; slots used.
fn check(seen: &Seen, first_try: f64, within_twice: f64, utilisation: f64) {
    assert!(seen.first_tries >= 1_000, "{} prove little", seen.first_tries);
    let (first, twice) = seen.shares();
    assert!(
        first >= first_try && twice >= within_twice,
        "{first} at the first try, {twice} within twice the time"
    );
    assert!(seen.utilisation() >= utilisation, "{} of the slots used", seen.utilisation());
}

#[tokio::test(start_paused = true)]
async fn in_a_closed_loop_those_who_come_back_as_told_are_admitted() {
    let seen = World::new(1, 60, 0).closed_loop(200, |client| client).await;
    check(&seen, 0.99, 0.99, 0.98);
    assert!(seen.longest_told < Duration::from_secs(3), "140 wait outside for 100 slots a second: {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn in_a_closed_loop_those_who_come_a_second_late_are_admitted() {
    check(&World::new(2, 60, 1_000).closed_loop(200, |client| client).await, 0.99, 0.99, 0.98);
}

#[tokio::test(start_paused = true)]
async fn where_half_as_many_again_come_as_can_be_served_those_who_come_back_as_told_are_admitted() {
    check(&World::new(3, 20, 0).open(150.0, |client| client).await, 0.99, 0.99, 0.98);
    // By then 3,000 wait outside, and 1,024 promises are kept.
    check(&World::new(3, 60, 0).open(150.0, |client| client).await, 0.9, 0.9, 0.98);
}

#[tokio::test(start_paused = true)]
async fn of_a_burst_all_are_served_as_fast_as_slots_become_free() {
    // A little more than the 10 s that 1,000 requests take.
    let seen = World::new(4, 11, 0).burst(1_000, |client| client).await;
    assert!(seen.utilisation() >= 0.88 && seen.longest_told < Duration::from_secs(11), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn callers_who_cannot_be_told_apart_are_admitted_if_they_come_in_time() {
    check(&World::new(5, 60, 2).closed_loop(200, |_| 7).await, 0.9, 0.9, 0.98);
}

#[tokio::test(start_paused = true)]
async fn half_of_the_callers_who_cannot_be_told_apart_and_come_late_are_admitted_at_the_first_try() {
    check(&World::new(6, 120, 100).closed_loop(200, |_| 7).await, 0.7, 0.75, 0.98);
    check(&World::new(7, 200, 100).open(150.0, |_| 7).await, 0.5, 0.5, 0.98);
}

#[tokio::test(start_paused = true)]
async fn few_slots_a_short_queue_and_long_requests_are_no_different() {
    let limiter = limiter(2, 4, Duration::from_secs(60), Order::Lifo);
    let world = World { limiter, limit: 2, request: 5.0, ..World::new(8, 7_200, 100) };
    check(&world.closed_loop(20, |client| client).await, 0.95, 0.9, 0.98);
}

/// With somebody who asks each 10 ms, and without: the polite are told no more than what a part of the slots makes of it.
async fn check_hammered(world: impl Fn() -> World, polite: u64) -> Seen {
    let without = world().closed_loop(polite, |client| client).await;
    let with = world().hammered().closed_loop(polite, |client| client).await;
    let (without_mean, mean) = (without.mean_told(), with.mean_told());
    assert!(mean <= without_mean * 2, "told {mean:?} instead of {without_mean:?}");
    let (without, longest) = (without.longest_told, with.longest_told);
    assert!(longest <= without * 5 / 2, "told {longest:?} at most instead of {without:?}");
    with
}

#[tokio::test(start_paused = true)]
async fn one_who_asks_without_end_makes_others_come_back_little_later_and_they_are_admitted() {
    for polite in [80, 200] {
        check(&check_hammered(|| World::new(9, 60, 0), polite).await, 0.99, 0.99, 0.7);
    }
}

#[tokio::test(start_paused = true)]
async fn one_who_asks_without_end_for_few_slots_makes_others_come_back_little_later() {
    let world = || {
        let limiter = limiter(2, 4, Duration::from_secs(60), Order::Fifo);
        World { limiter, limit: 2, request: 5.0, ..World::new(10, 600, 0) }
    };
    check_hammered(world, 10).await;
}
