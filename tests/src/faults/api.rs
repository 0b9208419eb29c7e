//! A caller as docs/protocol.md describes it, with nothing of the client crate.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::book::Book;
use super::load::Shift;
use super::work::{PRICE, Work};
use crate::http::{Answer, Http};

/// From one report to the next.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// From a report that was not acknowledged to its resend.
const PAUSE: Duration = Duration::from_millis(50);

/// A request is given up after this long. Far above every deadline, so that a server that keeps none shows.
const GIVE_UP: Duration = Duration::from_secs(3);

/// The most charges in a report.
const MAX_BATCH: usize = 1024;

/// As many charges wait to be reported at most.
const MAX_PENDING: usize = 10 * MAX_BATCH;

/// CPU microseconds that each charge gives back, so that a rest of its reservation goes on to count.
const RELEASED: u64 = 4_000;

/// A charge to be reported: the number of its work, and what the allow carried.
type Finished = (usize, Option<Value>);

pub(super) struct ApiCaller {
    servers: Vec<Http>,
    /// The one in use.
    at: AtomicUsize,
    book: Book,
}

impl ApiCaller {
    /// One that prefers the first of the servers.
    pub(super) fn new(servers: Vec<Http>, book: Book) -> Self {
        Self { servers, at: AtomicUsize::new(0), book }
    }

    /// Works until the shift ends, and then until the last report is acknowledged.
    pub(super) async fn run(self, mut shift: Shift) {
        let (finished, unreported) = mpsc::channel(MAX_PENDING);
        let asking = async {
            while shift.goes_on().await {
                let charge = self.ask().await;
                finished.try_send(charge).expect("room for a charge");
            }
            drop(finished);
        };
        tokio::join!(asking, self.report(unreported));
    }

    /// Asks once. Never again, whatever becomes of the answer.
    async fn ask(&self) -> Finished {
        let number = self.book.works().len();
        let accounts = self.accounts(number);
        let check = json!({ "accounts": accounts, "price": { "cpu": seconds(PRICE) } });
        let asked = Instant::now();
        let answer = self.post("/v1/check", &check).await;
        let answered = Instant::now();
        let reservation = answer.and_then(|answer| {
            assert_eq!(answer.status, 200, "a check under the policy `open`: {}", answer.text());
            let body = answer.json();
            (body["checked"] == true).then(|| body["reservation"].clone())
        });
        self.book.works().push(Work {
            asked,
            answered,
            reserved: reservation.is_some(),
            bytes: number as u64 + 1,
            released: reservation.as_ref().map_or(0, |_| RELEASED),
            charged: None,
        });
        (number, reservation)
    }

    async fn report(&self, mut unreported: mpsc::Receiver<Finished>) {
        let (mut batch, mut sequence) = (Vec::new(), 0);
        while unreported.recv_many(&mut batch, MAX_BATCH).await > 0 {
            sequence += 1;
            self.deliver(sequence, &batch).await;
            batch.clear();
            sleep(REPORT_INTERVAL).await;
        }
    }

    /// Sends a report, unchanged but for how long it is held, until it is acknowledged.
    async fn deliver(&self, sequence: u64, batch: &[Finished]) {
        let frozen = Instant::now();
        let charges: Vec<Value> = batch.iter().map(|charge| self.charge(charge, frozen)).collect();
        let mut report = json!({ "source": self.book.caller, "sequence": sequence, "charges": charges });
        let mut is_resent = false;
        loop {
            report["held_seconds"] = frozen.elapsed().as_secs_f64().into();
            if let Some(answer) = self.post("/v1/report", &report).await
                && answer.status != 503
            {
                let body = answer.json();
                let counted = json!({ "applied": batch.len(), "dropped_old": 0, "duplicate": false });
                let again = json!({ "applied": 0, "dropped_old": 0, "duplicate": true });
                let is_counted = body == counted || is_resent && body == again;
                assert!(answer.status == 200 && is_counted, "{}: {body}", answer.status);
                break;
            }
            is_resent = true;
            sleep(PAUSE).await;
        }
        let charged = Instant::now();
        let mut works = self.book.works();
        for (number, _) in batch {
            works[*number].charged = Some(charged);
        }
    }

    fn charge(&self, (number, reservation): &Finished, frozen: Instant) -> Value {
        let (bytes, ended) = {
            let work = &self.book.works()[*number];
            (work.bytes, work.answered)
        };
        let mut charge = json!({
            "accounts": self.accounts(*number),
            "cost": { "network": bytes },
            "age_seconds": frozen.duration_since(ended).as_secs_f64(),
        });
        if let Some(reservation) = reservation {
            charge["reservation"] = reservation.clone();
            charge["release"] = json!({ "cpu": seconds(RELEASED) });
        }
        charge
    }

    fn accounts(&self, number: usize) -> Value {
        json!({ "repo": self.book.repo(number), "user": self.book.caller })
    }

    /// Posts to the server in use. The next one is in use where it does not answer.
    async fn post(&self, path: &str, body: &Value) -> Option<Answer> {
        let at = self.at.load(Ordering::Relaxed);
        match timeout(GIVE_UP, self.servers[at].try_post(path, body)).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(_)) | Err(_) => {
                // Only one of two requests that fail at once moves on.
                let next = (at + 1) % self.servers.len();
                let _ = self.at.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
                None
            }
        }
    }
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
