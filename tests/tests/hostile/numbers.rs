//! Amounts, ages and sequences that are none (F08, F09).

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
