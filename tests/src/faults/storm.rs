//! Faults at random, one after the other, each mended before the next. What is broken, when and for how long comes from a seed.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep};

use super::counters::Counters;
use super::load::{Load, Way};
use super::run::{settings, store_errors};
use super::slots::{CAP, CLASS, SlotCallers};
use super::{Outcome, Scale};
use crate::http::Http;
use crate::proxy::{Fault, Proxy};
use crate::redis::RedisServer;
use crate::server::ServerProcess;
use crate::wait::{PATIENCE, until};

/// How long a fault lasts at most, in milliseconds.
const LONGEST: u64 = 2_500;

/// Servers on one Redis.
const SERVERS: usize = 2;

/// All keys that never expire.
const FOREVER: &str = "local forever = {}
    for _, key in ipairs(redis.call('KEYS', '*')) do
        if redis.call('PTTL', key) == -1 then forever[#forever + 1] = key end
    end
    return forever";

/// What breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    RedisFrozen,
    /// SIGKILL; each write was synced.
    RedisKilled,
    ScriptsFlushed,
    ServerFrozen(usize),
    /// SIGKILL; another takes its place.
    ServerKilled(usize),
    /// On the way from the servers to Redis.
    ToRedis(Break),
    /// On the way from the callers to a server.
    ToServer(usize, Break),
}

/// How a network breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// For as long as the trouble lasts.
    Lasting(Fault),
    /// Connections are closed.
    Cut,
    /// Connections stay open, and nothing passes any more.
    Strand,
}

/// A server, and the ways to it.
struct Place {
    server: ServerProcess,
    counters: Counters,
    http: Proxy,
    grpc: Proxy,
}

struct Storm {
    redis: RedisServer,
    to_redis: Proxy,
    places: Vec<Place>,
    deadline: Duration,
    load: Load,
    slots: SlotCallers,
    random: Rng,
    longest_without: Duration,
}

/// What breaks, and for how long.
struct Blow(Trouble, Duration);

/// So many faults under load. Prints what breaks.
///
/// # Panics
///
/// Panics where a key never expires, a slot stays leased, more slots are leased than there are, or a counter goes down; what is lost or
/// counts twice is in the outcome.
pub async fn storm(seed: u64, faults: usize, scale: &Scale) -> Outcome {
    let mut storm = Storm::start(seed, scale).await;
    for _ in 0..faults {
        let blow = storm.next();
        println!("seed {seed}: {blow}");
        storm.endure(&blow).await;
    }
    storm.end().await
}

impl Storm {
    async fn start(seed: u64, scale: &Scale) -> Self {
        let redis = RedisServer::options().appendonly().start().await;
        let to_redis = Proxy::to(redis.port()).await;
        let mut places = Vec::new();
        for _ in 0..SERVERS {
            let server = server(&to_redis, scale.store_deadline).await;
            let http = Proxy::to(server.http.address().port()).await;
            let grpc = Proxy::to(server.grpc_address().port()).await;
            places.push(Place { server, counters: Counters::default(), http, grpc });
        }
        let ways: Vec<Way> = places.iter().map(Place::way).collect();
        let slots = SlotCallers::of(&ways, scale.client_deadline);
        let mut load = Load::on(&ways, scale);
        load.is_decided().await;
        let longest_without = Duration::ZERO;
        let (deadline, random) = (scale.store_deadline, Rng::with_seed(seed));
        Self { redis, to_redis, places, deadline, load, slots, random, longest_without }
    }

    fn next(&mut self) -> Blow {
        let server = self.random.usize(..SERVERS);
        let trouble = match self.random.u8(..12) {
            0 => Trouble::RedisFrozen,
            1 => Trouble::RedisKilled,
            2 => Trouble::ScriptsFlushed,
            3 => Trouble::ServerFrozen(server),
            4 | 5 => Trouble::ServerKilled(server),
            6..=8 => Trouble::ToRedis(self.a_break()),
            _ => Trouble::ToServer(server, self.a_break()),
        };
        Blow(trouble, Duration::from_millis(self.random.u64(50..LONGEST)))
    }

    fn a_break(&mut self) -> Break {
        match self.random.u8(..6) {
            0 => Break::Lasting(Fault::Delay(Duration::from_millis(self.random.u64(1..200)))),
            1 => Break::Lasting(Fault::Freeze),
            2 => Break::Lasting(Fault::DropRequests),
            3 => Break::Lasting(Fault::DropReplies),
            4 => Break::Cut,
            _ => Break::Strand,
        }
    }

    /// Breaks something, waits, mends it, and waits until the store decides for every caller again.
    async fn endure(&mut self, Blow(trouble, lasts): &Blow) {
        match *trouble {
            Trouble::RedisFrozen => {
                self.redis.pause().await;
                self.load.lasts(*lasts).await;
                self.redis.resume().await;
            }
            Trouble::RedisKilled => {
                self.redis.kill().await;
                self.load.lasts(*lasts).await;
                self.redis.restart().await;
            }
            Trouble::ScriptsFlushed => {
                self.redis.command("SCRIPT", &["FLUSH"]).await;
                self.load.lasts(*lasts).await;
            }
            Trouble::ServerFrozen(number) => {
                self.places[number].server.process.pause();
                self.load.lasts(*lasts).await;
                self.places[number].server.process.resume();
            }
            Trouble::ServerKilled(number) => {
                self.places[number].server.process.kill();
                self.load.lasts(*lasts).await;
                let server = server(&self.to_redis, self.deadline).await;
                self.places[number].is_taken_by(server);
            }
            Trouble::ToRedis(how) => how.happens(&[&self.to_redis], &mut self.load, *lasts).await,
            Trouble::ToServer(number, how) => {
                let Place { http, grpc, .. } = &self.places[number];
                how.happens(&[http, grpc], &mut self.load, *lasts).await;
            }
        }
        let mended = Instant::now();
        let back = self.load.is_decided().await - mended;
        self.longest_without = self.longest_without.max(back);
        for place in &mut self.places {
            place.counters.look(&place.server.http).await;
        }
        let leased = leased(&self.places[0].server.http).await;
        assert!(leased <= u64::from(CAP), "{leased} slots of {CAP}");
        // Not all at the same moment of whatever goes in turns.
        sleep(Duration::from_millis(self.random.u64(..300))).await;
    }

    async fn end(self) -> Outcome {
        let Self { redis, places, load, slots, longest_without, .. } = self;
        let http = &places[0].server.http;
        slots.end().await;
        until(PATIENCE, "every slot is given back", async || (leased(http).await == 0).then_some(())).await;
        let books = load.end().await;
        let forever: Vec<String> = redis::cmd("EVAL")
            .arg(FOREVER)
            .arg(0)
            .query_async(&mut redis.client().await)
            .await
            .expect("a Redis that tells");
        assert!(forever.is_empty(), "keys that never expire: {forever:?}");
        let (checks, unchecked) = books.checks();
        Outcome {
            checks,
            unchecked,
            api_wait: books.longest_wait(false),
            client_wait: books.longest_wait(true),
            back_after: longest_without,
            store_errors: store_errors(places.iter().map(|place| &place.server.http)).await,
            warnings: places.iter().flat_map(|place| place.server.log("WARN")).collect(),
            balance: books.compare(http).await,
            may_lose_since: None,
            may_split: false,
        }
    }
}

impl Place {
    fn way(&self) -> Way {
        Way::plain(Http::new(self.http.address()), self.grpc.address())
    }

    /// Another server is where it was.
    fn is_taken_by(&mut self, server: ServerProcess) {
        self.http.lead_to(server.http.address().port());
        self.grpc.lead_to(server.grpc_address().port());
        self.server = server;
        self.counters = Counters::default();
    }
}

impl Break {
    async fn happens(self, ways: &[&Proxy], load: &mut Load, lasts: Duration) {
        for way in ways {
            match self {
                Self::Lasting(fault) => way.set(fault),
                Self::Cut => way.cut(),
                Self::Strand => way.strand(),
            }
        }
        load.lasts(lasts).await;
        for way in ways {
            match self {
                Self::Lasting(_) => way.set(Fault::None),
                // The kernel would give up what nothing passes through, after minutes.
                Self::Strand => way.cut(),
                Self::Cut => {}
            }
        }
    }
}

impl Display for Blow {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} for {} ms", self.0, self.1.as_millis())
    }
}

async fn server(to_redis: &Proxy, deadline: Duration) -> ServerProcess {
    let (url, deadline) = (to_redis.redis_url(), format!("{}ms", deadline.as_millis()));
    let slots = CAP.to_string();
    let lease = ("QUOTA__CLASSES__DEFAULT__LEASE", "2s");
    let [slots, service] =
        [("QUOTA__CLASSES__CI__SLOTS", slots.as_str()), ("QUOTA__CLASSES__CI__SERVICE", "patient")];
    let all: Vec<_> = settings(&url, &deadline).into_iter().chain([lease, slots, service]).collect();
    ServerProcess::start(&all).await
}

/// Slots of the class that are leased, once this server has its store again.
async fn leased(http: &Http) -> u64 {
    let classes = until(PATIENCE, "classes are told", async || {
        let answer = http.get("/v1/classes").await;
        (answer.status == 200).then(|| answer.json()["classes"].clone())
    })
    .await;
    let mut classes = classes.as_array().expect("a list").iter();
    let class = classes.find(|class| class["class"] == CLASS).expect("a class that is configured");
    class["slots"]["leased"].as_u64().expect("a number")
}
