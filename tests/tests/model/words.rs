//! The book of operators' words in Redis and that of `quota-core`, over the same random changes.

use std::time::Duration;

use fastrand::Rng;
use quota_core::{Book, Said, Word};
use quota_server::store::{RedisStore, Saying, Store};
use quota_tests::redis::RedisServer;
use quota_tests::stores::{Opening, StoreClock};
use redis::aio::MultiplexedConnection;

use super::seeds;

const OPERATIONS: u32 = 2_000;

struct Run {
    store: RedisStore,
    model: Book,
    /// What servers knew at some time, which may come back.
    copies: Vec<Book>,
    clock: StoreClock,
    connection: MultiplexedConnection,
    rng: Rng,
    /// Said, withdrawn, nothing to withdraw, restored, lost.
    seen: [u32; 5],
}

impl Run {
    fn name(&mut self) -> String {
        format!("user:{}", self.rng.u8(..6))
    }

    async fn step(&mut self, place: &str) {
        let now = self.clock.now();
        match self.rng.u8(..100) {
            0..30 => self.clock.advance(Duration::from_micros(self.rng.u64(..40_000_000))).await,
            30..33 => self.clock.step_back(Duration::from_secs(self.rng.u64(..100))).await,
            33..75 => {
                let name = self.name();
                let text = [self.rng.u8(..), self.rng.u8(..)];
                let text = (self.rng.u8(..3) > 0).then_some(&text[..]);
                let lasts = self.rng.bool().then(|| Duration::from_micros(self.rng.u64(1..60_000_000)));
                let lasts = lasts.filter(|_| text.is_some());
                let expected = self.model.say(now, &name, text, lasts, Book::MOST);
                let heard = self.store.say(Saying { name: &name, text, lasts }).await.unwrap();
                self.seen[match (&expected, text) {
                    (Said::Nothing, _) => 2,
                    (_, None) => 1,
                    _ => 0,
                }] += 1;
                assert_eq!((heard.now, heard.said), (now, expected), "{place}");
            }
            75..85 => self.copies.push(self.model.clone()),
            85..87 => {
                // As an eviction does, or a replica that had nothing.
                let lost = self.store_is_emptied().await;
                self.seen[4] += u32::from(lost > 0);
                self.model = Book::default();
            }
            _ => {
                let Some(copy) = self.copies.pop() else { return };
                let words = |(name, word): (&str, &Word)| (name.into(), word.clone());
                let lost: Vec<_> = copy.lost_by(&self.model, now).map(words).collect();
                let everything: Vec<_> = copy.iter().map(words).collect();
                let words = if self.rng.bool() { lost } else { everything };
                let expected = self.model.restore(now, words.iter().cloned(), Book::MOST);
                assert_eq!(self.store.restore(&words).await.unwrap(), expected, "{place}");
                self.seen[3] += expected;
            }
        }
        let words = self.store.words(0).await.unwrap();
        assert_eq!(words.book.unwrap_or_default(), self.model, "{place}");
    }

    async fn store_is_emptied(&mut self) -> usize {
        redis::cmd("DEL").arg("q1:overrides").query_async(&mut self.connection).await.unwrap()
    }
}

#[tokio::test]
async fn words_of_operators() {
    let server = RedisServer::start().await;
    for seed in seeds() {
        let mut run = Run {
            store: Opening { test_clock: true, ..Opening::default() }.open(&server.url()),
            model: Book::default(),
            copies: Vec::new(),
            clock: StoreClock::in_redis(&server).await,
            connection: server.client().await,
            rng: Rng::with_seed(seed),
            seen: [0; 5],
        };
        run.store_is_emptied().await;
        for number in 0..OPERATIONS {
            run.step(&format!("QUOTA_MODEL_SEED={seed}, words, operation {number}")).await;
        }
        println!("seed {seed}, words: {:?}", run.seen);
        assert!(run.seen.iter().all(|seen| *seen > 5), "the operations of seed {seed} prove little");
    }
}
