use std::sync::Mutex;

use tokio::time::{Instant, sleep, timeout};

use super::*;

/// What happened to the requests of the 30 clients.
#[derive(Debug, Default)]
struct Seen {
    started: usize,
    started_for_nobody: usize,
    refused: Vec<(Reason, Duration)>,
    longest_wait: Duration,
    deepest_queue: usize,
}

impl Seen {
    fn depth(&mut self, queued: usize) {
        self.deepest_queue = self.deepest_queue.max(queued);
    }

    fn start(&mut self, waited: Duration, for_nobody: bool) {
        self.started += 1;
        self.started_for_nobody += usize::from(for_nobody);
        self.longest_wait = self.longest_wait.max(waited);
    }
}

/// Limit 2, queue 25, at most 2 s in it, each job takes 1 s: of 30 clients in a closed loop 10 give up after 0.5 s
/// each time, and others have 100 ms left.
async fn overload(order: Order) -> Seen {
    let limiter = limiter(2, 25, Duration::from_secs(2), order);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let end = Instant::now() + Duration::from_secs(60);
    let clients: Vec<_> = (0..30)
        .map(|client| {
            let (limiter, seen) = (limiter.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                while Instant::now() < end {
                    let asked = Instant::now();
                    let patience = if client < 10 { millis(500) } else { Duration::from_secs(60) };
                    let deadline = (client >= 28).then(|| asked + millis(100));
                    let acquired = timeout(patience, limiter.acquire(&key(), client, deadline)).await;
                    let waited = asked.elapsed();
                    let queued = limiter.figures().queued;
                    seen.lock().unwrap().depth(queued);
                    match acquired {
                        Ok(Ok(_permit)) => {
                            let is_late =
                                waited > patience || deadline.is_some_and(|at| at <= Instant::now());
                            seen.lock().unwrap().start(waited, is_late);
                            sleep(Duration::from_secs(1)).await;
                        }
                        Ok(Err(refusal)) => {
                            seen.lock().unwrap().refused.push((refusal.reason, waited));
                            // Not as long as they are told: the overload lasts.
                            sleep(millis(10)).await;
                        }
                        Err(_gone) => {}
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    assert_all_free(&limiter).await;
    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

fn check(seen: &Seen) {
    // Slots are never idle while somebody waits: 2 jobs a second.
    assert!((118..=124).contains(&seen.started), "{}", seen.started);
    assert_eq!(seen.started_for_nobody, 0);
    assert!(seen.deepest_queue <= 25 && seen.longest_wait <= Duration::from_secs(2), "{seen:?}");
    for (reason, waited) in &seen.refused {
        let expected = match reason {
            Reason::QueueFull => Duration::ZERO,
            Reason::WaitedTooLong => Duration::from_secs(2),
            Reason::DeadlinePassed => millis(100),
        };
        // Tokio's timers are at most 1 ms late.
        assert!(*waited >= expected && *waited <= expected + millis(1), "{reason:?} after {waited:?}");
    }
    for reason in Reason::ALL {
        assert!(seen.refused.iter().any(|(seen, _)| *seen == reason), "nobody was refused as {reason:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn f22_under_overload_nothing_is_started_for_a_caller_who_has_gone_oldest_first() {
    check(&overload(Order::Fifo).await);
}

#[tokio::test(start_paused = true)]
async fn f22_under_overload_nothing_is_started_for_a_caller_who_has_gone_newest_first() {
    check(&overload(Order::Lifo).await);
}

#[tokio::test(start_paused = true)]
async fn f22_waiters_are_started_in_order() {
    for (order, expected) in [(Order::Fifo, [1, 2, 3]), (Order::Lifo, [3, 2, 1])] {
        let limiter = limiter(1, 50, Duration::from_secs(60), order);
        let held = run(&limiter).await;
        let started = Arc::new(Mutex::new(Vec::new()));
        let waiters: Vec<_> = (1..=3)
            .map(|number| {
                let (limiter, started) = (limiter.clone(), Arc::clone(&started));
                tokio::spawn(async move {
                    sleep(millis(number)).await;
                    let permit = run(&limiter).await;
                    started.lock().unwrap().push(number);
                    sleep(millis(100)).await;
                    permit.waited()
                })
            })
            .collect();
        sleep(millis(10)).await;
        drop(held);
        for waiter in waiters {
            assert!(waiter.await.unwrap() >= millis(7));
        }
        assert_eq!(*started.lock().unwrap(), expected);
    }
}

/// Two waiters, the first with a deadline in 100 ms, polled by nobody but the test.
#[tokio::test(start_paused = true)]
async fn f22_a_slot_goes_past_a_waiter_whose_deadline_has_passed() {
    for (freed_after, handed) in [(100, false), (50, true)] {
        let limiter = limiter(1, 50, Duration::from_secs(60), Order::Fifo);
        let (held, key) = (run(&limiter).await, key());
        let mut late = Box::pin(limiter.acquire(&key, 0, Some(Instant::now() + millis(100))));
        let mut next = Box::pin(limiter.acquire(&key, 0, None));
        assert!(poll_once(&mut late).await.is_none() && poll_once(&mut next).await.is_none());
        tokio::time::advance(millis(freed_after)).await;
        drop(held);
        if !handed {
            assert!(poll_once(&mut next).await.is_some_and(|next| next.is_ok()), "it is next at once");
        }
        tokio::time::advance(millis(100 - freed_after)).await;
        // Even where the slot was handed over in time, it comes too late.
        let refusal = poll_once(&mut late).await.unwrap().unwrap_err();
        assert_eq!((refusal.reason, refusal.waited), (Reason::DeadlinePassed, millis(100)));
        if handed {
            assert_eq!(poll_once(&mut next).await.unwrap().unwrap().waited(), millis(100));
        }
        assert_eq!(limiter.figures().acquired, 2, "the late one never started");
        assert_all_free(&limiter).await;
    }
}

#[tokio::test(start_paused = true)]
async fn f22_a_deadline_that_has_passed_is_not_started_even_where_there_is_room() {
    let limiter = limiter(1, 50, Duration::from_secs(60), Order::Fifo);
    let refusal = limiter.acquire(&key(), 0, Some(Instant::now())).await.unwrap_err();
    assert_eq!((refusal.reason, refusal.in_flight), (Reason::DeadlinePassed, 0));
    assert!(!refusal.retry_after.is_zero());
    assert_eq!(limiter.figures().refused, [0, 0, 1]);
    assert_all_free(&limiter).await;
}
