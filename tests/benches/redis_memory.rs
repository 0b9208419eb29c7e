//! What an account takes in Redis, as `MEMORY USAGE` tells: key, value, expiry and what the allocator adds.

use quota_core::{Mark, Source};
use quota_server::store::{Report as Charges, Store as _};
use quota_tests::redis::RedisServer;
use quota_tests::stores::Opening;

use crate::report::{Report, Spread};
use crate::workload::{key, shuffled};

/// Requests whose accounts are looked at.
const REQUESTS: usize = 100;

/// The ages in seconds at which a busy account had cost: all of the window.
const BUSY: std::ops::Range<u64> = 0..60;

const LIGHT: std::ops::Range<u64> = 0..1;

pub(crate) async fn measure(report: &mut Report, redis: &RedisServer) {
    let section = report.section(format!(
        "Redis memory of an account in bytes, the mark of one source included: {} accounts",
        3 * REQUESTS
    ));
    section.figure("redis_memory.busy.bytes", "busy: cost in all 60 seconds", bytes(redis, BUSY).await);
    section.aim(2048.0);
    section.figure("redis_memory.light.bytes", "light: one charge", bytes(redis, LIGHT).await);
    section.aim(250.0);
}

/// Each charge has a cost of every resource.
async fn bytes(redis: &RedisServer, ages: std::ops::Range<u64>) -> Spread {
    let mut connection = redis.client().await;
    redis::cmd("FLUSHALL").exec_async(&mut connection).await.expect("FLUSHALL");
    let store = Opening::default().open(&redis.url());
    let entries: Vec<_> =
        shuffled(REQUESTS).into_iter().flat_map(|accounts| accounts.entries(ages.clone())).collect();
    let accounts: Vec<_> = entries.iter().map(|entry| entry.account.clone()).collect();
    let mark = Some(Mark { source: Source::new("bench", "gitaly-01"), sequence: 1 });
    store.settle(&Charges { mark, entries }).await.expect("charges that are counted");

    let mut sizes = Vec::new();
    for account in accounts {
        let size: u32 = redis::cmd("MEMORY")
            .arg("USAGE")
            .arg(key(&account))
            .query_async(&mut connection)
            .await
            .expect("an account that is there");
        sizes.push(f64::from(size));
    }
    Spread::of(sizes)
}
