use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use super::book::Books;
use super::load::{Load, Way};
use super::{LOSS, Outcome, Scale};
use crate::http::Http;
use crate::process::Process;
use crate::server::ServerProcess;

/// Long, so that nothing leaves it while a test runs.
const WINDOW: &str = "1h";

/// Two servers on one Redis, under load.
pub struct Run {
    servers: Vec<ServerProcess>,
    load: Load,
    checks: usize,
    fault: FaultEnd,
}

/// A run whose callers have ended, each acknowledged what it reported.
pub struct Settled {
    servers: Vec<ServerProcess>,
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
        let deadline = format!("{}ms", scale.store_deadline.as_millis());
        let settings = settings(redis_url, &deadline);
        let servers = vec![ServerProcess::start(&settings).await, ServerProcess::start(&settings).await];
        let ways: Vec<Way> = servers.iter().map(Way::to).collect();
        let load = Load::on(&ways, scale);
        let mut run = Self { servers, load, checks: scale.checks, fault: FaultEnd::default() };
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
        Settled { servers: self.servers, books: self.load.end().await, fault: self.fault }
    }

    /// Ends the load, and compares.
    pub async fn end(self) -> Outcome {
        self.settle().await.outcome().await
    }
}

/// 0 where it has ended.
pub(super) async fn readonly(server: &ServerProcess) -> u64 {
    let Ok(metrics) = server.http.try_get("/metrics").await else { return 0 };
    let of_store = metrics.text().lines().filter_map(|line| line.strip_prefix("quota_store_errors_total{"));
    let counts = of_store.filter(|series| series.starts_with("cause=\"readonly\""));
    counts.filter_map(|series| series.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
}

impl Settled {
    /// The second server, which no fault ends.
    pub fn http(&self) -> &Http {
        &self.servers[1].http
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
            readonly: join_all(self.servers.iter().map(readonly)).await.into_iter().sum(),
            warnings: self.servers.iter().flat_map(|server| server.log("WARN")).collect(),
            balance: self.books.compare(self.http()).await,
            may_lose_since,
            may_split,
        }
    }
}
