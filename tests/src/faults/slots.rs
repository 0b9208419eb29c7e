//! Callers that take slots of a class and give them back, each by a client of its own.

use std::time::Duration;

use quota_client::{Client, Request};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::load::Way;
use crate::wait::PATIENCE;

/// Whose slots they take.
pub(super) const CLASS: &str = "ci";

/// How many it has.
pub(super) const CAP: u32 = 5;

/// Fileservers, with so many callers each.
const FILESERVERS: usize = 2;
const CALLERS: usize = 4;

pub(super) struct SlotCallers {
    callers: JoinSet<()>,
    clients: Vec<Client>,
    end: watch::Sender<bool>,
}

impl SlotCallers {
    pub(super) fn of(ways: &[Way], deadline: Duration) -> Self {
        let (mut callers, mut clients, end) = (JoinSet::new(), Vec::new(), watch::Sender::new(false));
        for number in 0..FILESERVERS {
            let client = Client::builder()
                .endpoints(ways.iter().map(|way| &way.endpoint.url))
                .node(format!("slots-{number}"))
                .deadline(deadline)
                .build()
                .expect("a client");
            for _ in 0..CALLERS {
                callers.spawn(call(client.clone(), end.subscribe()));
            }
            clients.push(client);
        }
        Self { callers, clients, end }
    }

    /// Ends all of them.
    pub(super) async fn end(mut self) {
        self.end.send_replace(true);
        while let Some(ended) = self.callers.join_next().await {
            ended.expect("a caller that ends well");
        }
        for client in self.clients {
            client.shutdown(PATIENCE).await;
        }
    }
}

/// With a slot or without: who is refused comes again.
async fn call(client: Client, end: watch::Receiver<bool>) {
    let request = Request::rpc("/faults").class(CLASS);
    while !*end.borrow() {
        let slot = client.slot(&request, None).await;
        sleep(Duration::from_millis(fastrand::u64(1..20))).await;
        drop(slot);
    }
}
