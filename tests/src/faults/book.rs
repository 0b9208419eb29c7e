use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use quota_client::Admission;
use serde_json::Value;
use tokio::time::Instant;

use super::work::{PRICE, Used, Verdict, Work};
use crate::http::Http;
use crate::wait::{PATIENCE, until};

/// Accounts that are read at once.
const READS: usize = 8;

/// What one caller knows: its pieces of work, in the order in which it asked for them.
#[derive(Clone, Debug)]
pub(super) struct Book {
    pub(super) caller: String,
    is_client: bool,
    works: Arc<Mutex<Vec<Work>>>,
}

/// What all callers know, after the last was acknowledged what it reported.
#[derive(Debug)]
pub struct Books {
    books: Vec<Book>,
    /// Kept until the books are compared: their reservations still count.
    _open: Vec<Admission>,
}

/// What the bookkeeper found.
#[derive(Debug, Default)]
pub struct Balance {
    /// Pieces of work that were compared.
    pub works: usize,
    /// Reservations that count, and were not acknowledged.
    pub stray: usize,
    /// Accounts of work on which something that was acknowledged does not count, and when it was.
    pub lost: Vec<(String, Instant)>,
    /// Accounts of work on which something else counts, or something more than once.
    pub wrong: Vec<String>,
    /// Prices that count on one account of a check that was not decided, and not on its other.
    pub split: u64,
    /// Callers whose account is not the sum of its work for any other reason.
    pub torn: Vec<String>,
}

impl Book {
    pub(super) fn of_api(number: usize) -> Self {
        Self { caller: format!("api-{number}"), is_client: false, works: Arc::default() }
    }

    pub(super) fn of_client(number: usize) -> Self {
        Self { caller: format!("client-{number}"), is_client: true, works: Arc::default() }
    }

    pub(super) fn works(&self) -> MutexGuard<'_, Vec<Work>> {
        self.works.lock().expect("nobody panics with a book in hand")
    }

    /// The account of a piece of work.
    pub(super) fn repo(&self, number: usize) -> String {
        format!("{}-{number}", self.caller)
    }

    async fn compare(&self, http: &Http) -> Balance {
        let works = self.works().clone();
        let reads = stream::iter(0..works.len()).map(|number| used(http, "repo", self.repo(number)));
        let all: Vec<Used> = reads.buffered(READS).collect().await;
        let mut balance = Balance { works: works.len(), ..Balance::default() };
        for (number, (work, used)) in works.iter().zip(&all).enumerate() {
            match work.judge(*used) {
                Verdict::Kept { stray } => balance.stray += usize::from(stray),
                Verdict::Lost(acknowledged) => balance.lost.push((self.repo(number), acknowledged)),
                Verdict::Wrong => balance.wrong.push(format!("{}: {used:?} of {work:?}", self.repo(number))),
            }
        }
        let sum = all.iter().fold(Used::default(), |sum, used| Used {
            cpu: sum.cpu + used.cpu,
            bytes: sum.bytes + used.bytes,
        });
        let of_caller = used(http, "user", self.caller.clone()).await;
        let undecided = works.iter().filter(|work| !work.reserved).count() as u64;
        let apart = of_caller.cpu.abs_diff(sum.cpu);
        let is_split =
            of_caller.bytes == sum.bytes && apart.is_multiple_of(PRICE) && apart <= undecided * PRICE;
        if is_split {
            balance.split = apart / PRICE;
        } else {
            balance.torn.push(format!("{}: {of_caller:?}, and {sum:?} in sum", self.caller));
        }
        balance
    }
}

impl Books {
    pub(super) fn new(books: Vec<Book>, open: Vec<Admission>) -> Self {
        Self { books, _open: open }
    }

    /// How many checks were asked, and how many of them the store did not decide.
    pub(super) fn checks(&self) -> (usize, usize) {
        let all = self.books.iter().map(|book| book.works().len()).sum();
        let undecided = |book: &Book| book.works().iter().filter(|work| !work.reserved).count();
        (all, self.books.iter().map(undecided).sum())
    }

    /// The longest wait for the answer to a check, of the callers of one sort.
    pub(super) fn longest_wait(&self, is_client: bool) -> Duration {
        let books = self.books.iter().filter(|book| book.is_client == is_client);
        let waits = books.map(|book| book.works().iter().map(|work| work.answered - work.asked).max());
        waits.flatten().max().unwrap_or_default()
    }

    /// Compares them with what counts, as a server tells it.
    pub async fn compare(&self, http: &Http) -> Balance {
        let mut all = Balance::default();
        for book in &self.books {
            let balance = book.compare(http).await;
            all.works += balance.works;
            all.stray += balance.stray;
            all.lost.extend(balance.lost);
            all.wrong.extend(balance.wrong);
            all.split += balance.split;
            all.torn.extend(balance.torn);
        }
        all
    }
}

impl Balance {
    /// # Panics
    ///
    /// Panics if anything that was acknowledged is lost, or anything counts twice.
    pub fn assert_kept(&self) {
        assert_eq!(self.split, 0, "{self:#?}");
        self.assert_kept_but_split();
    }

    /// For a Cluster, where each account of a check has its own call.
    ///
    /// # Panics
    ///
    /// Panics if anything that was acknowledged is lost, or anything counts twice.
    pub fn assert_kept_but_split(&self) {
        assert!(self.lost.is_empty() && self.torn.is_empty(), "{self:#?}");
        self.assert_lost_since(Instant::now());
    }

    /// For a store that may lose what was acknowledged after a moment. The callers' accounts are not compared: a report
    /// on many accounts is written in pieces, of which the last may be lost.
    ///
    /// # Panics
    ///
    /// Panics if anything that was acknowledged before is lost, or anything counts twice.
    pub fn assert_lost_since(&self, moment: Instant) {
        assert!(self.works > 0, "nothing was compared");
        assert!(self.wrong.is_empty(), "{self:#?}");
        let early: Vec<_> = self.lost.iter().filter(|(_, acknowledged)| *acknowledged < moment).collect();
        assert!(early.is_empty(), "{early:#?}");
    }
}

async fn used(http: &Http, kind: &str, id: String) -> Used {
    let standing = until(PATIENCE, "a standing", async || {
        let answer = http.account(kind, &id).await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;
    let amount = |resource: &str| match &standing["resources"][resource]["used"] {
        Value::Number(amount) => amount.as_f64().expect("a number"),
        other => panic!("{kind} {id}: {other}"),
    };
    Used { cpu: (amount("cpu") * 1e6).round() as u64, bytes: amount("network") as u64 }
}
