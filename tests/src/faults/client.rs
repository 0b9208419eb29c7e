//! A caller that is the client crate, as a fileserver uses it.

use std::fs;
use std::time::Duration;

use quota_client::{Admission, Client, Decision, Request};
use tokio::time::Instant;

use super::book::Book;
use super::load::{Endpoint, Shift};
use super::work::{PRICE, Work};
use crate::values::cpu;
use crate::wait::PATIENCE;

const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Of so many pieces of work, one goes on until the books are compared: its reservation is not given back.
const LONG: usize = 4;

pub(super) struct ClientCaller {
    client: Client,
    book: Book,
}

impl ClientCaller {
    /// One that prefers the first of the servers.
    pub(super) fn new(servers: &[Endpoint], deadline: Duration, book: Book) -> Self {
        let mut client = Client::builder()
            .endpoints(servers.iter().map(|server| &server.url))
            .node(&book.caller)
            .deadline(deadline)
            .report_interval(REPORT_INTERVAL);
        // One authority for all.
        if let Some(ca_file) = servers.iter().find_map(|server| server.ca_file.as_ref()) {
            client = client.ca_certificate(fs::read(ca_file).expect("the authority's certificate"));
        }
        Self { client: client.build().expect("a client"), book }
    }

    /// Works until the shift ends, and then until all is reported. Returns the work that goes on.
    pub(super) async fn run(self, mut shift: Shift) -> Vec<Admission> {
        let mut open = Vec::new();
        while shift.goes_on().await {
            open.extend(self.work().await);
        }
        assert!(
            self.client.shutdown(PATIENCE).await,
            "reports that nobody acknowledges: {:?}",
            self.client.stats()
        );
        let stats = self.client.stats();
        let given_up = stats.charges_lost + stats.charges_too_old + stats.reports_partly_stored;
        assert_eq!((given_up, stats.denied + stats.refused_unavailable), (0, 0), "{stats:?}");
        // The crate does not tell when: at the latest now.
        let charged = Instant::now();
        for work in self.book.works().iter_mut() {
            work.charged = Some(charged);
        }
        open
    }

    async fn work(&self) -> Option<Admission> {
        let number = self.book.works().len();
        let request =
            Request::rpc("/faults").repo(self.book.repo(number)).user(&self.book.caller).price(cpu(PRICE));
        let asked = Instant::now();
        let decision = self.client.admit(&request).await;
        let answered = Instant::now();
        let Decision::Allow(admission) = decision else { panic!("{decision:?}") };
        let (bytes, is_long) = (number as u64 + 1, number.is_multiple_of(LONG));
        admission.meter().sent(bytes);
        let reserved = admission.checked();
        let released = if reserved && !is_long { PRICE } else { 0 };
        self.book.works().push(Work { asked, answered, reserved, bytes, released, charged: None });
        is_long.then_some(admission)
    }
}
