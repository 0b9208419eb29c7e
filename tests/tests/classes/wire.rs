//! Slots over HTTP and gRPC.

use super::until_so;
use quota_proto::v1;
use quota_tests::openapi::judge;
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, TestServer};
use serde_json::{Value, json};
use tonic::Code;

/// Of the shortest leases: the store, which has just been started, leases nothing for the time of one.
const SETTINGS: &str = "classes.default.lease = \"1s\"\n\
    classes.ci = { slots = 10, node_slots = 6, service = \"patient\", max_wait = \"3s\", quota = 0.5 }\n\
    classes.brief = { slots = 1, max_run = \"1500ms\" }\n\
    limits.user.cpu.initial = \"10s\"\nlimits.user.cpu.max = \"10s\"\n";

async fn started(store: &str) -> TestServer {
    let server = TestServer::start(store, SETTINGS).await;
    for class in ["ci", "brief"] {
        until_so("the class is open", async || {
            let answer =
                slots(&server, json!({ "action": "acquire", "class": class, "holder": "first" })).await;
            if answer.0 == 503 {
                assert_eq!(answer.1["reason"], "opening", "{answer:?}");
                return false;
            }
            let release = json!({
                "action": "release", "class": class, "holder": "first", "lease": answer.1["lease"],
            });
            assert_eq!(slots(&server, release).await.0, 200);
            true
        })
        .await;
    }
    server
}

/// An answer that is as the document says: its status and body.
async fn slots(server: &TestServer, body: Value) -> (u16, Value) {
    let answer = server.http.post("/v1/slots", &body).await;
    judge("post", "/v1/slots", Some(&body), &answer);
    (answer.status, answer.json())
}

#[tokio::test]
async fn slots_are_leased_renewed_and_given_back() {
    let server = started(MEMORY).await;
    let acquire =
        |count: u32| json!({ "action": "acquire", "class": "ci", "holder": "web-01", "count": count });
    let (status, first) = slots(&server, acquire(7)).await;
    assert_eq!(
        (status, &first["count"], &first["class"], &first["service"]),
        (200, &json!(7), &json!("ci"), &json!("patient"))
    );
    assert_eq!(
        (&first["lasts_seconds"], &first["max_wait_seconds"], &first["max_queue"]),
        (&json!(1.0), &json!(3.0), &json!(100))
    );
    assert_eq!(first["slots"], json!({ "leased": 7, "leases": 1, "cap": 10 }));
    assert_eq!(slots(&server, acquire(7)).await.1["count"], 3, "as many as there are");
    let (status, refused) = slots(&server, acquire(1)).await;
    assert_eq!((status, &refused["reason"], &refused["class"]), (503, &json!("at_cap"), &json!("ci")));
    assert!(
        refused["detail"] == "class ci: all its slots are leased"
            && refused["type"].as_str().unwrap().ends_with("/no-slot")
    );

    let renew = |lease: &Value, holder: &str, count: u32| json!({ "action": "renew", "class": "ci", "holder": holder, "lease": lease, "count": count, "finished": 2, "took_seconds": 0.5 });
    assert_eq!(slots(&server, renew(&first["lease"], "web-01", 5)).await.1["count"], 5);
    assert_eq!(
        slots(&server, renew(&first["lease"], "web-01", 7)).await.1["count"],
        5,
        "it only becomes smaller"
    );
    assert_eq!(slots(&server, renew(&first["lease"], "web-02", 5)).await.0, 404, "it is another's");
    let release = json!({ "action": "release", "class": "ci", "holder": "web-01", "lease": first["lease"] });
    assert_eq!(slots(&server, release.clone()).await.1["count"], 0);
    assert_eq!(slots(&server, release).await.0, 200, "once more is as well");
    assert_eq!(slots(&server, renew(&first["lease"], "web-01", 1)).await.0, 404);

    let of_node =
        json!({ "action": "acquire", "class": "ci", "holder": "a", "node": "gitaly-01", "count": 9 });
    assert_eq!(slots(&server, of_node.clone()).await.1["count"], 6);
    assert_eq!(slots(&server, of_node).await.1["reason"], "at_node_cap");
}

#[tokio::test]
async fn a_class_without_a_cap_leases_nothing_and_one_that_is_unknown_is_named() {
    let server = started(MEMORY).await;
    let (status, answer) = slots(&server, json!({ "action": "acquire", "holder": "a", "count": 3 })).await;
    assert_eq!(
        (status, answer),
        (200, json!({ "class": "interactive", "service": "immediate", "count": 3, "lasts_seconds": 5.0 }))
    );
    let unknown = json!({ "action": "acquire", "class": "cli", "holder": "a" });
    let answer = server.http.post("/v1/slots", &unknown).await;
    assert_eq!((answer.status, answer.field()), (400, Some("class".to_owned())));
    let detail = "class: is unknown; known here: api, background, brief, ci, interactive";
    assert_eq!(answer.json()["detail"], detail);
    let check = json!({ "accounts": { "user": "alice" }, "class": "cli" });
    let answer = server.http.post("/v1/check", &check).await;
    assert_eq!((answer.status, answer.field()), (400, Some("class".to_owned())));
    for (field, wrong) in [
        ("holder", json!({ "action": "acquire", "holder": "" })),
        ("holder", json!({ "action": "acquire", "holder": "h".repeat(256) })),
        ("lease", json!({ "action": "renew", "holder": "a" })),
        ("lease", json!({ "action": "release", "holder": "a", "lease": "xyz" })),
        ("action", json!({ "action": "steal", "holder": "a" })),
        ("count", json!({ "action": "acquire", "holder": "a", "count": -1 })),
    ] {
        let answer = server.http.post("/v1/slots", &wrong).await;
        assert_eq!((answer.status, answer.field().as_deref()), (400, Some(field)), "{wrong}");
    }
}

#[tokio::test]
async fn who_is_not_pooled_holds_a_slot_for_no_longer_than_a_request_may_run() {
    let server = started(MEMORY).await;
    let begun = std::time::Instant::now();
    let acquire = json!({ "action": "acquire", "class": "brief", "holder": "a" });
    let (_, held) = slots(&server, acquire).await;
    assert_eq!(held["max_run_seconds"], 1.5);
    let renew = json!({ "action": "renew", "class": "brief", "holder": "a", "lease": held["lease"] });
    until_so("it has ended", async || slots(&server, renew.clone()).await.0 == 404).await;
    assert!(begun.elapsed().as_secs_f64() >= 1.5);
}

#[tokio::test]
async fn a_class_may_use_a_part_of_the_limits() {
    let server = started(MEMORY).await;
    let charge = json!({ "charges": [{ "accounts": { "user": "alice" }, "cost": { "cpu": 5.0 } }] });
    assert_eq!(server.http.post("/v1/report", &charge).await.status, 200);
    let check = |class: &str| json!({ "accounts": { "user": "alice" }, "class": class });
    let answer = server.http.post("/v1/check", &check("ci")).await;
    assert_eq!((answer.status, &answer.json()["denied_by"]["limit"]), (429, &json!(5.0)));
    let why = "user alice: requests of class ci may use 50 % of its limits";
    assert!(answer.text().contains(why), "{}", answer.text());
    assert_eq!(server.http.post("/v1/check", &check("api")).await.status, 200);
    assert_eq!(server.http.post("/v1/check", &json!({ "accounts": { "user": "alice" } })).await.status, 200);
}

#[tokio::test]
async fn both_protocols_lease_of_the_same_slots_and_tell_the_same_of_them() {
    let server = started(MEMORY).await;
    let mut grpc = server.grpc.clone();
    let acquire = v1::AcquireSlotsRequest {
        class: "ci".to_owned(),
        holder: "gitaly-01".to_owned(),
        count: 8,
        pooled: true,
        ..v1::AcquireSlotsRequest::default()
    };
    let held = grpc.acquire_slots(acquire.clone()).await.unwrap().into_inner();
    assert_eq!((held.count, held.lease.len(), &*held.class), (8, 16, "ci"));
    assert_eq!(held.standing, Some(v1::SlotStanding { leased: 8, leases: 1, cap: 10 }));
    let over = slots(&server, json!({ "action": "acquire", "class": "ci", "holder": "b", "count": 9 })).await;
    assert_eq!(over.1["count"], 2);
    let refused = grpc.acquire_slots(acquire.clone()).await.unwrap().into_inner();
    assert_eq!(
        (refused.refused(), refused.count, refused.retry_after.is_some()),
        (v1::slots::NoSlot::AtCap, 0, true)
    );

    let classes = server.http.get("/v1/classes").await;
    judge("get", "/v1/classes", None, &classes);
    let listed = grpc.list_classes(v1::ListClassesRequest {}).await.unwrap().into_inner().classes;
    let of_http = classes.json()["classes"].as_array().unwrap().clone();
    assert_eq!(listed.len(), of_http.len());
    for (grpc, http) in listed.iter().zip(&of_http) {
        let policy = grpc.policy.as_ref().unwrap();
        assert_eq!(http["class"], *grpc.class);
        assert_eq!(http["default"], grpc.is_default);
        assert_eq!(http["quota"], f64::from(policy.quota_thousandths) / 1000.0);
        let standing = grpc.standing.map(
            |standing| json!({ "leased": standing.leased, "leases": standing.leases, "cap": standing.cap }),
        );
        assert_eq!(http.get("slots"), standing.as_ref());
    }
    let ci = of_http.iter().find(|class| class["class"] == "ci").unwrap();
    assert_eq!(ci["slots"], json!({ "leased": 10, "leases": 2, "cap": 10 }));

    let renew = v1::RenewSlotsRequest {
        class: "ci".to_owned(),
        holder: "gitaly-01".to_owned(),
        lease: held.lease,
        ..v1::RenewSlotsRequest::default()
    };
    assert_eq!(grpc.renew_slots(renew.clone()).await.unwrap().into_inner().count, 0);
    assert_eq!(grpc.acquire_slots(acquire).await.unwrap().into_inner().count, 8);
    let wrong = grpc.renew_slots(v1::RenewSlotsRequest { lease: vec![1], ..renew }).await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn slots_are_counted() {
    let server = started(MEMORY).await;
    let acquire = json!({ "action": "acquire", "class": "ci", "holder": "a", "count": 10, "overrun": 3 });
    slots(&server, acquire.clone()).await;
    slots(&server, acquire).await;
    let metrics = server.http.get("/metrics").await;
    for line in [
        "quota_slots{class=\"ci\"} 10",
        "quota_slot_cap{class=\"ci\"} 10",
        "quota_slot_calls_total{class=\"ci\",outcome=\"at_cap\"} 1",
        "quota_slot_overruns_total{class=\"ci\"} 6",
    ] {
        assert!(metrics.text().lines().any(|shown| shown == line), "{line}: {}", metrics.text());
    }
}

/// As where a replica takes over whose clock is behind by more than that took.
#[tokio::test]
async fn a_redis_that_is_another_leases_nothing_at_first_though_its_clock_is_behind() {
    let mut redis = RedisServer::options().appendonly().stepping_clock().start().await;
    let server = started(&redis.url()).await;
    let acquire = json!({ "action": "acquire", "class": "ci", "holder": "a", "count": 2 });
    until_so("it leases", async || slots(&server, acquire.clone()).await.0 == 200).await;
    redis.kill().await;
    redis.set_clock(-30);
    redis.restart().await;
    until_so("it answers", async || {
        let answer = server.http.post("/v1/slots", &acquire).await;
        let reason = answer.json()["reason"].clone();
        assert!(answer.status == 503, "{}", answer.text());
        reason == "opening"
    })
    .await;
}
