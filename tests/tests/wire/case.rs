//! How a case is run: on each store, through each protocol, from nothing.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use quota_tests::redis::RedisServer;
use quota_tests::server::{Clients, MEMORY, TestServer};

use crate::answer::{Expected, LIMITS, Seen, Wait};
use crate::request::Request;
use crate::{drive_grpc, drive_http};

/// The most that jitter adds, as a factor.
const JITTER: f64 = 1.2;

/// The default window, in seconds.
const WINDOW: f64 = 60.0;

/// The longest wait that a backoff grows to, in seconds.
const MAX_BACKOFF: f64 = 300.0;

/// Requests one after another on a fresh server, and their answers.
#[derive(Debug)]
pub(crate) struct Case {
    name: &'static str,
    settings: &'static str,
    steps: Vec<(Request, Expected)>,
}

impl Case {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, settings: "", steps: Vec::new() }
    }

    /// Further settings, beside [`LIMITS`].
    pub(crate) fn settings(self, settings: &'static str) -> Self {
        Self { settings, ..self }
    }

    pub(crate) fn step(mut self, request: impl Into<Request>, expected: impl Into<Expected>) -> Self {
        self.steps.push((request.into(), expected.into()));
        self
    }

    async fn run(&self, store: &str, protocol: Protocol) {
        let what = format!("{} ({protocol:?}, {})", self.name, store.split(':').next().unwrap_or_default());
        let server = TestServer::start(store, &format!("{LIMITS}{}", self.settings)).await;
        let begun = Instant::now();
        let mut last = None;
        for (number, (request, expected)) in self.steps.iter().enumerate() {
            let what = format!("{what}, step {}: {request:?}", number + 1);
            let seen = protocol.send(&server, request, last.as_deref()).await;
            assert_eq!(seen.answer, expected.answer, "{what}");
            check_wait(expected.wait, &seen, begun.elapsed(), &what);
            last = seen.reservation.or(last);
        }
    }
}

/// Runs every case in every way.
pub(crate) async fn run(cases: impl IntoIterator<Item = Case>) {
    let redis = RedisServer::start().await;
    for case in cases {
        for protocol in [Protocol::Http, Protocol::Grpc] {
            case.run(MEMORY, protocol).await;
            redis::cmd("FLUSHALL").exec_async(&mut redis.client().await).await.unwrap();
            case.run(&redis.url(), protocol).await;
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

impl Protocol {
    /// `last` is the reservation to carry where the request asks for the last one.
    pub(crate) async fn send(self, clients: &Clients, request: &Request, last: Option<&str>) -> Seen {
        match self {
            Self::Http => drive_http::send(&clients.http, request, last).await,
            Self::Grpc => drive_grpc::send(clients, request, last).await,
        }
    }
}

/// A wait is as long as it must be, and up to a fifth longer; what is exact is exact.
fn check_wait(expected: Option<Wait>, seen: &Seen, elapsed: Duration, what: &impl Debug) {
    // Of what may be exact, the shortest and the longest: a bucket is one second, and the case took a while.
    let (least, most) = match expected {
        None => {
            assert_eq!((seen.wait, seen.exact), (None, Duration::ZERO), "{what:?}");
            return;
        }
        Some(Wait::SpentBefore(age, times)) => {
            let most = WINDOW - age;
            ((most - 1.0 - elapsed.as_secs_f64()) * times, most * times)
        }
        Some(Wait::Exactly(seconds)) => (seconds, seconds),
        Some(Wait::Nearly(seconds)) => (seconds - elapsed.as_secs_f64(), seconds),
    };
    let longest = if let Some(Wait::Nearly(seconds)) = expected { seconds } else { MAX_BACKOFF };
    let (least, most) = (least.min(longest), most.min(longest));
    let exact = seen.exact.as_secs_f64();
    if seen.exact > Duration::ZERO {
        assert!((least..=most).contains(&exact), "{what:?}: exactly {exact} s is not in {least}..={most}");
    }
    if let Some(wait) = seen.wait {
        let wait = wait.as_secs_f64();
        let (least, most) = if exact > 0.0 { (exact, exact) } else { (least, most) };
        let range = least..=most * JITTER + 1e-6;
        assert!(range.contains(&wait), "{what:?}: {wait} s is not in {range:?}");
    }
}
