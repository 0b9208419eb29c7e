//! How the server starts, and why it does not.

use std::net::TcpListener;

use quota_tests::ports::Port;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use serde_json::json;

#[tokio::test]
async fn without_any_configuration_it_serves_this_machine_from_memory() {
    let server = ServerProcess::start(&[]).await;
    assert!(server.http.address().ip().is_loopback() && server.grpc_address().ip().is_loopback());
    let ready = server.http.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["store"]), (200, &json!("memory")));
    let check = json!({ "accounts": { "user": "alice" } });
    assert_eq!(
        server.http.post("/v1/check", &check).await.json()["standings"][0]["resources"]["cpu"]["limit"],
        100.0
    );
    assert_eq!(server.log("usage is kept in this process: lost when it stops").len(), 1);
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (variable, setting) in
        [("QUOTA__HTTP__LISTEN", "http.listen"), ("QUOTA__GRPC__LISTEN", "grpc.listen")]
    {
        let mut process = ServerProcess::program().env(variable, &address).start();
        assert_eq!(process.wait_for_exit().await.code(), Some(1));
        let said = process.stderr();
        assert!(said.contains(&format!("{setting} = {address}: cannot listen")), "{said}");
    }
}

#[tokio::test]
async fn it_starts_before_its_store_does() {
    let nobody = Port::free();
    let url = format!("redis://127.0.0.1:{}", nobody.number());
    let server = ServerProcess::start(&[("QUOTA__STORE__URL", &url)]).await;
    assert_eq!(server.log("starting without the store").len(), 1);
    assert_eq!(server.http.get("/readyz").await.status, 503);
    assert_eq!(server.http.get("/healthz").await.status, 200);
}

/// Waiting does not mend these.
#[tokio::test]
async fn f06_a_store_that_refuses_stops_the_start() {
    let redis = RedisServer::options().password("right").start().await;
    for url in [redis.url().replace("right", "wrong"), redis.url().replace(":right@", "")] {
        let mut process = ServerProcess::program().env("QUOTA__STORE__URL", &url).start();
        assert_eq!(process.wait_for_exit().await.code(), Some(1), "{url}");
        assert!(process.stderr().contains("cannot start error=store.url = redis://"), "{}", process.stderr());
    }
}
