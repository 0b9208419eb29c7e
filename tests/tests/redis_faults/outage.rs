//! F01, F05, F06: a Redis that is frozen, demoted, takes no connections, or is reached through ones that are dead.

use std::time::Duration;

use futures::future::join_all;
use quota_server::store::{Cause, Store};
use quota_tests::ports::Port;
use quota_tests::proxy::{Fault, Proxy};
use quota_tests::redis::RedisServer;
use quota_tests::stores::Opening;
use quota_tests::values::{cpu, enforced, mark, spending, unlimited, user};
use quota_tests::wait::{PATIENCE, until};
use tokio::time::Instant;

use crate::raw::Raw;
use crate::{admit, report, used};

const POOL_SIZE: usize = 4;

/// Far above the deadline, and far below what waiting for the frozen Redis would take.
const TOLERANCE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn f06_every_call_ends_by_its_deadline_and_no_reply_goes_to_another() {
    let mut server = RedisServer::start().await;
    let deadline = Duration::from_millis(100);
    let store = Opening { deadline, pool_size: POOL_SIZE, ..Opening::default() }.open(&server.url());
    let beside = Opening::default().open(&server.url());
    let accounts: Vec<_> = (1..=100).map(|number| (number, user(&format!("user-{number}")))).collect();
    until(PATIENCE, "a decision", async || admit(&store, &user("first"), unlimited(), cpu(1)).await.ok())
        .await;

    server.pause().await;
    let started = Instant::now();
    let calls = accounts.iter().map(async |(number, account)| {
        // Each has a limit of its own, too.
        let call = admit(&store, account, enforced(1000 * number), cpu(*number));
        // Every other caller gives up before the deadline.
        if number % 2 == 0 { tokio::time::timeout(deadline / 10, call).await.ok() } else { Some(call.await) }
    });
    for answer in join_all(calls).await.into_iter().flatten() {
        let error = answer.expect_err("nobody answers");
        assert_eq!(error.cause(), Cause::Timeout, "{error}");
    }
    for call in [store.probe().await.err(), used(&store, &accounts[0].1).await.err()] {
        assert_eq!(call.map(|error| error.cause()), Some(Cause::Timeout));
    }
    let took = started.elapsed();
    assert!(took >= deadline && took < TOLERANCE, "{took:?}");

    server.resume().await;
    until(PATIENCE, "decisions return", async || store.probe().await.ok()).await;
    // All at once, over the connections that were frozen.
    let told = accounts.iter().map(async |(number, account)| {
        let before = used(&beside, account).await.unwrap();
        assert!(before == 0 || before == *number, "{account} used {before}");
        let told = until(PATIENCE, "a standing", async || used(&store, account).await.ok()).await;
        assert_eq!(told, before, "{account}");
        let reached = async || admit(&store, account, enforced(before), cpu(1)).await.ok();
        let admitted = until(PATIENCE, "a decision", reached).await;
        assert!(!admitted.allowed, "{account} has just reached a limit of {before}");
    });
    join_all(told).await;
    let calls = (0..POOL_SIZE).map(|_| async {
        until(PATIENCE, "every connection serves", async || store.probe().await.ok()).await;
    });
    join_all(calls).await;
}

#[tokio::test]
async fn f06_connections_that_are_dead_are_replaced() {
    let server = RedisServer::start().await;
    let proxy = Proxy::to(server.port()).await;
    let deadline = Duration::from_millis(500);
    let store = Opening { deadline, pool_size: POOL_SIZE, ..Opening::default() }.open(&proxy.redis_url());
    let alice = user("alice");
    until(PATIENCE, "a full pool", async || {
        join_all((0..POOL_SIZE * 4).map(|_| admit(&store, &alice, unlimited(), cpu(1)))).await;
        (proxy.accepted() >= POOL_SIZE as u32).then_some(())
    })
    .await;

    proxy.strand();
    let mut timeouts = 0;
    until(PATIENCE, "decisions return", async || match admit(&store, &alice, unlimited(), cpu(1)).await {
        Ok(_) => Some(()),
        Err(error) => {
            assert_eq!(error.cause(), Cause::Timeout, "{error}");
            timeouts += 1;
            None
        }
    })
    .await;
    assert!(timeouts > 0, "the connections were dead");
}

/// One answer that comes too late is no reason to connect anew.
#[tokio::test]
async fn f06_a_spike_of_latency_replaces_no_connection() {
    let server = RedisServer::start().await;
    let proxy = Proxy::to(server.port()).await;
    let deadline = Duration::from_secs(1);
    let store = Opening { deadline, pool_size: 1, ..Opening::default() }.open(&proxy.redis_url());
    let alice = user("alice");
    until(PATIENCE, "a decision", async || admit(&store, &alice, unlimited(), cpu(1)).await.ok()).await;
    let connections = proxy.accepted();

    proxy.set(Fault::Freeze);
    let error = admit(&store, &alice, unlimited(), cpu(1)).await.expect_err("an answer that is late");
    assert_eq!(error.cause(), Cause::Timeout, "{error}");
    proxy.set(Fault::None);
    until(PATIENCE, "decisions return", async || admit(&store, &alice, unlimited(), cpu(1)).await.ok()).await;
    assert_eq!(proxy.accepted(), connections);
}

/// Each attempt is closed as soon as it is made, as by a server that has too many clients.
#[tokio::test]
async fn f05_a_redis_that_takes_no_connections_is_not_run_into_and_serves_at_once_when_it_does() {
    let server = RedisServer::start().await;
    let (proxy, nobody) = (Proxy::to(server.port()).await, Port::free());
    let store = Opening { pool_size: 1, ..Opening::default() }.open(&proxy.redis_url());
    let alice = user("alice");
    admit(&store, &alice, unlimited(), cpu(1)).await.unwrap();

    proxy.lead_to(nobody.number());
    proxy.cut();
    let (before, began, mut errors) = (proxy.accepted(), Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(1) {
        let error = admit(&store, &alice, unlimited(), cpu(1)).await.expect_err("no connection");
        assert_eq!(error.cause(), Cause::Connection, "{error}");
        errors += 1;
    }
    let (attempts, most) = (u128::from(proxy.accepted() - before), began.elapsed().as_millis() / 10 + 1);
    println!("{attempts} attempts for {errors} calls in {:?}", began.elapsed());
    assert!((1..=most).contains(&attempts), "{attempts} attempts, {most} at most");

    proxy.lead_to(server.port());
    assert!(admit(&store, &alice, unlimited(), cpu(1)).await.expect("errors only while it is away").allowed);
}

/// Those that were closed while nobody used them. Which they are is noticed before they are used.
#[tokio::test]
async fn f06_connections_that_were_closed_fail_nobody() {
    let mut server = RedisServer::start().await;
    let store = Opening { pool_size: POOL_SIZE, ..Opening::default() }.open(&server.url());
    let alice = user("alice");
    for round in 0..5 {
        for answer in join_all((0..POOL_SIZE * 4).map(|_| admit(&store, &alice, unlimited(), cpu(1)))).await {
            answer.unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        server.restart().await;
    }
}

#[tokio::test]
async fn a_connection_that_just_answered_is_not_asked_whether_it_lives() {
    let server = RedisServer::start().await;
    let raw = Raw::new(&server).await;
    let store = Opening { pool_size: POOL_SIZE, ..Opening::default() }.open(&server.url());
    raw.run::<()>(&["CONFIG", "RESETSTAT"]).await;
    for _ in 0..100 {
        admit(&store, &user("alice"), unlimited(), cpu(1)).await.unwrap();
    }
    // Some may be, on a machine that pauses for a second.
    let asked = raw.calls("ping").await;
    assert!(asked < 50, "{asked} of 100 times");
}

#[tokio::test]
async fn f01_a_replica_refuses_and_serves_again_once_it_is_the_primary() {
    let server = RedisServer::start().await;
    let raw = Raw::new(&server).await;
    let store = Opening::default().open(&server.url());
    let alice = user("alice");
    let charge = report(mark("r", 1), [spending(&alice, &[(0, 10)])]);
    admit(&store, &alice, unlimited(), cpu(1)).await.unwrap();

    raw.run::<()>(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let errors = [
        admit(&store, &alice, unlimited(), cpu(1)).await.err(),
        store.settle(&charge).await.err(),
        store.probe().await.err(),
    ];
    for error in errors {
        assert_eq!(error.map(|error| error.cause()), Some(Cause::Readonly));
    }
    raw.run::<()>(&["REPLICAOF", "NO", "ONE"]).await;
    assert_eq!(store.settle(&charge).await.unwrap().applied, 1);
    assert!(admit(&store, &alice, unlimited(), cpu(1)).await.unwrap().allowed);
    assert_eq!(used(&store, &alice).await.unwrap(), 12);
}

/// The old primary keeps its connections open; only new ones lead to the new one.
#[tokio::test]
async fn f01_connections_to_a_demoted_primary_are_made_anew() {
    let (old, new) = tokio::join!(RedisServer::start(), RedisServer::start());
    let proxy = Proxy::to(old.port()).await;
    let store = Opening { pool_size: POOL_SIZE, ..Opening::default() }.open(&proxy.redis_url());
    let alice = user("alice");
    until(PATIENCE, "a full pool", async || {
        join_all((0..POOL_SIZE * 4).map(|_| admit(&store, &alice, unlimited(), cpu(1)))).await;
        (proxy.accepted() == POOL_SIZE as u32).then_some(())
    })
    .await;

    // Of nobody that answers: while it copied data, it would say so in place of READONLY.
    Raw::new(&old).await.run::<()>(&["REPLICAOF", "127.0.0.1", "1"]).await;
    proxy.lead_to(new.port());
    let mut refused = 0;
    for _ in 0..POOL_SIZE * 4 {
        match admit(&store, &alice, unlimited(), cpu(1)).await {
            Ok(admitted) => assert!(admitted.allowed),
            Err(error) => {
                assert_eq!(error.cause(), Cause::Readonly, "{error}");
                refused += 1;
            }
        }
    }
    assert!((1..=POOL_SIZE).contains(&refused), "once for each connection at most: {refused}");
    let beside = Opening::default().open(&new.url());
    assert_eq!(used(&beside, &alice).await.unwrap(), (POOL_SIZE * 4 - refused) as u64);
}
