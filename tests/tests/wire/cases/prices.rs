//! What requests that have finished cost.

use quota_tests::openapi::judge;
use quota_tests::server::{MEMORY, TestServer};
use serde_json::{Value, json};

use crate::answer::{LIMITS, invalid};
use crate::case::{Case, Protocol, run};
use crate::request::{Amounts, NOTHING, Report, charge, cpu, network, user};

const PRICED: &str = "prices.\"/svc/Fetch\" = { cpu = \"2s\" }\n";

/// Of each RPC that is told: its name, how many finished, the means of CPU, network and time.
async fn prices(server: &TestServer) -> Vec<Value> {
    let answer = server.http.get("/v1/prices").await;
    judge("get", "/v1/prices", None, &answer);
    let body = answer.json();
    assert_eq!(body["since_seconds"], 86_400.0);
    let told = |rpc: &Value| {
        json!([
            rpc["rpc"],
            rpc["count"],
            rpc["cpu"]["mean"],
            rpc["network"]["mean"],
            rpc["wall_seconds"]["mean"]
        ])
    };
    body["rpcs"].as_array().unwrap().iter().map(told).collect()
}

#[tokio::test]
async fn they_are_told_by_rpc_and_those_with_a_price_are_labels() {
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let server = TestServer::start(MEMORY, &format!("{LIMITS}{PRICED}")).await;
        let fetch = |cost: Amounts| charge(user("u"), cost).of_rpc("/svc/Fetch");
        let report = Report::of([
            fetch(cpu(1.0)),
            fetch(cpu(0.5)).finished(3.0, Some(cpu(1.5))),
            fetch(cpu(2.5)).finished(1.0, None),
            charge(user("u"), network(7)).of_rpc("/svc/Push").finished(0.25, None),
            charge(user("u"), cpu(9.0)).finished(1.0, None),
        ])
        .marked("s", 1);
        protocol.send(&server, &report.clone().into(), None).await;
        // Again, which does not count.
        protocol.send(&server, &report.into(), None).await;
        let expected = [json!(["/svc/Fetch", 2, 2.0, 0, 2.0]), json!(["/svc/Push", 1, 0.0, 7, 0.25])];
        assert_eq!(prices(&server).await, expected, "{protocol:?}");

        let metrics = server.http.get("/metrics").await;
        for (metric, of_fetch, of_others) in
            [("cpu_seconds", "4", "0"), ("wall_seconds", "4", "0.25"), ("network_bytes", "0", "7")]
        {
            for (rpc, sum) in [("/svc/Fetch", of_fetch), ("other", of_others)] {
                let line = format!("quota_request_{metric}_sum{{rpc=\"{rpc}\"}} {sum}\n");
                assert!(metrics.text().contains(&line), "{line}: {}", metrics.text());
            }
        }
        assert!(!metrics.text().contains("/svc/Push"), "only what the configuration names is a label");
    }
}

#[tokio::test]
async fn what_is_wrong_with_them_is_told_by_its_field() {
    let finished =
        |wall: f64, total: Amounts| charge(user("u"), NOTHING).of_rpc("/svc/A").finished(wall, Some(total));
    run([Case::new("names, times, totals")
        .step(Report::of([charge(user("u"), NOTHING).of_rpc(&"r".repeat(257))]), invalid("charges[0].rpc"))
        .step(Report::of([charge(user("u"), NOTHING).of_rpc("a\nb")]), invalid("charges[0].rpc"))
        .step(Report::of([finished(-1.0, NOTHING)]), invalid("charges[0].wall"))
        .step(
            Report::of([finished(1.0, Amounts { network: (1 << 53) + 1, ..NOTHING })]),
            invalid("charges[0].total.network"),
        )])
    .await;
}

#[tokio::test]
async fn times_that_cannot_be_asked_about_are_refused() {
    let server = TestServer::start(MEMORY, "").await;
    for since in ["0", "-1", "86401", "nan", "x"] {
        let answer = server.http.get(&format!("/v1/prices?since_seconds={since}")).await;
        judge("get", "/v1/prices", None, &answer);
        assert_eq!((answer.status, answer.field().as_deref()), (400, Some("since_seconds")), "{since}");
    }
}
