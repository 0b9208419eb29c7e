use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quota_client::Admission;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::Scale;
use super::api::ApiCaller;
use super::book::{Book, Books};
use super::client::ClientCaller;
use crate::http::Http;
use crate::https::Tunnel;
use crate::server::ServerProcess;
use crate::wait::{PATIENCE, until};

/// How long a caller works, and how fast.
#[derive(Debug)]
pub(super) struct Shift {
    pace: Interval,
    end: watch::Receiver<bool>,
}

impl Shift {
    /// Waits for the next piece of work; false when the shift has ended.
    pub(super) async fn goes_on(&mut self) -> bool {
        self.pace.tick().await;
        !*self.end.borrow()
    }
}

/// Where callers reach a server.
pub(super) struct Way {
    pub(super) http: Http,
    /// As the client crate is told.
    pub(super) endpoint: Endpoint,
    /// How those who speak plain HTTP reach one that does not.
    _tunnel: Option<Tunnel>,
}

/// Where gRPC is answered, and which authority vouches for it, if any.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) url: String,
    pub(super) ca_file: Option<PathBuf>,
}

impl Way {
    /// Straight to it.
    pub(super) fn to(server: &ServerProcess) -> Self {
        Self::plain(server.http.clone(), server.grpc_address())
    }

    pub(super) fn plain(http: Http, grpc: SocketAddr) -> Self {
        let endpoint = Endpoint { url: format!("http://{grpc}"), ca_file: None };
        Self { http, endpoint, _tunnel: None }
    }

    /// To one that speaks TLS, with a certificate of this authority: over HTTP by a new connection for each request.
    pub(super) async fn secured(server: &ServerProcess, ca_file: &Path) -> Self {
        let tunnel = Tunnel::to(server.http.address(), ca_file).await;
        let url = format!("https://localhost:{}", server.grpc_address().port());
        Self {
            http: Http::connecting_anew(tunnel.address()),
            endpoint: Endpoint { url, ca_file: Some(ca_file.to_owned()) },
            _tunnel: Some(tunnel),
        }
    }
}

/// The callers, at work.
pub(super) struct Load {
    callers: JoinSet<Vec<Admission>>,
    books: Vec<Book>,
    pace: Duration,
    end: watch::Sender<bool>,
}

impl Load {
    /// Callers of servers; every other one prefers the second.
    pub(super) fn on(servers: &[Way], scale: &Scale) -> Self {
        let mut load = Self {
            callers: JoinSet::new(),
            books: Vec::new(),
            pace: scale.pace,
            end: watch::Sender::new(false),
        };
        let count = scale.api_callers + scale.client_callers;
        for number in 0..count {
            // One after the other, rather than all at once.
            let first = Instant::now() + scale.pace * number as u32 / count as u32;
            let mut pace = interval_at(first, scale.pace);
            pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let shift = Shift { pace, end: load.end.subscribe() };
            let order = (0..servers.len()).map(|step| &servers[(number + step) % servers.len()]);
            if number < scale.api_callers {
                let book = load.keep(Book::of_api(number));
                let caller = ApiCaller::new(order.map(|server| server.http.clone()).collect(), book);
                load.callers.spawn(async move {
                    caller.run(shift).await;
                    Vec::new()
                });
            } else {
                let book = load.keep(Book::of_client(number));
                let servers: Vec<_> = order.map(|server| server.endpoint.clone()).collect();
                let caller = ClientCaller::new(&servers, scale.client_deadline, book);
                load.callers.spawn(caller.run(shift));
            }
        }
        load
    }

    fn keep(&mut self, book: Book) -> Book {
        self.books.push(book.clone());
        book
    }

    /// Until every caller has had so many more answers.
    pub(super) async fn goes_on(&mut self, checks: usize) {
        let aims: Vec<usize> = self.books.iter().map(|book| book.works().len() + checks).collect();
        let deadline = PATIENCE + self.pace * checks as u32;
        self.until(deadline, "every caller has answers", |books| {
            books.iter().zip(&aims).all(|(book, aim)| book.works().len() >= *aim).then_some(())
        })
        .await;
    }

    /// For so long.
    pub(super) async fn lasts(&mut self, time: Duration) {
        let end = Instant::now() + time;
        self.until(time + PATIENCE, "time passes", |_| (Instant::now() >= end).then_some(())).await;
    }

    /// Until the store has decided on a check of every caller that was asked from now on. Returns when it had.
    pub(super) async fn is_decided(&mut self) -> Instant {
        let since = Instant::now();
        self.until(PATIENCE, "the store decides for every caller", |books| {
            let first = |book: &Book| {
                let works = book.works();
                let decided = works.iter().filter(|work| work.asked >= since && work.reserved);
                decided.map(|work| work.answered).next()
            };
            books.iter().map(first).collect::<Option<Vec<Instant>>>()?.into_iter().max()
        })
        .await
    }

    /// Ends the shift, and waits until all that was done is reported.
    pub(super) async fn end(mut self) -> Books {
        self.end.send_replace(true);
        let mut open = Vec::new();
        let ending = async {
            while let Some(ended) = self.callers.join_next().await {
                open.extend(ended.expect("a caller that ends well"));
            }
        };
        // The client crate's own patience, and that of the others.
        tokio::time::timeout(2 * PATIENCE, ending).await.expect("reports that are acknowledged");
        Books::new(self.books, open)
    }

    /// A caller that has ended has panicked.
    async fn until<T>(
        &mut self,
        deadline: Duration,
        what: &str,
        condition: impl Fn(&[Book]) -> Option<T>,
    ) -> T {
        until(deadline, what, async || {
            if let Some(ended) = self.callers.try_join_next() {
                panic!("a caller ended: {ended:?}");
            }
            condition(&self.books)
        })
        .await
    }
}
