//! The password of Redis, and the key that names in the log are hashed with, are in no output of the server and in no answer.

use quota_tests::process::Process;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;

const SECRET: &str = "s3cr3t-pa55";

fn assert_kept(process: &Process) {
    for output in [process.stdout(), process.stderr()] {
        assert!(!output.contains(SECRET), "{output}");
    }
}

#[tokio::test]
async fn a_running_server_keeps_it() {
    let mut redis = RedisServer::options().password(SECRET).start().await;
    assert!(redis.url().contains(SECRET));
    let (url, key) = (redis.url(), format!("{SECRET}-{SECRET}"));
    let names = [("QUOTA__LOG__ACCOUNTS", "hashed"), ("QUOTA__LOG__KEY", &key)];
    let settings = [&[("QUOTA__STORE__URL", &*url), ("RUST_LOG", "trace")], &names[..]].concat();
    let server = ServerProcess::start(&settings).await;
    assert_eq!(server.http.get("/readyz").await.status, 200);
    redis.kill().await;
    for path in ["/readyz", "/v1/accounts/user/u", "/v1/backoff?user=u", "/metrics", "/healthz"] {
        let answer = server.http.get(path).await;
        assert!(!answer.text().contains(SECRET), "{path}: {}", answer.text());
    }
    assert!(!server.process.stderr().is_empty());
    assert_kept(&server.process);
}

#[tokio::test]
async fn a_server_that_does_not_start_keeps_it() {
    let redis = RedisServer::options().password("another").start().await;
    let address = format!("127.0.0.1:{}", redis.port());
    for url in [
        format!("redis://:{SECRET}@{address}"),
        format!("redis://{SECRET}:x@{address}"),
        format!("redis+cluster://:{SECRET}@{address}"),
        format!("redis+sentinel://:{SECRET}@{address}/mymaster"),
        format!("redis://:{SECRET}@{address}/no-number"),
        format!("redis://:{SECRET}@{address}:70000"),
        format!("redis:/:{SECRET}@{address}"),
        format!("postgres://:{SECRET}@{address}"),
        SECRET.to_owned(),
    ] {
        let mut process = ServerProcess::program().env("QUOTA__STORE__URL", &url).start();
        let status = process.wait_for_exit().await;
        assert!(!status.success(), "{url}");
        assert!(process.stderr().contains("store.url"), "{}", process.stderr());
        assert_kept(&process);
    }
}

#[tokio::test]
async fn a_password_in_the_wrong_place_is_not_repeated() {
    for variable in [
        "QUOTA__STORE__FAIL",
        "QUOTA__STORE__DEADLINE",
        "QUOTA__HTTP__LISTEN",
        "QUOTA__STORE__POOL_SIZE",
        "QUOTA__LOG__FORMAT",
        "QUOTA__LOG__KEY",
    ] {
        let mut process = ServerProcess::program().env(variable, SECRET).start();
        assert_eq!(process.wait_for_exit().await.code(), Some(2));
        assert_kept(&process);
    }
}
