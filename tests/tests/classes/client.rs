//! Slots in `quota-client`, of a real service.

use std::time::{Duration, Instant};

use futures::future::join_all;
use quota_client::{Cause, Client, Denial, NoSlotReason, Request, Slot};
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, TestServer};
use quota_tests::wait::PATIENCE;

use super::until_so;

fn client(server: &TestServer, node: &str) -> Client {
    let endpoint = format!("http://{}", server.grpc_address());
    Client::builder().endpoints([endpoint]).node(node).deadline(PATIENCE).build().unwrap()
}

fn of_class(class: &'static str) -> Request {
    Request::rpc("/gitaly.SSHService/SSHUploadPack").user("alice").class(class)
}

fn reason(denial: &Denial) -> NoSlotReason {
    match denial.cause() {
        Cause::NoSlot(no_slot) => no_slot.reason,
        other => panic!("{other:?}"),
    }
}

/// A slot, once the store that has just been started leases some.
async fn first(client: &Client, class: &'static str) -> Slot {
    let mut slot = None;
    until_so("there is a slot", async || match client.slot(&of_class(class), None).await {
        Ok(found) => {
            slot = Some(found.expect("the class has a cap"));
            true
        }
        Err(denial) => {
            assert_eq!(reason(&denial), NoSlotReason::Opening);
            false
        }
    })
    .await;
    slot.unwrap()
}

#[tokio::test]
async fn an_immediate_class_runs_at_once_or_is_refused_and_others_are_not_held_up() {
    let settings = "classes.default.lease = \"3s\"\nclasses.ci = { slots = 2, service = \"immediate\" }\n";
    let server = TestServer::start(MEMORY, settings).await;
    let client = client(&server, "gitaly-01");
    let held = first(&client, "ci").await;
    let _second = client.slot(&of_class("ci"), None).await.unwrap().unwrap();
    let refused = client.slot(&of_class("ci"), None).await.unwrap_err();
    assert_eq!(reason(&refused), NoSlotReason::AtCap);
    let status = tonic::Status::from(refused);
    assert_eq!(status.code(), tonic::Code::Unavailable);
    assert!(client.slot(&of_class("interactive"), None).await.unwrap().is_none(), "it has no cap");
    assert!(client.slot(&Request::rpc("/a/b").user("alice"), None).await.unwrap().is_none());
    drop(held);
    let again = client.slot(&of_class("ci"), None).await.unwrap();
    assert!(again.is_some(), "what was given back here is here");
}

#[tokio::test]
async fn a_patient_class_waits_for_a_slot_that_another_fileserver_gives_back() {
    let settings = "classes.default.lease = \"1s\"\n\
        classes.ci = { slots = 3, service = \"patient\", max_wait = \"60s\", max_queue = 2 }\n";
    let redis = RedisServer::start().await;
    let server = TestServer::start(&redis.url(), settings).await;
    let (one, other) = (client(&server, "gitaly-01"), client(&server, "gitaly-02"));
    let mut held = vec![first(&one, "ci").await];
    for _ in 0..2 {
        held.push(one.slot(&of_class("ci"), None).await.unwrap().unwrap());
    }
    let soon = Some(tokio::time::Instant::now() + Duration::from_millis(300));
    let late = other.slot(&of_class("ci"), soon).await.unwrap_err();
    assert_eq!(reason(&late), NoSlotReason::DeadlinePassed);
    let request = of_class("ci");
    let waiting =
        join_all([other.slot(&request, None), other.slot(&request, None), other.slot(&request, None)]);
    let given_back = async {
        tokio::task::yield_now().await;
        held.truncate(1);
    };
    let (answers, ()) = tokio::join!(waiting, given_back);
    let refused: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).map(reason).collect();
    assert_eq!(refused, [NoSlotReason::QueueFull]);
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Ok(Some(_)))).count(), 2);
}

#[tokio::test]
async fn what_is_not_needed_is_given_back_and_what_is_held_is_renewed() {
    let settings = "classes.default.lease = \"1s\"\nclasses.ci = { slots = 8, service = \"patient\" }\n";
    let server = TestServer::start(MEMORY, settings).await;
    let one = client(&server, "gitaly-01");
    let leased = async || {
        let classes = server.http.get("/v1/classes").await.json()["classes"].clone();
        let ci = classes.as_array().unwrap().iter().find(|class| class["class"] == "ci").unwrap();
        ci["slots"]["leased"].as_u64().unwrap()
    };
    let held = first(&one, "ci").await;
    let begun = Instant::now();
    until_so("three leases are over", async || {
        assert!((1..=8).contains(&leased().await));
        begun.elapsed() > Duration::from_secs(3)
    })
    .await;
    until_so("what is not needed is given back", async || leased().await == 1).await;
    drop(held);
    until_so("all is given back", async || leased().await == 0).await;
}

#[tokio::test]
async fn a_name_that_the_service_does_not_know_is_left_out() {
    let server = TestServer::start(MEMORY, "").await;
    let client = client(&server, "gitaly-01");
    assert!(client.slot(&of_class("novel"), None).await.unwrap().is_none());
    let quota_client::Decision::Allow(admission) = client.admit(&of_class("novel")).await else {
        panic!("it is allowed");
    };
    assert!(admission.checked(), "as one of the default class");
}

#[tokio::test]
async fn what_runs_for_too_long_is_told_and_its_slot_is_taken_back() {
    let settings = "classes.default.lease = \"3s\"\nclasses.brief = { slots = 1, max_run = \"200ms\" }\n";
    let server = TestServer::start(MEMORY, settings).await;
    let client = client(&server, "gitaly-01");
    let held = first(&client, "brief").await;
    let quota_client::Decision::Allow(admission) = client.admit(&of_class("brief")).await else {
        panic!("it is allowed");
    };
    let meter = admission.meter();
    held.of(&meter);
    let told = tokio::time::timeout(PATIENCE, meter.is_shed()).await.expect("it is told");
    assert_eq!(reason(&told), NoSlotReason::RanTooLong);
    let next = client.slot(&of_class("brief"), None).await.unwrap();
    assert!(next.is_some(), "though the first still holds it");
}

/// How many of so many get a slot, where each that gets one keeps it.
async fn kept(client: &Client, request: &Request, of: usize) -> Vec<Slot> {
    let mut kept = Vec::new();
    for _ in 0..of {
        match client.slot(request, None).await {
            Ok(slot) => kept.push(slot.expect("a class with a cap")),
            Err(denial) => assert_eq!(reason(&denial), NoSlotReason::AtCap),
        }
    }
    kept
}

#[tokio::test]
async fn a_check_of_a_class_that_nobody_knows_is_one_of_the_default_class_without_a_slot_too() {
    let server =
        TestServer::start(MEMORY, "limits.user.cpu.initial = \"1s\"\nlimits.user.cpu.max = \"1s\"\n").await;
    let client = client(&server, "gitaly-01");
    let mut admitted = Vec::new();
    for number in 0..200 {
        match client.admit(&of_class("novel")).await {
            quota_client::Decision::Allow(admission) => {
                assert!(admission.checked(), "{number}");
                admitted.push(admission);
            }
            quota_client::Decision::Deny(_) => break,
        }
    }
    assert_eq!(admitted.len(), 100, "a second by 10 ms each");
}

#[tokio::test]
async fn names_that_nobody_knows_take_no_cap_away() {
    let settings = "classes.default.lease = \"1s\"\nclasses.ci = { slots = 2, service = \"immediate\" }\n";
    let server = TestServer::start(MEMORY, settings).await;
    let client = client(&server, "gitaly-01");
    for number in 0..70 {
        let request = Request::rpc("/a/b").user("alice").class(format!("novel-{number}"));
        assert!(client.slot(&request, None).await.unwrap().is_none());
    }
    drop(first(&client, "ci").await);
    assert_eq!(kept(&client, &of_class("ci"), 10).await.len(), 2);
}

#[tokio::test]
async fn a_class_that_nobody_knows_has_the_cap_of_the_default_class() {
    let settings = "default_class = \"api\"\nclasses.default.lease = \"1s\"\n\
        classes.api = { slots = 2, service = \"immediate\" }\n";
    let server = TestServer::start(MEMORY, settings).await;
    let client = client(&server, "gitaly-01");
    drop(first(&client, "novel").await);
    let kept = kept(&client, &of_class("novel"), 10).await;
    assert_eq!(kept.len(), 2);
    let unnamed = client.slot(&Request::rpc("/a/b").user("alice"), None).await.unwrap_err();
    assert_eq!(reason(&unnamed), NoSlotReason::AtCap);
}
