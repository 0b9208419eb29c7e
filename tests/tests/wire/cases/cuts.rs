//! An account that is cut on a node: every answer says since when and why, in the same words.

use quota_proto::v1;
use quota_tests::openapi::judge;
use quota_tests::server::{Grpc, MEMORY, TestServer};
use serde_json::{Value, json};

use crate::drive_http::post;
use crate::request::{Pressure, memory, pressure};
use crate::{drive_grpc, drive_http};

/// An OOM kill cuts at once, and nothing moves afterwards while the test runs.
const BLAME: &str =
    "adapt.memory.rule = \"blame\"\nadapt.memory.interval = \"10m\"\nlimits.user.memory.mode = \"enforce\"\n";

const GIB_HELD: u64 = (1 << 30) * 60;

/// Alice loses a KiB-second at least of the 2 GiB that she holds: nothing is known of the pressure yet.
const LIMIT: u64 = 2 * GIB_HELD - 1024;

const SENTENCE: [&str; 2] = [
    "user alice: 2.0 GiB of memory held on gitaly-01 since ",
    " (held 50 % of the memory, 6.6x the fair share, while pressure was 0.00)",
];

/// Alice holds 2 of 4 GiB, and bob little; ten are active.
fn killed() -> Pressure {
    let report = Pressure { oom_kill: true, memory: Some(0.95), ..pressure("gitaly-01") };
    Pressure { active_users: Some(10), bytes: Some(4 << 30), ..report }
        .heavy("user", "alice", memory(2 * GIB_HELD))
        .of_which_recent(memory(GIB_HELD / 3))
        .heavy("user", "bob", memory(GIB_HELD / 100))
}

fn assert_sentence(why: &str) {
    assert!(why.starts_with(SENTENCE[0]) && why.ends_with(SENTENCE[1]), "{why}");
}

/// That these members say since when and why, and what the others are.
fn explained(mut body: Value) -> Value {
    let members = body.as_object_mut().expect("an object");
    let since = members.remove("since_seconds").expect("since_seconds");
    assert!(since.as_f64().is_some_and(|since| (0.0..600.0).contains(&since)), "{since}");
    assert_sentence(members.remove("why").expect("why").as_str().expect("a sentence"));
    body
}

fn check_of(user: &str) -> Value {
    let price = json!({ "cpu": 0 });
    json!({ "accounts": { "user": user }, "node": "gitaly-01", "price": price })
}

async fn spend(server: &TestServer) {
    let charge = |user: &str, held: u64| json!({ "accounts": { "user": user }, "cost": { "memory": held } });
    let charges = [charge("alice", 2 * GIB_HELD), charge("bob", GIB_HELD)];
    assert_eq!(post(&server.http, "/v1/report", &json!({ "charges": charges })).await.status, 200);
}

#[tokio::test]
async fn it_is_told_over_http_wherever_the_limit_is() {
    let server = TestServer::start(MEMORY, BLAME).await;
    spend(&server).await;
    let told = post(&server.http, "/v1/pressure", &drive_http::pressure_body(&killed())).await.json();
    let account = json!({ "kind": "user", "id": "alice", "resource": "memory", "limit": LIMIT });
    assert_eq!((&told["calibrated"], &told["accounts"]), (&json!(true), &json!([account])));
    assert_eq!(told["limits"]["user"]["memory"], 8 * GIB_HELD, "that of the kind stays");

    let node = server.http.get("/v1/nodes/gitaly-01").await;
    judge("get", "/v1/nodes/{node}", None, &node);
    let accounts = node.json()["accounts"].as_array().expect("accounts").clone();
    assert_eq!(accounts.into_iter().map(explained).collect::<Vec<_>>(), [account]);

    let denied = post(&server.http, "/v1/check", &check_of("alice")).await;
    assert_eq!(denied.status, 429);
    let body = denied.json();
    let detail = body["detail"].as_str().expect("a detail");
    assert!(detail.starts_with("user alice used ") && detail.ends_with(SENTENCE[1]), "{detail}");
    let breach = json!({
        "kind": "user", "id": "alice", "resource": "memory", "scope": "node", "used": 2 * GIB_HELD, "limit": LIMIT,
    });
    assert_eq!(explained(body["denied_by"].clone()), breach);
    let here = json!({ "used": 2 * GIB_HELD, "limit": LIMIT });
    assert_eq!(explained(body["standings"][0]["resources"]["memory"]["here"].clone()), here);

    let standing = server.http.get("/v1/accounts/user/alice?node=gitaly-01").await;
    judge("get", "/v1/accounts/{kind}/{id}", None, &standing);
    assert_eq!(explained(standing.json()["resources"]["memory"]["here"].clone()), here);
    let backoff = server.http.query("/v1/backoff", &[("user", "alice"), ("node", "gitaly-01")]).await;
    judge("get", "/v1/backoff", None, &backoff);
    assert_eq!(explained(backoff.json()["denied_by"].clone()), breach);

    let light = post(&server.http, "/v1/check", &check_of("bob")).await;
    assert_eq!(light.status, 200);
    assert!(!light.text().contains("\"why\""), "{}", light.text());
}

#[tokio::test]
async fn it_is_told_over_grpc_wherever_the_limit_is() {
    let server = TestServer::start(MEMORY, BLAME).await;
    spend(&server).await;
    let grpc = || Grpc::clone(&server.grpc);
    let told = grpc().report_pressure(drive_grpc::pressure(&killed())).await.unwrap().into_inner();
    let account = v1::AccountLimit {
        kind: v1::Kind::User.into(),
        id: "alice".to_owned(),
        resource: v1::Resource::Memory.into(),
        limit: Some(v1::Limit { limit: Some(v1::limit::Limit::Amount(LIMIT)) }),
        ..v1::AccountLimit::default()
    };
    assert_eq!((told.calibrated, &told.accounts), (true, &vec![account.clone()]));

    let nodes = grpc().list_nodes(v1::ListNodesRequest::default()).await.unwrap().into_inner().nodes;
    let [listed] = &nodes[0].accounts[..] else { panic!("{nodes:?}") };
    assert_sentence(&listed.why);
    assert!(listed.since.is_some());
    assert_eq!(v1::AccountLimit { since: None, why: String::new(), ..listed.clone() }, account);

    let check = |user: &str| v1::CheckRequest {
        node: "gitaly-01".to_owned(),
        accounts: Some(v1::Accounts { user: Some(user.to_owned()), ..v1::Accounts::default() }),
        price: Some(v1::Cost::default()),
        ..v1::CheckRequest::default()
    };
    let denied = grpc().check(check("alice")).await.unwrap().into_inner();
    let breach = denied.denied_by.expect("a denial");
    assert_sentence(&breach.why);
    assert_eq!((breach.scope(), breach.since.is_some()), (v1::Scope::Node, true));
    let request = v1::GetStandingRequest {
        kind: v1::Kind::User.into(),
        id: "alice".to_owned(),
        node: "gitaly-01".to_owned(),
    };
    let standing = grpc().get_standing(request).await.unwrap().into_inner();
    for standing in [&denied.standings[0], &standing] {
        assert!(standing.own, "a client must not take it for the limit of all users");
        let here = standing.memory.as_ref().and_then(|memory| memory.here.as_ref()).expect("here");
        assert_sentence(&here.why);
        assert_eq!((here.limit, here.since.is_some()), (account.limit, true));
        let cpu = standing.cpu.as_ref().expect("CPU");
        assert!(cpu.here.as_ref().is_none_or(|here| here.why.is_empty()), "{cpu:?}");
    }
    let backoff = v1::BackoffRequest {
        accounts: check("alice").accounts,
        node: "gitaly-01".to_owned(),
        ..v1::BackoffRequest::default()
    };
    let backoff = grpc().backoff(backoff).await.unwrap().into_inner();
    assert_sentence(&backoff.denied_by.expect("a denial").why);

    let light = grpc().check(check("bob")).await.unwrap().into_inner();
    assert_eq!(light.decision(), v1::check_response::Decision::Allow);
    assert!(!light.standings[0].own);
}
