use quota_proto::v1;

use super::*;
use crate::classes::answer::Answer;

const LEASE: Duration = Duration::from_secs(6);
const PATIENCE: Duration = Duration::from_millis(100);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A class with a cap, of which so many slots were leased.
fn answer(lease: u8, count: u32) -> Answer {
    Answer {
        class: "ci".into(),
        policy: Policy { waits: None, max_run: None },
        partial: false,
        standing: Some(v1::SlotStanding { leased: count, leases: 1, cap: 100 }),
        lease: vec![lease; 16],
        count,
        lasts: LEASE,
        refused: None,
    }
}

fn patient(answer: Answer) -> Answer {
    Answer { policy: Policy { waits: Some((Duration::from_secs(2), 3)), ..answer.policy }, ..answer }
}

fn refused(answer: Answer) -> Answer {
    Answer { count: 0, lease: Vec::new(), refused: Some((NoSlotReason::AtCap, COME_BACK)), ..answer }
}

fn holding(answer: Answer, now: Instant) -> Holding {
    let mut holding = Holding::default();
    holding.acquired(answer, 0, now, now);
    holding
}

fn enter(holding: &mut Holding, now: Instant) -> Entry {
    holding.enter(now, now + PATIENCE, None)
}

fn runs(holding: &mut Holding, now: Instant) -> usize {
    match enter(holding, now) {
        Entry::Runs(key) => key,
        other => panic!("{other:?}"),
    }
}

fn waits(holding: &mut Holding, now: Instant) -> oneshot::Receiver<Handed> {
    match enter(holding, now) {
        Entry::Waits { receiver, .. } => receiver,
        other => panic!("{other:?}"),
    }
}

fn reason(entry: Entry) -> NoSlotReason {
    match entry {
        Entry::Refused(refusal) => refusal.reason,
        other => panic!("{other:?}"),
    }
}

/// The slots that are to be renewed, or given back.
fn renewals(asks: &[Ask]) -> Vec<u32> {
    asks.iter()
        .filter_map(|ask| if let Ask::Renew(renewal) = ask { Some(renewal.count) } else { None })
        .collect()
}

fn acquires(asks: &[Ask]) -> Vec<(u32, u32, u32)> {
    let acquire = |ask: &Ask| match ask {
        Ask::Acquire(Wanted { count, spare, overrun }) => Some((*count, *spare, *overrun)),
        Ask::Renew(_) => None,
    };
    asks.iter().filter_map(acquire).collect()
}

#[test]
fn of_what_is_leased_no_more_run_than_there_are_slots() {
    let now = Instant::now();
    let mut holding = holding(answer(1, 2), now);
    let first = runs(&mut holding, now);
    runs(&mut holding, now);
    let mut receiver = waits(&mut holding, now);
    assert!(holding.next(now).is_none());
    holding.end(first, now);
    let (sender, key) = holding.next(now).unwrap();
    assert!(key.is_some() && sender.send(Handed::Free).is_ok());
    assert!(receiver.try_recv().is_ok());
    assert_eq!(holding.running.len(), 2);
}

#[test]
fn nothing_begins_by_a_lease_that_has_ended_and_what_runs_then_is_told() {
    let now = Instant::now();
    let mut holding = holding(answer(1, 2), now);
    let running = runs(&mut holding, now);
    let ended = now + LEASE;
    let _waiting = waits(&mut holding, ended);
    assert!(holding.sweep(ended, "").is_empty());
    assert_eq!(acquires(&holding.plan(ended)), [(1, 1, 1)]);
    // Its end frees nothing: the slot may be another's.
    holding.end(running, ended);
    assert!(holding.next(ended).is_none());
    assert_eq!(holding.figures().unwrap().1.leased, 0);
}

#[test]
fn a_lease_lasts_from_when_it_was_asked_for() {
    let asked = Instant::now();
    let mut holding = Holding::default();
    holding.acquired(answer(1, 1), 1, asked, asked + millis(400));
    assert!(matches!(enter(&mut holding, asked + LEASE), Entry::Waits { .. }));
}

#[test]
fn a_lease_is_renewed_when_a_third_of_it_is_over() {
    let now = Instant::now();
    let mut holding = holding(answer(1, 1), now);
    runs(&mut holding, now);
    assert_eq!(renewals(&holding.plan(now + millis(1999))), [0; 0]);
    let later = now + millis(2000);
    assert_eq!(renewals(&holding.plan(later)), [1]);
    holding.renewed(1, &answer(1, 1), later);
    assert!(holding.sweep(now + LEASE, "").is_empty());
    assert_eq!(holding.figures().unwrap().1.leased, 1);
    holding.renewed(1, &answer(0, 0), later);
    holding.sweep(later, "");
    assert_eq!(acquires(&holding.plan(later)), [(0, 1, 1)], "it has ended, and what runs is told");
}

#[test]
fn slots_that_were_not_needed_for_a_while_are_given_back() {
    let now = Instant::now();
    let mut holding = holding(answer(1, 5), now);
    let (first, _second) = (runs(&mut holding, now), runs(&mut holding, now));
    holding.end(first, now + millis(100));
    let later = now + millis(500);
    assert_eq!(renewals(&holding.plan(later)), [2], "so many were needed at a time");
    assert!(matches!(enter(&mut holding, later), Entry::Runs(_)));
    assert!(matches!(enter(&mut holding, later), Entry::Waits { .. }), "the others are given away");
    let mut idle = self::holding(answer(1, 5), now);
    assert_eq!(renewals(&idle.plan(later)), [0]);
    idle.renewed(1, &answer(0, 0), later);
    assert!(idle.sweep(later, "").is_empty() && !idle.is_busy());
}

#[test]
fn the_fullest_block_is_used_so_that_others_become_empty() {
    let now = Instant::now();
    let mut holding = holding(answer(1, 3), now);
    holding.acquired(answer(2, 3), 3, now, now);
    let keys: Vec<usize> = (0..4).map(|_| runs(&mut holding, now)).collect();
    let blocks: Vec<_> = keys.iter().map(|key| holding.running[*key].block.unwrap()).collect();
    assert!(blocks[..3].iter().all(|block| *block == blocks[0]) && blocks[3] != blocks[0], "{blocks:?}");
    holding.end(keys[0], now);
    let next = runs(&mut holding, now);
    assert_eq!(holding.running[next].block, Some(blocks[0]));
}

#[test]
fn who_does_not_wait_is_refused_when_the_service_says_that_there_is_none() {
    let now = Instant::now();
    let mut holding = holding(answer(1, 0), now);
    let mut receivers = [waits(&mut holding, now), waits(&mut holding, now), waits(&mut holding, now)];
    assert_eq!(acquires(&holding.plan(now)), [(3, 0, 0)]);
    let later = waits(&mut holding, now + millis(1));
    let told = holding.acquired(answer(2, 1), 3, now, now + millis(2));
    assert_eq!(told.iter().map(|(_, refusal)| refusal.reason).collect::<Vec<_>>(), [NoSlotReason::AtCap; 2]);
    drop(told);
    assert!(receivers[0].try_recv().is_err(), "one has the slot that there is");
    assert_eq!(
        reason(enter(&mut holding, now + millis(51))),
        NoSlotReason::AtCap,
        "it need not be asked again"
    );
    drop(later);
    assert!(matches!(enter(&mut holding, now + millis(52)), Entry::Waits { .. }));
}

#[test]
fn who_waits_does_so_in_a_queue_that_is_bounded_and_asks_again_after_a_while() {
    let now = Instant::now();
    let mut holding = holding(patient(answer(1, 0)), now);
    let _waiting: Vec<_> = (0..3).map(|_| waits(&mut holding, now)).collect();
    assert_eq!(reason(enter(&mut holding, now)), NoSlotReason::QueueFull);
    assert_eq!(acquires(&holding.plan(now)), [(3, 1, 0)]);
    assert!(holding.acquired(refused(patient(answer(2, 0))), 3, now, now).is_empty());
    assert!(holding.plan(now + millis(49)).is_empty(), "not for each that comes");
    assert_eq!(acquires(&holding.plan(now + millis(50))), [(3, 0, 0)]);
}

#[test]
fn who_goes_away_frees_his_place() {
    let now = Instant::now();
    let mut holding = holding(patient(answer(1, 1)), now);
    let running = runs(&mut holding, now);
    let Entry::Waits { waiter, receiver: _gone, .. } = enter(&mut holding, now) else { panic!("it waits") };
    let mut second = waits(&mut holding, now);
    holding.leave(waiter);
    holding.end(running, now);
    let (sender, _) = holding.next(now).unwrap();
    assert!(sender.send(Handed::Free).is_ok() && second.try_recv().is_ok());
}

#[test]
fn without_the_service_who_waits_is_served_by_what_is_held_and_others_are_refused_soon() {
    let now = Instant::now();
    let mut holding = holding(answer(1, 1), now);
    runs(&mut holding, now);
    let receiver = waits(&mut holding, now);
    let told = holding.away(2, now, now + millis(1));
    assert_eq!(told[0].1.reason, NoSlotReason::Away);
    drop((told, receiver));
    assert_eq!(reason(enter(&mut holding, now + millis(50))), NoSlotReason::Away);
    assert_eq!(acquires(&holding.plan(now + millis(60))), [(0, 3, 2)], "those that overran are told again");
}

#[test]
fn a_class_without_a_cap_and_one_that_nobody_can_tell_of_hold_nobody_up() {
    let now = Instant::now();
    let uncapped =
        Answer { standing: None, count: 0, lease: Vec::new(), lasts: millis(5000), ..answer(0, 0) };
    let mut holding = Holding::default();
    assert!(matches!(enter(&mut holding, now), Entry::NotTold));
    holding.away(0, now, now);
    assert!(matches!(enter(&mut holding, now), Entry::Free));
    holding.acquired(uncapped.clone(), 0, now, now);
    assert!(matches!(enter(&mut holding, now), Entry::Free));
    assert!(holding.plan(now + millis(4999)).is_empty());
    assert_eq!(acquires(&holding.plan(now + millis(5000))).len(), 1, "whether it has none still");
    assert_eq!(holding.figures(), None);
    holding.unknown();
    assert!(holding.is_unknown() && matches!(enter(&mut holding, now), Entry::Free));
    // A cap that is lifted lets all in that wait.
    let mut capped = self::holding(answer(1, 0), now);
    let _waiting = waits(&mut capped, now);
    capped.acquired(uncapped, 1, now, now);
    assert!(matches!(capped.next(now), Some((_, None))));
}

#[test]
fn what_runs_for_too_long_is_told_once_and_its_slot_is_taken_back() {
    let now = Instant::now();
    let mut timed = answer(1, 1);
    timed.policy.max_run = Some(millis(1000));
    let mut holding = holding(timed, now);
    let running = runs(&mut holding, now);
    holding.attach(running, &Meter::new(None));
    assert!(holding.is_timed() && holding.sweep(now + millis(999), "").is_empty());
    let told = holding.sweep(now + millis(1000), "gitaly-01");
    assert_eq!(
        told[0].1.to_string(),
        "no slot for a request of class ci: it ran for too long on gitaly-01; try again in 1 s"
    );
    assert!(holding.sweep(now + millis(1001), "").is_empty());
    let next = runs(&mut holding, now + millis(1001));
    holding.end(running, now + millis(1002));
    assert!(matches!(enter(&mut holding, now + millis(1002)), Entry::Waits { .. }), "its slot is another's");
    holding.end(next, now + millis(1003));
    assert_eq!(holding.figures().unwrap().1.refused[8], 1);
}

#[test]
fn the_deadline_of_the_caller_is_kept() {
    let now = Instant::now();
    let mut holding = holding(patient(answer(1, 0)), now);
    let passed = holding.enter(now, now + PATIENCE, Some(now));
    assert_eq!(reason(passed), NoSlotReason::DeadlinePassed);
    let Entry::Waits { until, .. } = holding.enter(now, now + PATIENCE, Some(now + millis(700))) else {
        panic!("it waits")
    };
    assert_eq!(until, now + millis(700));
    assert_eq!(holding.waited(now, Some(until), until).reason, NoSlotReason::DeadlinePassed);
    assert_eq!(holding.waited(now, None, now + millis(2000)).reason, NoSlotReason::WaitedTooLong);
}

/// Of so many slots that all hold, where there are so many.
fn beyond(answer: Answer, leased: u32, cap: u32) -> Answer {
    Answer { standing: Some(v1::SlotStanding { leased, leases: 2, cap }), ..answer }
}

#[test]
fn where_the_cap_was_lowered_each_holder_gives_up_its_part_as_requests_end() {
    let now = Instant::now();
    let mut holding = holding(answer(1, 10), now);
    let running: Vec<usize> = (0..9).map(|_| runs(&mut holding, now)).collect();
    let later = now + millis(2000);
    // It holds half of all, so that it gives up half of what is too much: 5, of which one is free.
    holding.renewed(1, &beyond(answer(1, 10), 20, 10), later);
    assert_eq!(renewals(&holding.plan(later)), [9]);
    let _waiting = waits(&mut holding, later);
    for (key, left) in running.iter().zip([8, 7, 6, 5]) {
        holding.end(*key, later);
        assert!(holding.next(later).is_none(), "nobody else gets it");
        assert_eq!(renewals(&holding.plan(later)), [left], "it is given back at once");
    }
    holding.end(running[4], later);
    assert!(holding.next(later).is_some(), "the rest goes on");
    // Others have not heard of it yet: that is not made up for here.
    holding.renewed(1, &beyond(answer(1, 9), 19, 10), later + millis(1999));
    assert_eq!((holding.blocks[0].count, holding.surplus), (5, 0));
    // Half of 9 that are too many, in whole slots 5: of which 4 are given up already, though the service does not know it.
    holding.renewed(1, &beyond(answer(1, 9), 19, 10), later + millis(2000));
    assert_eq!((holding.blocks[0].count, holding.surplus), (5, 1));
    // Where nothing is too many any more, it keeps what it has.
    holding.renewed(1, &beyond(answer(1, 5), 10, 10), later + millis(2001));
    assert_eq!((holding.blocks[0].count, holding.surplus), (5, 0));
}

#[test]
fn what_ran_too_long_before_it_was_known_whose_work_it_is_is_told_then() {
    let now = Instant::now();
    let mut timed = answer(1, 1);
    timed.policy.max_run = Some(millis(1000));
    let mut holding = holding(timed, now);
    let running = runs(&mut holding, now);
    assert_eq!(holding.sweep(now + millis(1000), "").len(), 1);
    assert!(holding.attach(running, &Meter::new(None)).is_some());
}

#[test]
fn how_a_class_is_served_is_learnt_from_renewals_too() {
    let now = Instant::now();
    let mut holding = holding(answer(1, 1), now);
    let policy = Policy { waits: None, max_run: Some(millis(5)) };
    holding.renewed(1, &Answer { policy, partial: true, ..answer(1, 1) }, now);
    assert!(holding.is_timed() && holding.is_partial());
    holding.renewed(1, &Answer { standing: None, ..answer(1, 1) }, now);
    assert!(matches!(enter(&mut holding, now), Entry::Free), "the cap was lifted");
}
