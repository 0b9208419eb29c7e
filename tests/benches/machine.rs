//! What the figures hold for.

use std::process::Command;

use quota_tests::redis::RedisServer;
use serde_json::Value;

use crate::plan::Plan;
use crate::report::Report;

pub(crate) async fn describe(report: &mut Report, redis: &RedisServer, plan: &Plan) {
    report.fact("run.mode", plan.name);
    report.fact("run.build", if cfg!(debug_assertions) { "debug" } else { "release" });
    report.fact("machine.cores", std::thread::available_parallelism().expect("cores").get());
    report.fact("machine.redis", redis_version(redis).await);
    report.fact("machine.rustc", rustc_version());
    report.fact("machine.load_before", load());
}

pub(crate) fn describe_end(report: &mut Report) {
    report.fact("machine.load_after", load());
}

async fn redis_version(redis: &RedisServer) -> String {
    let info: String =
        redis::cmd("INFO").arg("server").query_async(&mut redis.client().await).await.expect("INFO");
    info.lines().find_map(|line| line.strip_prefix("redis_version:")).expect("a version").to_owned()
}

fn rustc_version() -> String {
    let output = Command::new("rustc").arg("--version").output().expect("rustc, which built this");
    String::from_utf8(output.stdout).expect("a version").trim().to_owned()
}

/// The mean number of processes that ran or wanted to, over the last minute; null where Linux does not tell.
fn load() -> Value {
    let text = std::fs::read_to_string("/proc/loadavg").ok();
    text.and_then(|text| text.split(' ').next()?.parse::<f64>().ok()).map_or(Value::Null, Value::from)
}
