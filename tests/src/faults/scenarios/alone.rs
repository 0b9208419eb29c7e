//! One Redis, that is away or answers errors.

use std::time::Duration;

use super::super::{Outcome, Run, Scale};
use crate::redis::{RedisOptions, RedisServer};
use crate::wait::{PATIENCE, until};

pub(super) async fn redis_frozen(scale: &Scale) -> Outcome {
    let mut redis = RedisServer::start().await;
    let mut run = Run::start(&redis.url(), scale).await;
    redis.pause().await;
    run.lasts(Duration::from_secs(10)).await;
    redis.resume().await;
    run.is_over().await;
    run.end().await
}

pub(super) async fn redis_killed(scale: &Scale, options: RedisOptions, may_lose: bool) -> Outcome {
    let mut redis = options.start().await;
    let mut run = Run::start(&redis.url(), &if may_lose { scale.api_only() } else { *scale }).await;
    if may_lose {
        run.may_lose();
    }
    redis.kill().await;
    run.goes_on().await;
    redis.restart().await;
    run.is_over().await;
    run.end().await
}

pub(super) async fn scripts_flushed(scale: &Scale) -> Outcome {
    let redis = RedisServer::start().await;
    let mut run = Run::start(&redis.url(), scale).await;
    for _ in 0..scale.checks {
        redis.command("SCRIPT", &["FLUSH"]).await;
        run.goes_on_for(1).await;
    }
    run.is_over().await;
    run.end().await
}

/// It takes half a millisecond for each command that it reads again, and answers LOADING meanwhile.
pub(super) async fn redis_loading(scale: &Scale) -> Outcome {
    let slow = ["--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"];
    redis_killed(scale, RedisServer::options().appendonly().args(&slow), false).await
}

/// A setting makes it refuse every write, until it is set as it was.
pub(super) async fn redis_refuses(scale: &Scale, name: &str, bad: &str, good: &str) -> Outcome {
    let redis = RedisServer::start().await;
    let mut run = Run::start(&redis.url(), scale).await;
    redis.command("CONFIG", &["SET", name, bad]).await;
    run.goes_on().await;
    redis.command("CONFIG", &["SET", name, good]).await;
    run.is_over().await;
    run.end().await
}

/// A snapshot cannot be written: from then on Redis takes no write (MISCONF).
pub(super) async fn redis_cannot_save(scale: &Scale) -> Outcome {
    let redis =
        RedisServer::start_with(&["--save", "3600 1000000", "--enable-protected-configs", "yes"]).await;
    let mut run = Run::start(&redis.url(), scale).await;
    // A folder in which nobody can make a file.
    redis.command("CONFIG", &["SET", "dir", "/proc"]).await;
    redis.command("BGSAVE", &[]).await;
    until(PATIENCE, "the snapshot fails", async || {
        redis.info("persistence").await.contains("rdb_last_bgsave_status:err").then_some(())
    })
    .await;
    run.goes_on().await;
    redis.command("CONFIG", &["SET", "stop-writes-on-bgsave-error", "no"]).await;
    run.is_over().await;
    run.end().await
}

/// Somebody's script does not end, and all others are told BUSY.
pub(super) async fn redis_busy(scale: &Scale) -> Outcome {
    let redis = RedisServer::start_with(&["--busy-reply-threshold", "10"]).await;
    let mut run = Run::start(&redis.url(), scale).await;
    let mut connection = redis.client().await;
    let endless = tokio::spawn(async move {
        let killed = redis::cmd("EVAL").arg("while true do end").arg(0).exec_async(&mut connection).await;
        killed.expect_err("it ends by being killed");
    });
    run.goes_on().await;
    redis.command("SCRIPT", &["KILL"]).await;
    endless.await.expect("a script that was killed");
    run.is_over().await;
    run.end().await
}

/// Its clock goes ten seconds ahead, back to where it was, and ten seconds back.
pub(super) async fn redis_clock_steps(scale: &Scale) -> Outcome {
    let redis = RedisServer::options().stepping_clock().start().await;
    let mut run = Run::start(&redis.url(), scale).await;
    for seconds in [10, 0, -10] {
        redis.set_clock(seconds);
        run.goes_on().await;
    }
    redis.set_clock(0);
    run.is_over().await;
    run.end().await
}
