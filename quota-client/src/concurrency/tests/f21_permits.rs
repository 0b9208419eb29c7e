use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use fastrand::Rng;
use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinSet, yield_now};

use super::*;

const NEVER: Duration = Duration::from_secs(3600);

/// Ends how its number says: as it should, cancelled while it waits or while it runs, or in a panic.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Done,
    Panics,
    CancelledQueued,
    CancelledRunning,
}

fn end(task: usize) -> End {
    match task % 3 {
        0 => End::CancelledQueued,
        1 => End::CancelledRunning,
        _ if task % 30 == 2 => End::Panics,
        _ => End::Done,
    }
}

/// The tasks, and what is known of them.
struct Tasks {
    limiter: Limiter,
    random: Rng,
    joined: JoinSet<()>,
    panics: usize,
    seen: Arc<Seen>,
    /// Those to be cancelled while they wait or run, and those of them that run.
    waiting: VecDeque<AbortHandle>,
    running: HashMap<usize, AbortHandle>,
}

#[derive(Default)]
struct Seen {
    running: AtomicUsize,
    most: AtomicUsize,
    runs_until_cancelled: Mutex<Vec<usize>>,
}

impl Tasks {
    fn new(limiter: &Limiter, seed: u64) -> Self {
        println!("seed {seed}");
        Self {
            limiter: limiter.clone(),
            random: Rng::with_seed(seed),
            joined: JoinSet::new(),
            panics: 0,
            seen: Arc::default(),
            waiting: VecDeque::new(),
            running: HashMap::new(),
        }
    }

    /// Spawns 10,000, as many at a time as can run or wait even at the lower limit; after each, `check`.
    async fn run_all(&mut self, mut check: impl FnMut(usize)) {
        for task in 0..10_000 {
            let (end, rounds) = (end(task), self.random.usize(..4));
            let handle = self.joined.spawn(work(self.limiter.clone(), task, rounds, Arc::clone(&self.seen)));
            match end {
                End::CancelledQueued => self.waiting.push_back(handle),
                End::CancelledRunning => drop(self.running.insert(task, handle)),
                End::Done | End::Panics => {}
            }
            while self.joined.len() > 52 {
                self.step().await;
            }
            check(task);
        }
        while !self.joined.is_empty() {
            self.step().await;
        }
    }

    /// Lets them run a little, and cancels some.
    async fn step(&mut self) {
        yield_now().await;
        while self.waiting.len() > self.random.usize(..8) {
            self.waiting.pop_front().unwrap().abort();
        }
        for task in std::mem::take(&mut *self.seen.runs_until_cancelled.lock()) {
            self.running.remove(&task).unwrap().abort();
        }
        while let Some(ended) = self.joined.try_join_next() {
            self.panics += usize::from(ended.is_err_and(|error| error.is_panic()));
        }
    }

    fn most(&self) -> usize {
        assert_eq!(self.seen.running.load(Ordering::SeqCst), 0);
        self.seen.most.load(Ordering::SeqCst)
    }
}

async fn work(limiter: Limiter, task: usize, rounds: usize, seen: Arc<Seen>) {
    let _permit = run(&limiter).await;
    // Counted down before the permit is dropped, since locals are dropped in the opposite order.
    let running = Running(seen);
    let now_running = running.0.running.fetch_add(1, Ordering::SeqCst) + 1;
    running.0.most.fetch_max(now_running, Ordering::SeqCst);
    for _ in 0..rounds {
        yield_now().await;
    }
    match end(task) {
        End::Done | End::CancelledQueued => {}
        // As a panic, but without its message 334 times.
        End::Panics => std::panic::resume_unwind(Box::new("a handler that panics")),
        End::CancelledRunning => {
            running.0.runs_until_cancelled.lock().push(task);
            std::future::pending::<()>().await;
        }
    }
}

struct Running(Arc<Seen>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// 10 -> 3 -> 10, a third of the tasks each.
fn limit_at(task: usize) -> usize {
    if (3_334..6_666).contains(&task) { 3 } else { 10 }
}

#[tokio::test]
async fn f21_no_slot_is_lost_or_made_however_10_000_tasks_end() {
    for seed in [1, 2, 3] {
        let limiter = limiter(10, 50, NEVER, Order::Fifo);
        let (mut before, mut at_limit) = (0, [0; 2]);
        let mut tasks = Tasks::new(&limiter, seed);
        tasks
            .run_all(|task| {
                let figures = limiter.figures();
                assert!(figures.queued <= 50);
                // Above a limit that was lowered, it only falls.
                assert!(figures.in_flight <= figures.limit.max(before), "{figures:?}, {before} before");
                before = figures.in_flight;
                at_limit[usize::from(figures.limit == 3)] += usize::from(figures.in_flight == figures.limit);
                limiter.set_limit(limit_at(task));
            })
            .await;
        let figures = limiter.figures();
        println!("{} panics, {:?}, at the limit {at_limit:?} times", tasks.panics, figures);
        // A third is cancelled in the queue, but for those who are not there any more.
        let admitted = figures.acquired;
        assert!((6_667..7_500).contains(&admitted) && tasks.panics == 334, "{figures:?}");
        assert!(at_limit.iter().all(|times| *times > 3_000), "the limit was seldom reached: {at_limit:?}");
        assert_eq!((tasks.most(), figures.refused), (10, [0; 3]));
        assert_all_free(&limiter).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f21_the_same_on_several_threads() {
    let limiter = limiter(10, 50, NEVER, Order::Lifo);
    let mut tasks = Tasks::new(&limiter, fastrand::u64(..));
    tasks.run_all(|task| limiter.set_limit(limit_at(task))).await;
    assert_eq!((tasks.most(), tasks.panics), (10, 334));
    assert_all_free(&limiter).await;
}

#[tokio::test(start_paused = true)]
async fn f21_a_permit_on_its_way_to_a_waiter_who_goes_is_passed_on() {
    let limiter = limiter(1, 50, NEVER, Order::Fifo);
    let held = run(&limiter).await;
    let key = key();
    let mut gone = Box::pin(limiter.acquire(&key, 1, None));
    let mut next = Box::pin(limiter.acquire(&key, 2, None));
    assert!(poll_once(&mut gone).await.is_none());
    assert!(poll_once(&mut next).await.is_none());
    // The first waiter has the permit, and has not been polled since.
    drop(held);
    assert_eq!((limiter.figures().in_flight, limiter.figures().queued), (1, 1));
    drop(gone);
    let permit = poll_once(&mut next).await.unwrap().unwrap();
    assert_eq!((limiter.figures().in_flight, limiter.figures().queued), (1, 0));
    drop(permit);
    assert_all_free(&limiter).await;
}

#[tokio::test(start_paused = true)]
async fn f21_a_lowered_limit_drains_and_a_raised_one_lets_waiters_in() {
    let limiter = limiter(10, 50, NEVER, Order::Fifo);
    let mut permits = Vec::new();
    for _ in 0..10 {
        permits.push(run(&limiter).await);
    }
    let waiters: Vec<_> = (0..20)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { run(&limiter).await })
        })
        .collect();
    yield_now().await;
    limiter.set_limit(3);
    assert_eq!((limiter.figures().in_flight, limiter.figures().queued), (10, 20));
    for left in (3..10).rev() {
        permits.pop();
        assert_eq!((limiter.figures().in_flight, limiter.figures().queued), (left, 20));
    }
    permits.pop();
    assert_eq!((limiter.figures().in_flight, limiter.figures().queued), (3, 19), "it goes to a waiter");
    limiter.set_limit(10);
    assert_eq!((limiter.figures().in_flight, limiter.figures().queued), (10, 12));
    drop(permits);
    for waiter in waiters {
        drop(waiter.await.unwrap());
    }
    assert_all_free(&limiter).await;
}

#[tokio::test]
async fn f21_keys_do_not_share_and_idle_ones_take_no_memory() {
    let limiter = limiter(1, 0, NEVER, Order::Fifo);
    let mut permits = Vec::new();
    for number in 0..10_000 {
        permits.push(limiter.acquire(&Arc::from(number.to_string()), 0, None).await.unwrap());
    }
    assert_eq!(limiter.figures().keys, 10_000);
    assert_eq!(limiter.acquire(&Arc::from("77"), 0, None).await.unwrap_err().reason, Reason::QueueFull);
    assert!(limiter.capacity() >= 10_000);
    drop(permits);
    assert_eq!(limiter.figures().keys, 0);
    assert!(limiter.capacity() <= 64, "{}", limiter.capacity());
}
