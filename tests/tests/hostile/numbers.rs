//! Amounts, ages and sequences that are none (F08, F09).

use quota_proto::v1;
use quota_tests::server::{MEMORY, TestServer};
use serde_json::json;
use tonic::Code;

use crate::victim::{ACCOUNTS, Victim};

/// No amount of anything.
const NO_AMOUNT: [&str; 16] = [
    "-1", "-0", "-0.0", "-1e-9", "-1e999", "1e999", "NaN", "-NaN", "nan", "Infinity", "\"NaN\"", "\"1\"",
    "true", "null", "[1]", "{}",
];

/// 2^53 + 1, 2^64 - 1, 2^64 and more.
const TOO_MUCH: [&str; 4] = ["9007199254740993", "18446744073709551615", "18446744073709551616", "1e300"];

#[tokio::test]
async fn f09_f10_amounts_that_are_none_are_refused_by_name() {
    for mut victim in Victim::each().await {
        for resource in ["cpu", "memory", "network"] {
            for amount in NO_AMOUNT.into_iter().chain(TOO_MUCH) {
                let cost = format!(r#"{{"{resource}":{amount}}}"#);
                let check = format!(r#"{{"accounts":{ACCOUNTS},"price":{cost}}}"#);
                victim.refuses("/v1/check", check, &format!("price.{resource}")).await;
                let charge = format!(r#"{{"accounts":{ACCOUNTS},"cost":{cost}}}"#);
                let report = format!(r#"{{"charges":[{charge}]}}"#);
                victim.refuses("/v1/report", report, &format!("charges[0].cost.{resource}")).await;
            }
        }
        victim.assert_sound().await;
    }
}

/// Who has come to a limit stays refused, whatever is sent of him; in gRPC only pressures can be no number at all.
#[tokio::test]
async fn f09_who_is_over_a_limit_stays_so_whatever_is_sent() {
    for mut victim in Victim::each().await {
        let http = victim.server.http.clone();
        let saturate = r#"{"charges":[{"accounts":{"user":"over"},"cost":{"cpu":1000}}]}"#;
        assert_eq!(http.post_bytes("/v1/report", saturate).await.status, 200);
        let usage = async || http.account("user", "over").await.json()["resources"].clone();
        let before = usage().await;
        for amount in NO_AMOUNT.into_iter().chain(TOO_MUCH) {
            let report =
                format!(r#"{{"charges":[{{"accounts":{{"user":"over"}},"cost":{{"cpu":{amount}}}}}]}}"#);
            victim.refuses("/v1/report", report, "charges[0].cost.cpu").await;
            let check = r#"{"accounts":{"user":"over"}}"#;
            assert_eq!(http.post_bytes("/v1/check", check).await.status, 429, "{amount}");
        }
        assert_eq!(usage().await, before);
        for pressure in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, -1e-9] {
            let pressure = v1::Pressure { cpu: Some(pressure), ..v1::Pressure::default() };
            let request = v1::ReportPressureRequest {
                node: "gitaly-01".into(),
                pressure: Some(pressure),
                ..v1::ReportPressureRequest::default()
            };
            let told = victim.server.grpc.clone().report_pressure(request).await;
            assert_eq!(told.unwrap_err().code(), Code::InvalidArgument, "{pressure:?}");
        }
        assert_eq!(http.get("/v1/nodes").await.json()["nodes"], json!([]));
        victim.assert_sound().await;
    }
}

/// One number, read in every way there is.
#[tokio::test]
async fn f08_a_number_is_the_same_over_http_and_grpc_and_in_metrics() {
    // Of network, within one bucket; a double has all of its digits.
    const BYTES: u64 = 1_099_511_627_775;
    const LIMIT: u64 = 54_975_581_388_799;
    let settings = format!("limits.user.network = {{ initial = \"{LIMIT}B\", max = \"{LIMIT}B\" }}\n");
    let server = TestServer::start(MEMORY, &settings).await;
    let charge = json!({ "accounts": { "user": "u" }, "cost": { "network": BYTES, "cpu": 0.001 } });
    assert_eq!(server.http.post("/v1/report", &json!({ "charges": [charge] })).await.status, 200);

    let http = server.http.account("user", "u").await;
    let network = &http.json()["resources"]["network"];
    assert_eq!((network["used"].as_u64(), network["limit"].as_u64()), (Some(BYTES), Some(LIMIT)));
    let request = v1::GetStandingRequest { kind: v1::Kind::User.into(), id: "u".into(), node: String::new() };
    let network = server.grpc.clone().get_standing(request).await.unwrap().into_inner().network.unwrap();
    let limit = network.limit.and_then(|limit| limit.limit);
    assert_eq!((network.used, limit), (BYTES, Some(v1::limit::Limit::Amount(LIMIT))));
    let metrics = server.http.get("/metrics").await;
    let shown = format!("quota_limit{{kind=\"user\",mode=\"shadow\",resource=\"network\"}} {LIMIT}\n");
    assert!(metrics.text().contains(&shown), "{shown}{}", metrics.text());
    assert!(!http.text().contains("e+") && !metrics.text().contains("e+"), "{}", http.text());
}

#[tokio::test]
async fn one_bad_charge_refuses_the_whole_report() {
    let mut victim = Victim::in_memory().await;
    let good = format!(r#"{{"accounts":{ACCOUNTS},"cost":{{"cpu":1}}}}"#);
    let bad = format!(r#"{{"accounts":{ACCOUNTS},"cost":{{"network":-1}}}}"#);
    let report = format!(r#"{{"source":"s","sequence":1,"charges":[{good},{good},{bad}]}}"#);
    victim.refuses("/v1/report", report, "charges[2].cost.network").await;
    victim.assert_sound().await;
}

#[tokio::test]
async fn ages_in_the_future_and_no_ages_are_refused() {
    let mut victim = Victim::in_memory().await;
    for age in ["-1", "-0.0", "-1e300", "1e999", "NaN", "\"1\"", "null", "[]"] {
        let charge = format!(r#"{{"accounts":{ACCOUNTS},"cost":{{"cpu":1}},"age_seconds":{age}}}"#);
        let report = format!(r#"{{"charges":[{charge}]}}"#);
        victim.refuses("/v1/report", report, "charges[0].age_seconds").await;
        let charge = format!(r#"{{"accounts":{ACCOUNTS},"cost":{{"cpu":1}}}}"#);
        let report = format!(r#"{{"held_seconds":{age},"charges":[{charge}]}}"#);
        victim.refuses("/v1/report", report, "held_seconds").await;
    }
    victim.assert_sound().await;
}

/// What was spent an eternity ago is older than the window, like anything else that is.
#[tokio::test]
async fn a_huge_age_is_only_old() {
    for mut victim in Victim::each().await {
        for age in ["600", "86401", "1e18", "1e300", "18446744073709551616"] {
            let charge = format!(r#"{{"accounts":{ACCOUNTS},"cost":{{"cpu":1}},"age_seconds":{age}}}"#);
            let report = format!(r#"{{"held_seconds":{age},"charges":[{charge}]}}"#);
            let answer = victim.server.http.post_bytes("/v1/report", report).await;
            assert_eq!(answer.text(), r#"{"applied":0,"dropped_old":1,"duplicate":false}"#, "{age}");
            victim.assert_untouched(age).await;
        }
        victim.assert_sound().await;
    }
}

#[tokio::test]
async fn sequences_and_sources_have_bounds() {
    let mut victim = Victim::in_memory().await;
    let charge = format!(r#"{{"accounts":{ACCOUNTS},"cost":{{"cpu":1}}}}"#);
    for sequence in
        ["9007199254740992", "18446744073709551615", "18446744073709551616", "-1", "1.5", "NaN", "\"1\""]
    {
        let report = format!(r#"{{"source":"s","sequence":{sequence},"charges":[{charge}]}}"#);
        victim.refuses("/v1/report", report, "sequence").await;
    }
    for source in ["s".repeat(65), "ä".repeat(33), "s".repeat(1 << 20)] {
        let report = format!(r#"{{"source":"{source}","sequence":1,"charges":[{charge}]}}"#);
        victim.refuses("/v1/report", report, "source").await;
    }
    let report = format!(r#"{{"charges":[{}]}}"#, vec![charge; 1025].join(","));
    victim.refuses("/v1/report", report, "charges").await;
    for attempt in ["-1", "1.5", "4294967296", "NaN", ""] {
        let answer = victim.server.http.get(&format!("/v1/backoff?user=u&attempt={attempt}")).await;
        crate::victim::assert_refused(&answer, "attempt", attempt);
    }
    victim.assert_sound().await;
}
