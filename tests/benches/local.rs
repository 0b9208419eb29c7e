//! What a request waits for, where the server is asked about each, and where most are admitted by shares: one caller, who asks again as
//! soon as it has its answer, of a server on Redis. Metering and reports are part of it.

use hdrhistogram::Histogram;
use quota_client::{CheckMode, CheckSettings, Client, Decision, Request};
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use tokio::time::Instant;

use crate::plan::Plan;
use crate::report::{Report, Spread};

/// What a mode gave in a round.
struct Measured {
    per_second: f64,
    /// In nanoseconds.
    latencies: Histogram<u64>,
    by_share: f64,
}

/// Returns how long admission by shares took in all rounds, in nanoseconds.
pub(crate) async fn measure(report: &mut Report, redis: &RedisServer, plan: &Plan) -> Histogram<u64> {
    // No limit is near: what is admitted in a minute is a price of 10 ms each.
    let limits =
        ["REPO", "USER", "IP"].map(|kind| (format!("QUOTA__LIMITS__{kind}__CPU__INITIAL"), "unlimited"));
    let most = ["REPO", "USER", "IP"].map(|kind| (format!("QUOTA__LIMITS__{kind}__CPU__MAX"), "unlimited"));
    let url = redis.url();
    let limits = limits.iter().chain(&most).map(|(key, value)| (key.as_str(), *value));
    let settings: Vec<_> = limits.chain([("QUOTA__STORE__URL", url.as_str())]).collect();
    let server = ServerProcess::start(&settings).await;
    let (mut strict, mut local) = (Vec::new(), Vec::new());
    for _ in 0..plan.check_rounds {
        strict.push(round(&server, CheckMode::Strict, plan).await);
        local.push(round(&server, CheckMode::Local, plan).await);
    }
    let section = report.section("A request that quota-client admits, one caller on Redis");
    let figures = |of: &[Measured], figure: fn(&Measured) -> f64| Spread::of(of.iter().map(figure));
    for (mode, label, of) in [("strict", "each is asked about", &strict), ("local", "by shares", &local)] {
        let row = |figure: &str| format!("admit.{mode}.{figure}");
        section.figure(row("per_second"), format!("{label}: a second"), figures(of, |of| of.per_second));
        section.figure(row("p50_us"), format!("{label}: p50 us"), figures(of, |of| of.quantile(0.5)));
        section.figure(row("p99_us"), format!("{label}: p99 us"), figures(of, |of| of.quantile(0.99)));
    }
    let ratio = strict.iter().zip(&local).map(|(strict, local)| strict.quantile(0.5) / local.quantile(0.5));
    section.figure("admit.local.times_as_fast", "times as fast, by p50", Spread::of(ratio));
    section.figure(
        "admit.local.by_share_percent",
        "of which by shares, %",
        figures(&local, |of| of.by_share),
    );
    let mut all = Histogram::new(3).expect("a histogram");
    for round in &local {
        all.add(&round.latencies).expect("histograms of one kind");
    }
    all
}

impl Measured {
    /// In microseconds.
    fn quantile(&self, quantile: f64) -> f64 {
        self.latencies.value_at_quantile(quantile) as f64 / 1000.0
    }
}

async fn round(server: &ServerProcess, mode: CheckMode, plan: &Plan) -> Measured {
    let client = Client::builder()
        .endpoints([format!("http://{}", server.grpc_address())])
        .node("gitaly-01")
        .checks(CheckSettings { mode, ..CheckSettings::default() })
        .build()
        .expect("a client");
    let request = Request::rpc("/gitaly.CommitService/GetTreeEntries")
        .repo("project-42")
        .user("user-7")
        .ip([203, 0, 113, 7].into());
    let mut latencies = Histogram::new(3).expect("a histogram");
    let (began, mut requests) = (Instant::now(), 0_u64);
    while began.elapsed() < plan.check_time {
        let asked = std::time::Instant::now();
        let decision = client.admit(&request).await;
        let took = u64::try_from(asked.elapsed().as_nanos()).expect("a time within reach");
        let Decision::Allow(admission) = decision else { panic!("no limit is near") };
        // Who is not answered in time is let in without, which is no figure of either mode.
        if admission.checked() {
            latencies.record(took).expect("room for any time");
            requests += 1;
        }
    }
    let per_second = requests as f64 / began.elapsed().as_secs_f64();
    let by_share = 100.0 * client.stats().allowed_by_share as f64 / requests as f64;
    Measured { per_second, latencies, by_share }
}
