//! What an account takes in Redis, as `MEMORY USAGE` tells: key, value, expiry and what the allocator adds.

use quota_core::{Mark, Source};
use quota_server::store::{Report as Charges, Store as _};
use quota_tests::redis::RedisServer;
use quota_tests::stores::Opening;

use crate::report::{Aim, Report, Spread};
use crate::workload::{key, shuffled};

/// Requests whose accounts are looked at.
const REQUESTS: usize = 100;

/// The ages in seconds at which a busy account had cost: all of the window.
const BUSY: std::ops::Range<u64> = 0..60;

const LIGHT: std::ops::Range<u64> = 0..1;

/// Fileservers that report of an account, in the row about a further one.
const SOURCES: u64 = 16;

pub(crate) async fn measure(report: &mut Report, redis: &RedisServer) {
    let section = report.section(format!(
        "Redis memory of an account in bytes, the mark of one source included: {} accounts",
        3 * REQUESTS
    ));
    let busy = bytes(redis, BUSY, 1, "MEMORY USAGE").await;
    section.figure("redis_memory.busy.bytes", "busy: cost in all 60 seconds", Spread::of(busy));
    section.aim(Aim::AtMost(1_112.0));
    let light = bytes(redis, LIGHT, 1, "MEMORY USAGE").await;
    section.figure("redis_memory.light.bytes", "light: one charge", Spread::of(light));
    section.aim(Aim::AtMost(200.0));
    // Of the value, for what the allocator gives grows by leaps.
    let one = bytes(redis, LIGHT, 1, "STRLEN").await;
    let many = bytes(redis, LIGHT, SOURCES, "STRLEN").await;
    let further = many.iter().zip(&one).map(|(many, one)| (many - one) / (SOURCES - 1) as f64);
    section.figure("redis_memory.source.bytes", "a further source, in its value", Spread::of(further));
    section.aim(Aim::AtMost(18.0));
}

/// What a command tells of each account. Each charge has a cost of every resource, and each source reports as many.
async fn bytes(redis: &RedisServer, ages: std::ops::Range<u64>, sources: u64, command: &str) -> Vec<f64> {
    let mut connection = redis.client().await;
    redis::cmd("FLUSHALL").exec_async(&mut connection).await.expect("FLUSHALL");
    let store = Opening::default().open(&redis.url());
    let requests = shuffled(REQUESTS);
    for source in 1..=sources {
        let entries = requests.iter().flat_map(|accounts| accounts.entries(ages.clone())).collect();
        let mark = Some(Mark { source: Source::new("bench", &format!("gitaly-{source:02}")), sequence: 1 });
        store.settle(&Charges { mark, entries }).await.expect("charges that are counted");
    }

    let mut sizes = Vec::new();
    for account in requests.iter().flat_map(|accounts| accounts.accounts()) {
        let mut asking = redis::Cmd::new();
        command.split(' ').for_each(|word| {
            asking.arg(word);
        });
        let size: u32 =
            asking.arg(key(&account)).query_async(&mut connection).await.expect("an account that is there");
        sizes.push(f64::from(size));
    }
    sizes
}
