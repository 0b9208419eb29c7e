use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::book::Books;
use super::load::{Load, Way};
use super::{LOSS, Outcome, Scale};
use crate::certificates::{Certificates, Identity};
use crate::http::Http;
use crate::process::Process;
use crate::server::ServerProcess;
use crate::wait::{PATIENCE, until};

/// Long, so that nothing leaves it while a test runs.
const WINDOW: &str = "1h";

/// Two servers on one Redis, under load.
pub struct Run {
    servers: Vec<ServerProcess>,
    ways: Vec<Way>,
    load: Load,
    checks: usize,
    fault: FaultEnd,
}

/// A run whose callers have ended, each acknowledged what it reported.
pub struct Settled {
    servers: Vec<ServerProcess>,
    ways: Vec<Way>,
    books: Books,
    fault: FaultEnd,
}

#[derive(Clone, Copy, Debug, Default)]
struct FaultEnd {
    /// From its end until the store had decided for every caller.
    back_after: Duration,
    may_lose_since: Option<Instant>,
    may_split: bool,
}

/// Of a server on a Redis.
pub(super) fn settings<'a>(redis_url: &'a str, deadline: &'a str) -> [(&'static str, &'a str); 3] {
    [
        ("QUOTA__STORE__URL", redis_url),
        ("QUOTA__STORE__DEADLINE", deadline),
        ("QUOTA__WINDOW__LENGTH", WINDOW),
    ]
}

impl Run {
    /// Starts the servers and the load, and lets it go on for a while.
    pub async fn start(redis_url: &str, scale: &Scale) -> Self {
        Self::start_with(redis_url, scale, &[]).await
    }

    /// The same with further settings.
    pub async fn start_with(redis_url: &str, scale: &Scale, more: &[(&str, &str)]) -> Self {
        let servers = start(redis_url, scale, more).await;
        let ways = servers.iter().map(Way::to).collect();
        Self::of(servers, ways, scale).await
    }

    /// The same with servers and callers that speak TLS. Callers that speak HTTP connect anew for each request.
    pub async fn start_secured(redis_url: &str, scale: &Scale, certificates: &Certificates) -> Self {
        let Certificates { authority, identity: Identity { cert_file, key_file } } = certificates;
        let [cert, key] = [cert_file, key_file].map(|file| file.display().to_string());
        let tls = [("QUOTA__TLS__CERT", cert.as_str()), ("QUOTA__TLS__KEY", key.as_str())];
        let servers = start(redis_url, scale, &tls).await;
        let mut ways = Vec::new();
        for server in &servers {
            ways.push(Way::secured(server, &authority.ca_file).await);
        }
        Self::of(servers, ways, scale).await
    }

    async fn of(servers: Vec<ServerProcess>, ways: Vec<Way>, scale: &Scale) -> Self {
        let load = Load::on(&ways, scale);
        let mut run = Self { servers, ways, load, checks: scale.checks, fault: FaultEnd::default() };
        run.load.is_decided().await;
        run.goes_on().await;
        run
    }

    /// The process of the first server. Every other caller prefers it to the second.
    pub fn first_server(&mut self) -> &mut Process {
        &mut self.servers[0].process
    }

    /// Until every caller has had as many more answers as the scale says.
    pub async fn goes_on(&mut self) {
        self.goes_on_for(self.checks).await;
    }

    /// Until every caller has had so many more answers.
    pub async fn goes_on_for(&mut self, checks: usize) {
        self.load.goes_on(checks).await;
    }

    /// For so long.
    pub async fn lasts(&mut self, time: Duration) {
        self.load.lasts(time).await;
    }

    /// Until each server has said so as often.
    pub async fn is_told(&self, text: &str, times: usize) {
        let what = format!("each server says {text:?} {times} times");
        until(PATIENCE, &what, async || {
            self.servers.iter().all(|server| server.log(text).len() >= times).then_some(())
        })
        .await;
    }

    /// What is acknowledged from now on, and was within the last [`LOSS`], may be lost.
    pub fn may_lose(&mut self) {
        self.fault.may_lose_since = Instant::now().checked_sub(LOSS);
    }

    /// The price of a check that is not decided may count on one of its accounts alone.
    pub fn may_split(&mut self) {
        self.fault.may_split = true;
    }

    /// The fault has ended: waits until the store decides for every caller, and goes on for a while.
    pub async fn is_over(&mut self) {
        let ended = Instant::now();
        self.fault.back_after = self.load.is_decided().await - ended;
        self.goes_on().await;
    }

    /// Ends the load: the callers report what they have done.
    pub async fn settle(self) -> Settled {
        let Self { servers, ways, load, checks: _, fault } = self;
        Settled { servers, ways, books: load.end().await, fault }
    }

    /// Ends the load, and compares.
    pub async fn end(self) -> Outcome {
        self.settle().await.outcome().await
    }
}

/// Two servers on one Redis.
async fn start(redis_url: &str, scale: &Scale, more: &[(&str, &str)]) -> Vec<ServerProcess> {
    let deadline = format!("{}ms", scale.store_deadline.as_millis());
    let settings = [&settings(redis_url, &deadline)[..], more].concat();
    vec![ServerProcess::start(&settings).await, ServerProcess::start(&settings).await]
}

/// Failed calls to the store, by cause, of servers of which some may have ended.
pub(super) async fn store_errors(servers: impl Iterator<Item = &Http>) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for server in servers {
        let Ok(metrics) = server.try_get("/metrics").await else { continue };
        let lines = metrics.text().lines();
        let of_store = lines.filter_map(|line| line.strip_prefix("quota_store_errors_total{cause=\""));
        for series in of_store {
            let cause = series.split('"').next().expect("the end of a label");
            let count: u64 = series.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("a count");
            *errors.entry(cause.to_owned()).or_default() += count;
        }
    }
    errors
}

impl Settled {
    /// The second server, which no fault ends.
    pub fn http(&self) -> &Http {
        &self.ways[1].http
    }

    /// Compares what the callers know with what the second server tells.
    pub async fn outcome(&self) -> Outcome {
        let FaultEnd { back_after, may_lose_since, may_split } = self.fault;
        let (checks, unchecked) = self.books.checks();
        Outcome {
            checks,
            unchecked,
            api_wait: self.books.longest_wait(false),
            client_wait: self.books.longest_wait(true),
            back_after,
            store_errors: store_errors(self.ways.iter().map(|way| &way.http)).await,
            warnings: self.servers.iter().flat_map(|server| server.log("WARN")).collect(),
            balance: self.books.compare(self.http()).await,
            may_lose_since,
            may_split,
        }
    }
}
