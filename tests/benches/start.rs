//! From the start of the process until `/readyz` answers 200.

use std::time::Duration;

use quota_tests::http::Http;
use quota_tests::ports::Port;
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, ServerProcess};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::plan::Plan;
use crate::report::{Aim, Report, Spread};
use quota_tests::wait::PATIENCE;

/// Between two looks: what the figures may be off by.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) async fn measure(report: &mut Report, redis: &RedisServer, plan: &Plan) {
    let stores = [("memory", MEMORY.to_owned()), ("redis", redis.url())];
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..plan.starts {
        for ((_, url), took) in stores.iter().zip(&mut took) {
            took.push(start(url).await);
        }
    }

    let section = report.section(format!("Start until /readyz answers 200, ms: {} starts each", plan.starts));
    for ((store, _), took) in stores.iter().zip(took) {
        section.figure(format!("start.{store}.ms"), format!("on {store}"), Spread::of(took));
        section.aim(Aim::AtMost(1_000.0));
    }
}

/// In milliseconds.
async fn start(store: &str) -> f64 {
    let port = Port::free();
    let address = ([127, 0, 0, 1], port.number()).into();
    let http = Http::new(address);
    let program = ServerProcess::program()
        .env("QUOTA__STORE__URL", store)
        .env("QUOTA__HTTP__LISTEN", address.to_string());
    let started = Instant::now();
    let _server = program.start();
    let ready = async {
        while TcpStream::connect(address).await.is_err() || http.get("/readyz").await.status != 200 {
            sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, ready).await.expect("a server that becomes ready");
    1e3 * started.elapsed().as_secs_f64()
}
