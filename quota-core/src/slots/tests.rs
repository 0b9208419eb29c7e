use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const LASTS: Duration = Duration::from_secs(5);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_micros(1_764_500_000_000_000 + 1000 * millis)
}

fn terms(cap: u32) -> SlotTerms {
    SlotTerms { cap: Cap::Fixed(cap), node_cap: None, lasts: LASTS }
}

fn owner(name: &str) -> Owner {
    Owner { holder: name.into(), node: "".into() }
}

fn wanted(lease: u8, count: u32) -> Wanted {
    Wanted { owner: owner("a"), lease: [lease; 16], count, spare: 0, stops: None }
}

fn kept(lease: u8, count: u32) -> Renewal {
    Renewal { owner: owner("a"), lease: [lease; 16], count }
}

fn acquire(slots: &mut Slots, millis: u64, wanted: &Wanted, terms: &SlotTerms) -> (u32, Option<NoSlot>) {
    let leased = slots.acquire(at(millis), wanted, terms, false);
    (leased.count, leased.refused)
}

fn renew(slots: &mut Slots, millis: u64, kept: &Renewal, terms: &SlotTerms) -> (u32, Duration) {
    let leased = slots.renew(at(millis), kept, Progress::default(), terms, false);
    (leased.count, leased.lasts)
}

#[test]
fn as_many_are_leased_as_there_are_and_then_none() {
    let (mut slots, ten) = (Slots::default(), terms(10));
    assert_eq!(acquire(&mut slots, 0, &wanted(1, 7), &ten), (7, None));
    assert_eq!(acquire(&mut slots, 0, &wanted(2, 7), &ten), (3, None));
    assert_eq!(acquire(&mut slots, 0, &wanted(3, 1), &ten), (0, Some(NoSlot::AtCap)));
    assert_eq!(slots.standing(), SlotStanding { leased: 10, leases: 2, cap: 10 });
    assert_eq!(renew(&mut slots, 1000, &kept(1, 0), &ten), (0, Duration::ZERO));
    assert_eq!(acquire(&mut slots, 1000, &wanted(4, 9), &ten), (7, None));
}

#[test]
fn what_was_killed_gives_its_slots_back_when_its_lease_ends() {
    let (mut slots, ten) = (Slots::default(), terms(10));
    acquire(&mut slots, 0, &wanted(1, 10), &ten);
    assert_eq!(acquire(&mut slots, 4999, &wanted(2, 1), &ten), (0, Some(NoSlot::AtCap)));
    assert_eq!(acquire(&mut slots, 5000, &wanted(2, 10), &ten), (10, None));
    assert_eq!(renew(&mut slots, 5000, &kept(1, 10), &ten), (0, Duration::ZERO), "it is another's now");
}

#[test]
fn a_lease_is_renewed_by_its_holder_and_only_becomes_smaller() {
    let (mut slots, ten) = (Slots::default(), terms(10));
    acquire(&mut slots, 0, &wanted(1, 4), &ten);
    assert_eq!(renew(&mut slots, 4000, &kept(1, 9), &ten), (4, LASTS));
    assert_eq!(renew(&mut slots, 8000, &kept(1, 2), &ten), (2, LASTS));
    assert_eq!(renew(&mut slots, 8000, &kept(1, 4), &ten), (2, LASTS), "a call that comes late");
    let another = Renewal { owner: owner("b"), ..kept(1, 2) };
    assert_eq!(renew(&mut slots, 8000, &another, &ten), (0, Duration::ZERO));
    assert_eq!(slots.standing().leased, 2, "another's word is nothing");
}

#[test]
fn a_lease_that_stops_is_renewed_until_then() {
    let (mut slots, ten) = (Slots::default(), terms(10));
    let wanted = Wanted { stops: Some(Duration::from_secs(7)), ..wanted(1, 1) };
    acquire(&mut slots, 0, &wanted, &ten);
    assert_eq!(renew(&mut slots, 4000, &kept(1, 1), &ten), (1, Duration::from_secs(3)));
    assert_eq!(renew(&mut slots, 7000, &kept(1, 1), &ten), (0, Duration::ZERO));
}

#[test]
fn a_node_has_no_more_than_its_cap() {
    let (mut slots, terms) = (Slots::default(), SlotTerms { node_cap: Some(3), ..terms(10) });
    let of_node = |lease, node: &str, count| Wanted {
        owner: Owner { holder: "a".into(), node: node.into() },
        ..wanted(lease, count)
    };
    assert_eq!(acquire(&mut slots, 0, &of_node(1, "x", 5), &terms), (3, None));
    assert_eq!(acquire(&mut slots, 0, &of_node(2, "x", 1), &terms), (0, Some(NoSlot::AtNodeCap)));
    assert_eq!(acquire(&mut slots, 0, &of_node(3, "y", 2), &terms), (2, None));
    assert_eq!(acquire(&mut slots, 0, &of_node(4, "", 9), &terms), (5, None), "who names no node");
}

#[test]
fn a_node_takes_up_no_more_than_its_cap_of_what_may_have_been_leased_before() {
    let terms = SlotTerms { node_cap: Some(3), ..terms(10) };
    let mut slots = Slots::opening(at(5000));
    let of_node = |lease, node: &str, count| Renewal {
        owner: Owner { holder: "a".into(), node: node.into() },
        ..kept(lease, count)
    };
    assert_eq!(renew(&mut slots, 0, &of_node(1, "x", 10), &terms).0, 3);
    assert_eq!(renew(&mut slots, 0, &of_node(2, "x", 1), &terms).0, 0);
    assert_eq!(renew(&mut slots, 0, &of_node(3, "y", 2), &terms).0, 2, "who runs there goes on");
    assert_eq!(renew(&mut slots, 1000, &of_node(1, "x", 3), &terms).0, 3);
}

#[test]
fn a_node_has_no_more_than_its_part_of_the_leases() {
    let (mut slots, terms) = (Slots::default(), terms(50_000));
    let of_node = |lease: usize, node: &str| Wanted {
        owner: Owner { holder: "a".into(), node: node.into() },
        lease: (lease as u128).to_le_bytes(),
        ..wanted(0, 1)
    };
    for lease in 0..Slots::MOST_LEASES_OF_NODE {
        assert_eq!(acquire(&mut slots, 0, &of_node(lease, "x"), &terms), (1, None));
    }
    let most = Slots::MOST_LEASES;
    assert_eq!(acquire(&mut slots, 0, &of_node(most, "x"), &terms), (0, Some(NoSlot::TooManyLeases)));
    assert_eq!(acquire(&mut slots, 0, &of_node(most, "y"), &terms), (1, None));
    assert_eq!(acquire(&mut slots, 0, &of_node(most + 1, ""), &terms), (1, None));
}

#[test]
fn spare_slots_are_a_quarter_of_what_is_left() {
    let (mut slots, terms) = (Slots::default(), terms(22));
    let greedy = Wanted { spare: 100, ..wanted(1, 2) };
    assert_eq!(acquire(&mut slots, 0, &greedy, &terms), (7, None));
    assert_eq!(
        acquire(&mut slots, 0, &Wanted { lease: [2; 16], count: 0, ..greedy.clone() }, &terms),
        (3, None)
    );
    assert_eq!(acquire(&mut slots, 0, &wanted(3, 12), &terms), (12, None), "who needs some has them all");
}

#[test]
fn what_may_be_held_by_others_is_leased_to_nobody_and_taken_up_when_it_is_renewed() {
    let (mut slots, ten) = (Slots::opening(at(5000)), terms(10));
    let opening = |millis| Some(NoSlot::Opening(Duration::from_millis(millis)));
    assert_eq!(acquire(&mut slots, 1000, &wanted(1, 1), &ten), (0, opening(4000)));
    assert_eq!(renew(&mut slots, 1000, &kept(2, 6), &ten), (6, LASTS));
    assert_eq!(renew(&mut slots, 1000, &kept(3, 6), &ten), (4, LASTS), "never more than the cap");
    assert_eq!(acquire(&mut slots, 5000, &wanted(1, 1), &ten), (0, Some(NoSlot::AtCap)));
    assert_eq!(renew(&mut slots, 5000, &kept(4, 6), &ten), (0, Duration::ZERO));
}

#[test]
fn where_the_clock_steps_back_a_lease_lasts_no_longer() {
    let (mut slots, ten) = (Slots::default(), terms(10));
    let hour = 3_600_000;
    acquire(&mut slots, hour, &wanted(1, 10), &ten);
    assert_eq!(acquire(&mut slots, 0, &wanted(2, 1), &ten), (0, Some(NoSlot::AtCap)));
    assert_eq!(acquire(&mut slots, 4999, &wanted(2, 1), &ten), (0, Some(NoSlot::AtCap)));
    assert_eq!(acquire(&mut slots, 5000, &wanted(2, 1), &ten), (1, None));
}

const ADAPTIVE: Adaptive = Adaptive { min: 10, max: 100, tolerance: 200 };

fn adaptive() -> SlotTerms {
    SlotTerms { cap: Cap::Adaptive(ADAPTIVE), ..terms(0) }
}

/// So many requests, which took so long each.
fn told(finished: u32, micros: u64) -> Progress {
    Progress { finished, took: Duration::from_micros(u64::from(finished) * micros) }
}

/// Requests that take so long, as many as the cap lets in, for some seconds: a lease in each, and what is told when it is given
/// back. Returns the cap at the end of each.
fn caps(slots: &mut Slots, from: u64, seconds: u64, micros: u64, pressed: bool) -> Vec<u32> {
    let mut caps = Vec::new();
    for second in from..from + seconds {
        slots.renew(at(1000 * second), &kept(1, 0), told(100, micros), &adaptive(), pressed);
        caps.push(slots.acquire(at(1000 * second), &wanted(1, 1000), &adaptive(), pressed).standing.cap);
    }
    caps
}

#[test]
fn a_cap_is_lowered_while_requests_are_slow_or_nodes_are_pressed_and_returns() {
    let mut slots = Slots::default();
    assert_eq!(caps(&mut slots, 0, 3, 5_000, false), [100; 3]);
    assert_eq!(caps(&mut slots, 3, 4, 500_000, false), [75, 56, 42, 31]);
    assert_eq!(caps(&mut slots, 7, 8, 500_000, false).last(), Some(&10));
    assert_eq!(caps(&mut slots, 15, 3, 6_000, false), [15, 20, 25]);
    assert_eq!(caps(&mut slots, 18, 1, 5_000, true), [18]);
    assert_eq!(caps(&mut slots, 19, 20, 5_000, false).last(), Some(&100));
}

#[test]
fn what_is_slow_for_an_hour_is_usual() {
    let mut slots = Slots::default();
    caps(&mut slots, 0, 5, 5_000, false);
    assert_eq!(caps(&mut slots, 5, 300, 50_000, false).last(), Some(&10));
    assert_eq!(caps(&mut slots, 305, 3300, 50_000, false).last(), Some(&100));
}

#[test]
fn few_requests_say_nothing_of_what_is_slow() {
    let mut slots = Slots::default();
    caps(&mut slots, 0, 5, 1000, false);
    for second in 5..15 {
        let kept = slots.renew(at(1000 * second), &kept(1, 100), told(9, 60_000_000), &adaptive(), false);
        assert_eq!((kept.count, kept.standing.cap), (100, 100));
    }
}

/// `a` holds 90 slots, whose requests take 50 ms, and tells of them each second. `b` holds 10, and tells what it likes, as
/// often as it likes, also of leases that are none, or another's.
#[test]
fn nobody_is_heard_for_more_than_he_holds() {
    for lie in [
        told(1000, 86_400_000_000),
        told(u32::MAX, 0),
        Progress { finished: u32::MAX, took: Duration::from_secs(4000) },
    ] {
        let mut slots = Slots::default();
        let liar = |lease: u8| Renewal { owner: owner("b"), ..kept(lease, 10) };
        slots.acquire(at(0), &wanted(1, 90), &adaptive(), false);
        slots.acquire(at(0), &Wanted { owner: owner("b"), ..wanted(2, 10) }, &adaptive(), false);
        let mut second = |number: u64, liar: Option<&dyn Fn(u8) -> Renewal>| {
            for tenth in 1..=10 {
                for lease in [1, 2, 3, 2] {
                    if let Some(liar) = liar {
                        slots.renew(at(1000 * number + 100 * tenth), &liar(lease), lie, &adaptive(), false);
                    }
                }
            }
            let honest =
                slots.renew(at(1000 * number + 1000), &kept(1, 90), told(100, 50_000), &adaptive(), false);
            honest.standing.cap
        };
        for number in 0..10 {
            assert_eq!(second(number, None), 100);
        }
        for number in 10..300 {
            assert_eq!(second(number, Some(&liar)), 100, "{lie:?}");
        }
        for number in 300..310 {
            assert_eq!(second(number, None), 100, "{lie:?} is forgotten");
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Acquire(u32, u32),
    /// Its answer is lost.
    Lost(u32),
    Renew(usize, u32),
    /// A call of before arrives once more.
    Again(usize),
    Killed(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..4000_u64).prop_map(Step::Pass),
        (0..8_u32, 0..8_u32).prop_map(|(count, spare)| Step::Acquire(count, spare)),
        (0..8_u32).prop_map(Step::Lost),
        (any::<usize>(), 0..8_u32).prop_map(|(which, count)| Step::Renew(which, count)),
        any::<usize>().prop_map(Step::Again),
        any::<usize>().prop_map(Step::Killed),
    ];
    vec(step, 1..200)
}

proptest! {
    /// What holders believe to hold, each until its lease ends by its own clock, never exceeds the cap, whatever is lost, comes
    /// twice or late, and whoever is killed.
    #[test]
    fn no_more_is_held_than_the_cap(steps in steps(), cap in 1..20_u32) {
        let (mut slots, terms, mut millis) = (Slots::default(), terms(cap), 0);
        let mut held: Vec<(u8, u32, u64)> = Vec::new();
        let (mut renewals, mut number) = (Vec::new(), 0_u8);
        for step in steps {
            match step {
                Step::Pass(by) => millis += by,
                Step::Acquire(count, spare) => {
                    number = number.wrapping_add(1);
                    let leased = slots.acquire(at(millis), &Wanted { spare, ..wanted(number, count) }, &terms, false);
                    held.retain(|(id, _, _)| *id != number);
                    held.push((number, leased.count, millis + 5000));
                }
                Step::Lost(count) => {
                    number = number.wrapping_add(1);
                    held.retain(|(id, _, _)| *id != number);
                    slots.acquire(at(millis), &wanted(number, count), &terms, false);
                }
                Step::Renew(which, count) if !held.is_empty() => {
                    let which = which % held.len();
                    let (id, has, _) = held[which];
                    let count = count.min(has);
                    renewals.push((id, count));
                    let (count, lasts) = renew(&mut slots, millis, &kept(id, count), &terms);
                    held[which] = (id, count, millis + u64::try_from(lasts.as_millis()).unwrap());
                }
                Step::Again(which) if !renewals.is_empty() => {
                    let (id, count) = renewals[which % renewals.len()];
                    // A holder that shrank its lease still wants what it kept: only a smaller one can come late.
                    let still = held.iter().find(|(of, _, _)| *of == id).map_or(0, |(_, has, _)| *has);
                    if count >= still {
                        renew(&mut slots, millis, &kept(id, count), &terms);
                    }
                }
                Step::Killed(which) if !held.is_empty() => {
                    held.swap_remove(which % held.len());
                }
                Step::Renew(..) | Step::Again(_) | Step::Killed(_) => {}
            }
            let believed: u32 = held.iter().filter(|(_, _, ends)| *ends > millis).map(|(_, count, _)| count).sum();
            prop_assert!(believed <= cap, "{believed} of {cap} are held: {held:?}");
            prop_assert!(slots.standing().leased <= cap);
        }
    }
}
