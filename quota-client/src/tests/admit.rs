use std::net::{IpAddr, Ipv4Addr};

use quota_core::Cost;
use quota_proto::{ACCOUNT_UNREADABLE, STORE_UNAVAILABLE, v1};
use tokio::time::Instant;
use tonic::Code;

use super::fake::Check;
use super::*;
use crate::Cause;
use crate::denial::tests::deny;

#[tokio::test]
async fn what_is_asked_is_all_that_the_request_names() {
    let fake = Fake::start().await;
    let client = builder([&fake]).token("s3cret").build().unwrap();
    let price = Cost::ZERO.with_cpu_micros(2_000_000).unwrap();
    let ip = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));
    let admission = allowed(&client, &fetch().ip(ip).class("interactive").price(price)).await;
    assert!(admission.checked());
    let heard = fake.heard();
    let nothing = v1::Amounts { cpu_micros: Some(0), memory_byte_seconds: Some(0), network_bytes: Some(0) };
    let expected = v1::CheckRequest {
        node: "gitaly-01".to_owned(),
        rpc: "/gitaly.SSHService/SSHUploadPack".to_owned(),
        accounts: Some(v1::Accounts {
            repo: Some("project-42".to_owned()),
            user: Some("user-7".to_owned()),
            ip: Some("203.0.113.7".to_owned()),
        }),
        class: "interactive".to_owned(),
        price: Some(price.into()),
        used_here: Some(v1::UsedHere { repo: Some(nothing), user: Some(nothing), ip: Some(nothing) }),
        share_wanted: None,
    };
    assert_eq!(heard.checks, [expected]);
    assert_eq!(heard.authorization.as_deref(), Some("Bearer s3cret"));
    assert_eq!(client.stats().allowed, 1);
}

#[tokio::test]
async fn a_refusal_tells_who_what_and_when() {
    let fake = Fake::start().await;
    fake.answers([Check::answer(deny(Duration::from_millis(7400), false))]);
    let client = builder([&fake]).build().unwrap();
    let Decision::Deny(denial) = client.admit(&fetch()).await else { panic!("allowed") };
    assert_eq!(denial.to_string(), "user alice is over its CPU quota on gitaly-01; try again in 8 s");
    assert_eq!(denial.retry_after(), Duration::from_millis(7400));
    assert_eq!((client.stats().denied, client.stats().allowed), (1, 0));
}

#[tokio::test]
async fn a_limit_in_shadow_is_counted() {
    let fake = Fake::start().await;
    let shadow = deny(Duration::ZERO, false).denied_by;
    let Check::Answer(allow) = Check::allow() else { unreachable!() };
    fake.answers([Check::answer(v1::CheckResponse { shadow, ..*allow })]);
    let client = builder([&fake]).build().unwrap();
    assert!(allowed(&client, &fetch()).await.checked());
    assert_eq!((client.stats().shadow, client.stats().allowed), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_kept_when_nobody_answers() {
    let fake = Fake::start().await;
    fake.answers([Check::Hang]);
    let deadline = Duration::from_millis(50);
    let client = builder([&fake]).deadline(deadline).build().unwrap();
    for request in 1..=5 {
        let asked = Instant::now();
        assert!(!allowed(&client, &fetch()).await.checked());
        // Tokio's timers are exact to a millisecond.
        assert!(asked.elapsed() <= deadline + Duration::from_millis(1), "{:?}", asked.elapsed());
        assert_eq!(client.stats().allowed_unchecked, request);
    }
}

#[tokio::test]
async fn an_endpoint_that_is_away_is_passed_over_within_one_request() {
    let (away, fake) = (Fake::away().await, Fake::start().await);
    let client = builder([&away, &fake]).build().unwrap();
    for _ in 0..3 {
        assert!(allowed(&client, &fetch()).await.checked());
    }
    assert_eq!(fake.heard().checks.len(), 3);
    assert_eq!(client.stats().allowed_unchecked, 0);
}

#[tokio::test]
async fn nothing_is_asked_twice() {
    let (hanging, other) = (Fake::start().await, Fake::start().await);
    hanging.answers([Check::Hang]);
    let client = builder([&hanging, &other]).deadline(Duration::from_secs(1)).build().unwrap();
    assert!(!allowed(&client, &fetch()).await.checked());
    assert_eq!(hanging.heard().checks.len() + other.heard().checks.len(), 1, "it may have been sent");
    let client = builder([&other]).build().unwrap();
    other.answers([Check::Fail(Code::Unavailable)]);
    assert!(!allowed(&client, &fetch()).await.checked());
    assert_eq!(other.heard().checks.len(), 1, "it was sent");
}

#[tokio::test]
async fn the_next_request_prefers_an_endpoint_that_answers() {
    let (poor, good) = (Fake::start().await, Fake::start().await);
    poor.answers([Check::Fail(Code::Unavailable)]);
    let client = builder([&poor, &good]).build().unwrap();
    assert!(!allowed(&client, &fetch()).await.checked());
    for _ in 0..5 {
        assert!(allowed(&client, &fetch()).await.checked());
    }
    assert_eq!(poor.heard().checks.len(), 1);
}

#[tokio::test]
async fn it_recovers_when_the_service_comes_back() {
    let mut fake = Fake::away().await;
    let client = builder([&fake]).build().unwrap();
    assert!(!allowed(&client, &fetch()).await.checked());
    fake.restart().await;
    let recovered = async { while !allowed(&client, &fetch()).await.checked() {} };
    tokio::time::timeout(LONG, recovered).await.unwrap();
}

#[tokio::test]
async fn what_is_no_answer_allows_unchecked() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let Check::Answer(allow) = Check::allow() else { unreachable!() };
    let no_store = v1::CheckResponse { checked: false, ..*allow.clone() };
    let no_decision = v1::CheckResponse { decision: 0, ..*allow };
    let no_reason = v1::CheckResponse { denied_by: None, ..deny(Duration::ZERO, false) };
    let answers = [no_store, no_decision, no_reason].map(Check::answer);
    let errors = [Code::InvalidArgument, Code::PermissionDenied, Code::DataLoss].map(Check::Fail);
    for (unchecked, answer) in (1..).zip(answers.into_iter().chain(errors)) {
        fake.answers([answer.clone()]);
        assert!(!allowed(&client, &fetch()).await.checked(), "{answer:?}");
        assert_eq!(client.stats().allowed_unchecked, unchecked, "{answer:?}");
    }
    fake.answers([Check::allow()]);
    assert!(allowed(&client, &fetch()).await.checked(), "none of these says that the endpoint is away");
}

#[tokio::test]
async fn a_service_that_cannot_check_and_refuses_is_heeded_for_as_long_as_it_says_so() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let refusals = [(Code::Unavailable, STORE_UNAVAILABLE), (Code::DataLoss, ACCOUNT_UNREADABLE)];
    for (code, reason) in refusals.into_iter().cycle().take(12) {
        fake.answers([Check::Refuse(code, reason)]);
        let Decision::Deny(denial) = client.admit(&fetch()).await else { panic!("allowed: {reason}") };
        assert_eq!(denial.cause(), &Cause::Unavailable);
        assert_eq!(denial.retry_after(), Duration::from_millis(700));
        assert!(!denial.permanent());
    }
    assert_eq!((client.stats().refused_unavailable, client.stats().denied), (12, 0));
    fake.answers([Check::Refuse(Code::Unavailable, "DRAINING")]);
    assert!(!allowed(&client, &fetch()).await.checked(), "any other error is no answer");
    fake.answers([Check::allow()]);
    assert!(allowed(&client, &fetch()).await.checked());
}

#[tokio::test]
async fn another_endpoint_may_have_the_store_that_one_has_lost() {
    let (lost, good) = (Fake::start().await, Fake::start().await);
    lost.answers([Check::Refuse(Code::Unavailable, STORE_UNAVAILABLE)]);
    let client = builder([&lost, &good]).build().unwrap();
    assert!(matches!(client.admit(&fetch()).await, Decision::Deny(_)));
    for _ in 0..3 {
        assert!(allowed(&client, &fetch()).await.checked());
    }
}

#[tokio::test]
async fn a_name_that_the_service_would_not_take_is_left_out_and_the_rest_is_checked_and_charged() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let request = Request::rpc("x".repeat(257)).class("a\nb").repo("../etc").user("a\0b").ip(ip);
    let admission = allowed(&client, &request).await;
    assert!(admission.checked());
    admission.meter().sent(1);
    drop(admission);
    assert!(client.shutdown(LONG).await);
    let heard = fake.heard();
    let left = v1::Accounts { ip: Some("127.0.0.1".to_owned()), ..v1::Accounts::default() };
    let check = &heard.checks[0];
    assert_eq!((&*check.rpc, &*check.class, check.accounts.as_ref()), ("", "", Some(&left)));
    assert_eq!(heard.reports[0].charges[0].accounts, Some(left));
    assert_eq!((client.stats().invalid, client.stats().without_account), (1, 0));

    fake.answers([Check::answer(deny(Duration::from_secs(1), false))]);
    for request in [fetch().user(""), fetch().repo("x".repeat(1025)), fetch().class("x".repeat(257))] {
        assert!(matches!(client.admit(&request).await, Decision::Deny(_)), "{request:?}");
    }
    assert_eq!(client.stats().invalid, 4);
}

#[tokio::test]
async fn a_request_that_nobody_pays_is_not_sent() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    for request in [Request::rpc("/x"), Request::rpc("/x").user(""), Request::rpc("/x").repo("../etc")] {
        let admission = allowed(&client, &request).await;
        assert!(!admission.checked());
        admission.meter().sent(1);
        client.meter(&request).sent(1);
    }
    assert!(client.shutdown(LONG).await);
    assert_eq!((client.stats().invalid, client.stats().without_account), (4, 6));
    assert!(fake.heard().checks.is_empty() && fake.heard().reports.is_empty());
}

/// Streams that are reset before they are looked at end the connection: h2 takes more than 20 of them for an attack.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_go_away_break_nobody_elses_checks() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    assert!(allowed(&client, &fetch()).await.checked());
    for round in 0..400 {
        let others: Vec<_> = (0..100)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { drop(client.admit(&fetch()).await) })
            })
            .collect();
        // In some of the rounds they have asked, and nobody has answered.
        for _ in 0..round % 50 {
            tokio::task::yield_now().await;
        }
        others.iter().for_each(tokio::task::JoinHandle::abort);
        assert!(allowed(&client, &fetch()).await.checked());
    }
    assert_eq!(client.stats().allowed_unchecked, 0);
}
