//! The service is away for longer than the window.

use std::time::Duration;

use quota_tests::redis::RedisServer;
use quota_tests::wait::PATIENCE;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::cluster::{REPORT_INTERVAL, Service, by, client};

/// F24 in a twentieth of its time: two seconds of CPU in each second, for one and a half windows.
const WINDOW: Duration = Duration::from_secs(3);
const AWAY: Duration = Duration::from_millis(4500);
const SPENT: Duration = Duration::from_millis(200);

/// What is in a bucket leaves with it, up to so much before its time.
const BUCKET: Duration = Duration::from_millis(50);

/// `quota-client` keeps a minute of it, whatever the window is: the service leaves out what is too old.
#[tokio::test]
async fn f24_of_what_was_spent_without_the_service_only_the_last_window_counts() {
    let redis = RedisServer::start().await;
    let window = format!("{}s", WINDOW.as_secs());
    let settings = vec![("QUOTA__STORE__URL", redis.url()), ("QUOTA__WINDOW__LENGTH", window)];
    let mut service = Service::start(settings).await;
    let client = client(service.port(), "gitaly-01");
    client.meter(&by("alice")).cpu(SPENT);
    assert!(client.shutdown(PATIENCE).await);
    service.kill();

    // When each was spent at the earliest, and when it was collected at the latest.
    let mut spent = Vec::new();
    let (began, mut pace) = (Instant::now(), interval(REPORT_INTERVAL));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while began.elapsed() < AWAY {
        pace.tick().await;
        let before = Instant::now();
        client.meter(&by("alice")).cpu(SPENT);
        assert!(!client.shutdown(Duration::from_millis(1)).await);
        spent.push((before, Instant::now()));
    }
    let returns = Instant::now();
    service.restart().await;
    assert!(client.shutdown(PATIENCE).await);
    let returned = Instant::now();

    let stats = client.stats();
    assert_eq!((stats.charges_lost, stats.charges_pending), (0, 0), "{stats:?}");
    let too_old = usize::try_from(stats.charges_too_old).unwrap();
    let surely = spent.iter().filter(|(_, collected)| *collected + WINDOW <= returns).count();
    let perhaps = spent.iter().filter(|(before, _)| *before + WINDOW <= returned).count();
    assert!(surely > 0 && (surely..=perhaps).contains(&too_old), "{too_old} of {surely} to {perhaps}");
    let counted = SPENT * u32::try_from(spent.len() - too_old).unwrap();
    assert!(counted <= 2 * WINDOW + SPENT, "{counted:?} count");

    // What the store holds is what was counted, but for what has left meanwhile.
    let used = service.used("alice").await;
    let read = Instant::now();
    let still = spent.iter().filter(|(before, _)| *before + WINDOW - BUCKET > read).count();
    let least = SPENT * u32::try_from(still).unwrap();
    assert!((least..=counted).contains(&used), "{used:?} of {least:?} to {counted:?}");
    println!(
        "{:?} were spent, {counted:?} counted, {too_old} charges were too old",
        SPENT * spent.len() as u32
    );
}
