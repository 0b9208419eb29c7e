//! Reservations that no allow carried.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::victim::{ACCOUNTS, Victim};

fn forged(words: &[u64]) -> String {
    let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    format!("r1.{}", URL_SAFE_NO_PAD.encode(packed))
}

fn report(reservation: &str) -> String {
    format!(r#"{{"charges":[{{"accounts":{ACCOUNTS},"reservation":{reservation:?}}}]}}"#)
}

#[tokio::test]
async fn what_is_no_reservation_is_refused() {
    let mut victim = Victim::in_memory().await;
    for text in [
        "x".to_owned(),
        "r1.".to_owned(),
        "r1.====".to_owned(),
        "r2.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned(),
        forged(&[1, 2, 3]),
        forged(&[1, 2, 3, 4, 5]),
        forged(&[u64::MAX; 4]),
        forged(&[1 << 48, 0, 0, 0]),
        forged(&[1, 1 << 40, 0, 0]),
        forged(&[1, 0, 0, u64::MAX]),
        "r1.".to_owned() + &"A".repeat(1 << 20),
    ] {
        victim.refuses("/v1/report", report(&text), "charges[0].reservation").await;
    }
    let charge = format!(r#"{{"accounts":{ACCOUNTS},"release":{{"cpu":5}}}}"#);
    victim.refuses("/v1/report", format!(r#"{{"charges":[{charge}]}}"#), "charges[0].release").await;
    victim.assert_sound().await;
}

/// One of a bucket that is not in the window gives nothing back.
#[tokio::test]
async fn a_reservation_of_another_time_gives_nothing_back() {
    for mut victim in Victim::each().await {
        let most = (1 << 40) - 1;
        // In buckets of the victim's window.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 10;
        for tick in [0, 1, now - 3600, now - 61, now + 600, (1 << 48) - 1] {
            let answer =
                victim.server.http.post_bytes("/v1/report", report(&forged(&[tick, most, most, most]))).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            victim.assert_untouched("another time").await;
        }
        victim.assert_sound().await;
    }
}
