use super::*;

const LOAD: Load = Load { limit: 10, in_flight: 10, queued: 50, max_queue: 50 };

/// 100 slots a second become free.
fn pace() -> Pace {
    let mut pace = Pace::new(Mean::default(), Instant::now());
    pace.freed(Duration::from_millis(100));
    pace
}

/// Where the queue is nearly empty.
fn places(pace: &mut Pace, caller: u64, now: Instant) -> usize {
    pace.places(caller, Load { queued: 0, ..LOAD }, 0.5, now)
}

fn millis(duration: Duration) -> u128 {
    duration.as_millis()
}

#[test]
fn each_is_told_a_moment_of_its_own_as_slots_become_free() {
    let (mut pace, now) = (pace(), Instant::now());
    let told: Vec<_> = (0..4).map(|caller| millis(pace.promise(caller, LOAD, now))).collect();
    assert_eq!(told, [260, 271, 282, 293], "26 slots of 10 ms, and then 90 a second");
    let lowered = Load { limit: 5, ..LOAD };
    assert_eq!(millis(self::pace().promise(0, lowered, now)), 620, "5 in flight are above the limit");
}

#[test]
fn what_is_told_is_bounded() {
    let (mut pace, now) = (pace(), Instant::now());
    let short = Load { queued: 0, ..LOAD };
    assert_eq!(pace.promise(0, short, now), SHORTEST);
    for held in [Duration::ZERO, Duration::MAX] {
        let mut pace = Pace::new(Mean::default(), Instant::now());
        pace.freed(held);
        for caller in 0..5_000 {
            let wait = pace.promise(caller, LOAD, now);
            assert!((SHORTEST..=LONGEST).contains(&wait), "{wait:?}");
        }
        assert_eq!(pace.promises.len(), promises::MAX);
    }
}

#[test]
fn a_promise_is_kept_from_its_moment_for_as_long_again() {
    let start = Instant::now();
    let at = |millis| start + Duration::from_millis(millis);
    let mut pace = pace();
    assert_eq!(places(&mut pace, 1, start), 50, "nobody is expected");
    pace.promise(1, LOAD, start);
    assert_eq!(places(&mut pace, 1, at(259)), 25, "too early");
    assert_eq!(places(&mut pace, 2, at(260)), 25, "somebody else");
    assert_eq!(places(&mut pace, 1, at(1_519)), 50);
    assert_eq!(places(&mut pace, 1, at(1_519)), 50, "nobody else is expected");
    pace.promise(1, LOAD, at(2_000));
    assert_eq!(places(&mut pace, 2, at(3_519)), 25);
    assert_eq!(places(&mut pace, 2, at(3_520)), 50, "given up");
}

#[test]
fn the_fuller_the_queue_the_fewer_newcomers_are_let_in() {
    let now = Instant::now();
    let mut pace = pace();
    pace.promise(1, LOAD, now);
    let mut let_in = |queued, chance| pace.places(2, Load { queued, ..LOAD }, chance, now) > queued;
    assert!([0, 12].iter().all(|queued| let_in(*queued, 0.99)));
    assert_eq!([0.39, 0.41].map(|chance| let_in(20, chance)), [true, false]);
    assert!([25, 49].iter().all(|queued| !let_in(*queued, 0.0)));
}

#[test]
fn until_the_first_slot_is_free_requests_take_as_long_as_the_first_has_been_running() {
    let start = Instant::now();
    let told = |seconds| {
        let mut pace = Pace::new(Mean::default(), start);
        millis(pace.promise(1, LOAD, start + Duration::from_secs(seconds)))
    };
    assert_eq!([told(0), told(10)], [260, 26_000]);
}

#[test]
fn callers_who_cannot_be_told_apart_are_paced_by_how_often_they_come() {
    let start = Instant::now();
    let spacing = |come_every: u64| {
        let mut pace = pace();
        // Nothing is due meanwhile.
        let far = Load { in_flight: 6_000, ..LOAD };
        for _ in 0..=LOAD.limit {
            pace.promise(1, far, start);
        }
        for millis in (0..=1_000).step_by(come_every as usize) {
            places(&mut pace, 1, start + Duration::from_millis(millis));
        }
        let now = start + Duration::from_millis(1_001);
        let first = pace.promise(1, far, now);
        millis(pace.promise(1, far, now) - first)
    };
    assert_eq!(spacing(10), 40, "100 a second come, and 25 may come back");
    assert_eq!(spacing(5), 50, "200 a second come, and yet 20 may come back");
    assert_eq!(spacing(50), 11, "20 a second come, and 90 may come back");
}
