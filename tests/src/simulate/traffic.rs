//! Who asks for what, and when.

use fastrand::Rng;
use quota_core::Kind;

use super::machine::Work;
use super::population::{Population, Refused, Spread};
use super::run::Heavy;
use super::scenario::Scenario;

/// A request that is to be asked for.
#[derive(Clone, Debug)]
pub(super) struct Request {
    population: usize,
    user: usize,
    /// By number: repository, user, address.
    pub(super) accounts: [usize; 3],
    pub(super) node: usize,
    pub(super) work: Work,
    pub(super) heavy: bool,
    pub(super) honours_retry_after: bool,
}

/// The kinds of a request's accounts.
const KINDS: [Kind; 3] = [Kind::Repo, Kind::User, Kind::Ip];

/// The users of all populations.
pub(super) struct Traffic<'a> {
    scenario: &'a Scenario,
    has_heavy: bool,
    /// All accounts that there are, by number.
    pub(super) names: Vec<(Kind, String)>,
    populations: Vec<State>,
}

struct State {
    random: Rng,
    /// The first number of its repositories, users and addresses.
    first: [usize; 3],
    users: Vec<User>,
}

#[derive(Clone)]
struct User {
    running: u32,
    /// What was refused, and when it is asked for again.
    again: Vec<(f64, Request)>,
    /// Keeps no more running on each node before this.
    waits_until: Vec<f64>,
}

impl User {
    /// More that is refused meanwhile is given up.
    const MOST_AGAIN: usize = 8;

    fn new(nodes: u32) -> Self {
        Self { running: 0, again: Vec::new(), waits_until: vec![0.0; nodes as usize] }
    }
}

impl<'a> Traffic<'a> {
    pub(super) fn new(scenario: &'a Scenario, seed: u64, heavy: Heavy) -> Self {
        let mut names = Vec::new();
        let mut populations: Vec<State> = Vec::new();
        for (number, population) in scenario.traffic.iter().enumerate() {
            let mut others = scenario.traffic.iter().zip(&populations);
            let same = others.rfind(|(other, _)| population.are.as_ref() == Some(&other.name));
            let first = same.map(|(_, state)| state.first).unwrap_or_else(|| {
                population.counts().map(|(kind, count)| {
                    let first = names.len();
                    names.extend((0..count).map(|at| (kind, format!("{}-{at}", population.name))));
                    first
                })
            });
            populations.push(State {
                random: Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(number as u64)),
                first,
                users: vec![User::new(scenario.nodes); population.users as usize],
            });
        }
        Self { scenario, has_heavy: heavy != Heavy::Without, names, populations }
    }

    /// Heavy accounts that want the same: of a kind, and where that is users, only those that keep as many requests
    /// running, since others want a different amount each.
    pub(super) fn alike(&self, kind: Kind) -> Vec<usize> {
        let populations = self.scenario.traffic.iter().zip(&self.populations);
        let heavy = populations.filter(|(population, _)| population.heavy && population.are.is_none());
        let alike = heavy.filter(|(population, _)| kind != Kind::User || population.parallel > 0);
        alike
            .flat_map(|(population, state)| {
                let of_kind =
                    population.counts().into_iter().zip(state.first).find(|((of, _), _)| *of == kind);
                of_kind.map(|((_, count), first)| first..first + count as usize).unwrap_or_default()
            })
            .collect()
    }

    /// What is asked for between a moment and `dt` seconds later.
    pub(super) fn arrivals(&mut self, at: f64, dt: f64) -> Vec<Request> {
        let mut requests = Vec::new();
        for (number, population) in self.scenario.traffic.iter().enumerate() {
            let State { random, first, users } = &mut self.populations[number];
            if !population.is_there(self.scenario, at) || population.heavy && !self.has_heavy {
                users.iter_mut().for_each(|user| user.again.clear());
                continue;
            }
            let in_burst = population.burst.is_none_or(|burst| at as u32 % burst.every < burst.seconds);
            for (user, state) in users.iter_mut().enumerate() {
                let due = state.again.extract_if(.., |(when, _)| *when <= at);
                requests.extend(due.map(|(_, request)| request));
                let mut fresh = 0;
                if in_burst && population.rate > 0.0 && random.f64() < population.rate * dt {
                    fresh += 1;
                }
                if in_burst && state.waits_until.iter().any(|until| *until <= at) {
                    fresh += population.parallel.saturating_sub(state.running);
                }
                let new = || request(number, population, self.scenario.nodes, user, *first, random);
                let new = std::iter::repeat_with(new).take(fresh as usize);
                requests.extend(new.filter(|request| state.waits_until[request.node] <= at));
            }
        }
        requests
    }

    /// From now on.
    pub(super) const fn leave_out_heavy(&mut self) {
        self.has_heavy = false;
    }

    pub(super) fn started(&mut self, request: &Request) {
        self.populations[request.population].users[request.user].running += 1;
    }

    pub(super) fn ended(&mut self, request: &Request) {
        self.populations[request.population].users[request.user].running -= 1;
    }

    pub(super) fn refused(&mut self, request: Request, at: f64, retry_after: f64) {
        let population = &self.scenario.traffic[request.population];
        let user = &mut self.populations[request.population].users[request.user];
        let again = match population.refused {
            Refused::GivesUp => at + 1.0,
            Refused::TriesAtOnce => at,
            Refused::Waits => at + retry_after,
        };
        if population.parallel > 0 {
            user.waits_until[request.node] = again;
        } else if population.refused != Refused::GivesUp && user.again.len() < User::MOST_AGAIN {
            user.again.push((again, request));
        }
    }
}

impl Population {
    /// How many accounts of each kind they have.
    fn counts(&self) -> [(Kind, u32); 3] {
        let counts = [self.repos.count(self.users), self.users, self.ips.count(self.users)];
        std::array::from_fn(|at| (KINDS[at], counts[at]))
    }

    fn is_there(&self, scenario: &Scenario, at: f64) -> bool {
        let (from, until) = if self.heavy { (scenario.from, scenario.until) } else { (0, scenario.seconds) };
        let (from, until) = (self.from.unwrap_or(from), self.until.unwrap_or(until));
        (f64::from(from)..f64::from(until)).contains(&at)
    }
}

impl Spread {
    const fn count(self, users: u32) -> u32 {
        match self {
            Self::Own => users,
            Self::One => 1,
            Self::Any(count) | Self::Among(count) => count,
        }
    }

    fn of(self, user: usize, random: &mut Rng) -> usize {
        match self {
            Self::Own => user,
            Self::One => 0,
            Self::Any(count) => random.u32(..count) as usize,
            Self::Among(count) => user % count as usize,
        }
    }
}

fn request(
    number: usize,
    population: &Population,
    nodes: u32,
    user: usize,
    first: [usize; 3],
    random: &mut Rng,
) -> Request {
    let mut exponential = |mean: f64| if mean > 0.0 { -mean * (1.0 - random.f64()).ln() } else { 0.0 };
    let mebibyte = f64::from(1 << 20);
    let work = Work {
        cpu: exponential(population.cpu).max(LEAST_CPU),
        bytes: exponential(population.network * 1e6),
        reads: population.reads * 1e6,
        memory: population.memory * mebibyte,
        leak: population.leak * mebibyte,
        waits: exponential(population.waits),
        weight: 1.0,
    };
    Request {
        population: number,
        user,
        accounts: [
            first[0] + population.repos.of(user, random),
            first[1] + user,
            first[2] + population.ips.of(user, random),
        ],
        node: population.node.unwrap_or_else(|| random.u32(..nodes)) as usize,
        work,
        heavy: population.heavy,
        honours_retry_after: population.refused == Refused::Waits,
    }
}

/// No request takes less processor time, in seconds.
const LEAST_CPU: f64 = 0.05;
