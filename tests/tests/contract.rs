//! Every store keeps the contract.

use quota_tests::contract::{
    Fixture, admission, boards, clock, limits, marks, names, nodes, releases, settlement, words,
};

mod memory {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn admission() {
        admission::all(&Fixture::memory()).await;
    }

    #[tokio::test]
    async fn boards() {
        boards::all(&Fixture::memory()).await;
    }

    #[tokio::test]
    async fn limits() {
        limits::all(&Fixture::memory()).await;
    }

    #[tokio::test]
    async fn settlement() {
        settlement::all(&Fixture::memory()).await;
    }

    #[tokio::test]
    async fn releases() {
        releases::all(&Fixture::memory()).await;
    }

    #[tokio::test]
    async fn marks() {
        marks::all(&Fixture::memory()).await;
    }

    #[tokio::test]
    async fn clock() {
        clock::all(&Fixture::memory()).await;
    }

    #[tokio::test]
    async fn names() {
        names::all(&Fixture::memory()).await;
    }

    #[tokio::test]
    async fn nodes() {
        nodes::all(&Fixture::memory()).await;
    }

    #[tokio::test]
    async fn words() {
        words::all(&Fixture::memory()).await;
    }
}

mod redis {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn admission() {
        admission::all(&Fixture::redis().await).await;
    }

    #[tokio::test]
    async fn boards() {
        boards::all(&Fixture::redis().await).await;
    }

    #[tokio::test]
    async fn limits() {
        limits::all(&Fixture::redis().await).await;
    }

    #[tokio::test]
    async fn settlement() {
        settlement::all(&Fixture::redis().await).await;
    }

    #[tokio::test]
    async fn releases() {
        releases::all(&Fixture::redis().await).await;
    }

    #[tokio::test]
    async fn marks() {
        marks::all(&Fixture::redis().await).await;
    }

    #[tokio::test]
    async fn clock() {
        clock::all(&Fixture::redis().await).await;
    }

    #[tokio::test]
    async fn names() {
        names::all(&Fixture::redis().await).await;
    }

    #[tokio::test]
    async fn nodes() {
        nodes::all(&Fixture::redis().await).await;
    }

    #[tokio::test]
    async fn words() {
        words::all(&Fixture::redis().await).await;
    }
}

/// All topics on one store, since several processes are behind it. The nodes come last: then no further one finds room.
async fn all(fixture: Fixture) {
    admission::all(&fixture).await;
    boards::all(&fixture).await;
    limits::all(&fixture).await;
    settlement::all(&fixture).await;
    releases::all(&fixture).await;
    marks::all(&fixture).await;
    names::all(&fixture).await;
    words::all(&fixture).await;
    clock::all(&fixture).await;
    nodes::all(&fixture).await;
    assert!(!fixture.has_crossed_slots().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinel() {
    all(Fixture::sentinel().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f11_a_cluster_keeps_the_contract_and_no_call_crosses_slots() {
    all(Fixture::cluster().await).await;
}
