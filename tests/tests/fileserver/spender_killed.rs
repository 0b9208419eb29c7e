//! `kill -9` of a fileserver that has not reported all that was spent on it.

use std::time::Duration;

use quota_tests::process::{Process, Program};
use quota_tests::redis::RedisServer;
use quota_tests::wait::{PATIENCE, until};

use crate::cluster::Service;

/// What may be lost: three times what is spent from one report to the next. It is spent as fast as time passes.
const MOST: Duration = Duration::from_secs(3);

/// Spent at once.
const STEP: Duration = Duration::from_millis(10);

fn start(service: &Service) -> Process {
    let endpoint = format!("http://127.0.0.1:{}", service.port());
    Program::of_workspace("quota-spender").args(["--endpoint", &endpoint, "--user", "alice"]).start()
}

/// What it says that it has spent.
fn spent(spender: &Process) -> Duration {
    let told = spender.stdout();
    let mut lines = told.lines().filter_map(|line| line.strip_prefix("spent ")?.parse().ok());
    Duration::from_millis(lines.next_back().unwrap_or_default())
}

/// None of it was ever checked.
#[tokio::test]
async fn f23_of_what_a_killed_fileserver_spent_three_seconds_at_most_are_lost_and_nothing_counts_twice() {
    let redis = RedisServer::start().await;
    let service = Service::start(vec![("QUOTA__STORE__URL", redis.url())]).await;
    let used = async |least: Duration| {
        until(PATIENCE, "it is reported", async || {
            let used = service.used("alice").await;
            (used >= least).then_some(used)
        })
        .await
    };
    let (mut all, mut lost) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..2 {
        let mut spender = start(&service);
        used(all - lost + Duration::from_secs(1)).await;
        spender.kill();
        all += spent(&spender);
        // A line may be missing, and a report may have been on its way.
        let counted = used(Duration::ZERO).await;
        assert!(counted <= all + 2 * STEP, "{counted:?} of {all:?} count");
        lost = all.saturating_sub(counted);
        assert!(lost <= MOST, "{lost:?} of {all:?} are lost");
        println!("{counted:?} of {all:?} count");
    }
}
