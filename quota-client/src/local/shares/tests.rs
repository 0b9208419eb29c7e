use super::*;
use crate::payers::tests::user;

const PRICE: u64 = 10;

fn cpu(micros: u64) -> Cost {
    Cost::ZERO.with_cpu_micros(micros).unwrap()
}

/// A share of so many prices, which lasts as long as a period.
fn share(prices: u64, now: Instant) -> Share {
    let granted = cpu(prices * PRICE);
    Share { token: "r1".into(), left: granted, granted, began: now, until: now + PERIOD }
}

struct World {
    shares: Shares,
    alice: Arc<Payers>,
    start: Instant,
}

impl World {
    fn new() -> Self {
        Self { shares: Shares::default(), alice: Arc::new(user("alice")), start: Instant::now() }
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    fn take(&mut self, millis: u64) -> Taken {
        let now = self.at(millis);
        self.shares.take(&self.alice, cpu(PRICE), now)
    }

    /// So many at once that a share is wanted, which is granted.
    fn warmed(prices: u64) -> Self {
        let mut world = Self::new();
        for _ in 0..WORTH_IT {
            world.take(0);
        }
        let share = share(prices, world.start);
        assert!(world.shares.granted(&world.alice, Some(share)).is_none());
        world
    }

    fn admitted(&mut self, millis: u64) -> bool {
        self.take(millis).token.is_some()
    }
}

fn wanted(taken: &Taken) -> Cost {
    assert!(taken.token.is_none(), "{taken:?}");
    taken.wanted
}

#[test]
fn a_share_is_wanted_of_who_asks_often_and_for_twice_as_much_as_he_asks() {
    let mut world = World::new();
    for _ in 1..WORTH_IT {
        assert_eq!(wanted(&world.take(0)), Cost::ZERO);
    }
    let mut wants = |millis| {
        let wanted = wanted(&world.take(millis));
        assert!(world.shares.granted(&world.alice, None).is_none());
        wanted
    };
    assert_eq!(wants(0), cpu(2 * 4 * PRICE));
    assert_eq!(wants(499), cpu(2 * 5 * PRICE));
    assert_eq!(wants(500), cpu(2 * 5 * PRICE), "what was, counts for one more period");
    assert_eq!(wants(1500), Cost::ZERO, "it is over");
}

#[test]
fn no_more_is_admitted_than_was_granted_and_not_for_longer() {
    let mut world = World::warmed(3);
    let admitted = (0..10).filter(|_| world.admitted(1)).count();
    assert_eq!(admitted, 3);
    let mut world = World::warmed(100);
    assert!(world.admitted(499));
    assert!(!world.admitted(500));
}

#[test]
fn what_costs_more_than_is_left_is_asked_about_and_takes_nothing() {
    let mut world = World::warmed(3);
    let dear = world.shares.take(&world.alice, cpu(3 * PRICE + 1), world.start);
    assert!(dear.token.is_none());
    assert!((0..3).all(|_| world.admitted(0)));
    let of_memory = Cost::ZERO.with_memory_byte_seconds(1024).unwrap();
    let mut world = World::warmed(3);
    let other = world.shares.take(&world.alice, cpu(PRICE).plus(of_memory), world.start);
    assert!(other.token.is_none(), "the share is of CPU alone");
}

#[test]
fn what_costs_nothing_is_bounded_by_no_share() {
    let mut world = World::warmed(3);
    assert!(world.shares.take(&world.alice, Cost::ZERO, world.start).token.is_none());
}

#[test]
fn the_next_is_asked_for_once_when_half_of_it_is_used_or_over() {
    let renews = |taken: &Taken| taken.token.is_some() && !taken.wanted.is_zero();
    let mut world = World::warmed(4);
    let taken: Vec<bool> = (0..4).map(|_| renews(&world.take(0))).collect();
    assert_eq!(taken, [false, true, false, false]);
    assert_eq!(wanted(&world.take(0)), Cost::ZERO, "one is on its way");
    let next = share(4, world.at(1));
    let rest = world.shares.granted(&world.alice, Some(next)).unwrap();
    assert_eq!(rest.left, Cost::ZERO);
    assert!(world.admitted(1));

    let mut world = World::warmed(100);
    assert!(!renews(&world.take(249)));
    assert!(renews(&world.take(250)));
    assert!(!renews(&world.take(251)));
    assert!(world.shares.granted(&world.alice, None).is_none(), "what is left of the old one goes on");
    assert!(renews(&world.take(252)));
}

#[test]
fn of_many_that_ask_at_once_one_asks_for_a_share() {
    let mut world = World::new();
    let wants: Vec<bool> = (0..10).map(|_| !wanted(&world.take(0)).is_zero()).collect();
    assert_eq!(wants.iter().filter(|wants| **wants).count(), 1, "{wants:?}");
}

#[test]
fn an_answer_that_never_comes_is_waited_for_one_period() {
    let mut world = World::warmed(2);
    world.take(0);
    world.take(0);
    assert_eq!(wanted(&world.take(499)), Cost::ZERO);
    assert!(!wanted(&world.take(500)).is_zero());
}

#[test]
fn what_has_ended_is_given_back_once() {
    let mut world = World::warmed(5);
    world.take(0);
    assert!(world.shares.sweep(world.at(499)).is_empty());
    let ended = world.shares.sweep(world.at(500));
    let [(payers, share)] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!((payers, share.left), (&world.alice, cpu(4 * PRICE)));
    assert!(world.shares.sweep(world.at(500)).is_empty());
    world.shares.sweep(world.at(2000));
    assert!(world.shares.0.is_empty(), "who asks no more takes no room");

    let mut world = World::warmed(5);
    assert_eq!(world.shares.end(&world.alice).map(|share| share.left), Some(cpu(5 * PRICE)));
    assert!(!world.admitted(0));
}

#[test]
fn sets_are_bounded_and_a_share_for_none_of_them_is_given_back() {
    let mut shares = Shares::default();
    let now = Instant::now();
    for number in 0..=MAX_SETS {
        shares.take(&Arc::new(user(&number.to_string())), cpu(PRICE), now);
    }
    assert_eq!(shares.0.len(), MAX_SETS);
    let further = user(&MAX_SETS.to_string());
    assert!(shares.granted(&further, Some(share(3, now))).is_some());
}
