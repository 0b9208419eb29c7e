use super::*;
use crate::payers::tests::user;

fn spent(name: &str, bytes: u64) -> Spent {
    Spent {
        payers: Arc::new(user(name)),
        cost: Cost::ZERO.with_network_bytes(bytes).unwrap(),
        release: None,
        here: None,
        finished: None,
    }
}

fn releasing(name: &str, bytes: u64) -> Spent {
    let release = Release { reservation: "r1".into(), amounts: Cost::ZERO };
    Spent { release: Some(release), ..spent(name, bytes) }
}

fn bytes(charges: &[v1::Charge]) -> Vec<u64> {
    charges.iter().map(|charge| charge.cost.unwrap().network_bytes).collect()
}

#[test]
fn one_interval_of_the_same_accounts_is_one_charge() {
    let (mut pending, now) = (Pending::default(), Instant::now());
    for spent in [spent("alice", 1), spent("bob", 10), spent("alice", 2), releasing("alice", 4)] {
        pending.add(spent, now);
    }
    pending.close(now);
    pending.add(spent("alice", 100), now);
    assert_eq!(bytes(&pending.freeze(now)), [3, 10, 4], "of the interval that has ended alone");
    assert_eq!(pending.len(), 4);
    assert!(!pending.is_drained());
    pending.landed();
    assert!(pending.is_drained());
    pending.close(now);
    assert_eq!(bytes(&pending.freeze(now)), [100]);
}

#[test]
fn what_gives_back_of_the_same_reservation_is_one_charge() {
    let (mut pending, now) = (Pending::default(), Instant::now());
    let giving_back = |token: &Arc<str>, micros: u64| {
        let amounts = Cost::ZERO.with_cpu_micros(micros).unwrap();
        let release = Some(Release { reservation: Arc::clone(token), amounts });
        Spent { release, ..spent("alice", micros) }
    };
    let share = "r1.share".into();
    for _ in 0..100_000 {
        pending.add(giving_back(&share, 7), now);
    }
    pending.add(giving_back(&"r1.other".into(), 1), now);
    pending.close(now);
    let charges = pending.freeze(now);
    let told = charges.iter().map(|charge| (&*charge.reservation, charge.release.unwrap().cpu_micros));
    assert_eq!(told.collect::<Vec<_>>(), [("r1.share", 700_000), ("r1.other", 1)]);
    assert_eq!(bytes(&charges), [700_000, 1]);
    assert_eq!(pending.take_lost(), 0);
}

#[test]
fn a_request_that_has_finished_is_a_charge_of_its_own_and_tells_what_it_cost() {
    let (mut pending, now) = (Pending::default(), Instant::now());
    let total = Cost::ZERO.with_network_bytes(70).unwrap();
    let finished = Finished { rpc: "/svc/Fetch".into(), wall: Duration::from_millis(1500), total };
    for spent in
        [spent("alice", 1), Spent { finished: Some(finished), ..spent("alice", 2) }, spent("alice", 4)]
    {
        pending.add(spent, now);
    }
    pending.close(now);
    let charges = pending.freeze(now);
    assert_eq!(bytes(&charges), [5, 2]);
    assert_eq!((&*charges[0].rpc, charges[0].finished, charges[0].total), ("", false, None));
    assert_eq!((&*charges[1].rpc, charges[1].finished), ("/svc/Fetch", true));
    assert_eq!(charges[1].total.unwrap().network_bytes, 70);
    let wall = Duration::try_from(charges[1].wall.unwrap()).unwrap();
    assert_eq!(wall, Duration::from_millis(1500));
}

#[test]
fn a_charge_knows_its_age() {
    let (mut pending, now) = (Pending::default(), Instant::now());
    pending.add(spent("alice", 1), now);
    pending.close(now + Duration::from_secs(1));
    let charges = pending.freeze(now + Duration::from_millis(2500));
    let age = Duration::try_from(charges[0].age.unwrap()).unwrap();
    assert_eq!(age, Duration::from_millis(1500));
}

#[test]
fn f24_the_oldest_are_dropped_and_counted_beyond_the_bound() {
    let (mut pending, now) = (Pending::default(), Instant::now());
    for at in 0..MAX_PENDING + 10 {
        pending.add(spent(&format!("user-{at}"), at as u64), now);
        assert!(pending.len() <= MAX_PENDING);
    }
    assert_eq!(pending.take_lost(), 10);
    assert_eq!(pending.take_lost(), 0, "told once");
    pending.close(now);
    let charges = pending.freeze(now);
    assert_eq!(charges.len(), MAX_BATCH);
    assert_eq!(bytes(&charges)[0], 10, "the newest stay");
}

#[test]
fn f24_what_is_older_than_a_window_is_dropped_and_counted() {
    let (mut pending, now) = (Pending::default(), Instant::now());
    pending.add(spent("alice", 1), now);
    pending.close(now);
    let later = now + MAX_AGE;
    pending.add(spent("alice", 2), later);
    pending.close(later);
    assert_eq!(bytes(&pending.freeze(later)), [2]);
    assert_eq!(pending.take_lost(), 1);
}

#[test]
fn what_was_reported_takes_no_room() {
    let (mut pending, now) = (Pending::default(), Instant::now());
    for at in 0..2 * MAX_BATCH {
        pending.add(spent(&format!("user-{at}"), 1), now);
    }
    pending.close(now);
    assert_eq!(pending.freeze(now).len(), MAX_BATCH);
    assert_eq!((pending.open.capacity(), pending.mergeable.capacity()), (0, 0));
    assert_eq!(pending.freeze(now).len(), MAX_BATCH);
    assert_eq!(pending.closed.capacity(), 0);
}
