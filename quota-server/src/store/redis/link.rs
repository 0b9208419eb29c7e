use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection, SendError};
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, PushInfo, PushKind, RedisResult, ServerErrorKind, Value,
};
use tokio::time::Instant;

use super::call::Call;
use super::loads::Loads;

/// How often the scripts of a call are loaded: one may be forgotten again before the call arrives.
const MOST_LOADS: usize = 2;

/// A connection that answered so recently is used as it is.
const FRESH: Duration = Duration::from_secs(1);

/// A connection that many calls share: what is asked at the same time is sent, and answered, together.
pub(super) struct Link {
    connection: MultiplexedConnection,
    heard: Arc<Heard>,
    loads: Loads,
}

/// What is known of the other side.
struct Heard {
    made: Instant,
    /// When it last answered, in microseconds after `made`.
    answered_at: AtomicU64,
    answers: AtomicU64,
    /// Whether it has closed the connection. It is told at once, whether the connection is in use or not.
    closed: AtomicBool,
    /// Whether a call was given up, and nothing was answered between its beginning and its end.
    doubted: AtomicBool,
}

/// A call that waits for its answer.
struct Waiting<'a> {
    heard: &'a Heard,
    /// The answers before.
    answers: u64,
    answered: bool,
}

impl Link {
    pub(super) async fn new(client: &Client, config: &AsyncConnectionConfig) -> RedisResult<Self> {
        let heard = Arc::new(Heard {
            made: Instant::now(),
            answered_at: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            doubted: AtomicBool::new(false),
        });
        let config = config.clone().set_push_sender(Arc::clone(&heard));
        let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        heard.answered();
        Ok(Self { connection, heard, loads: Loads::default() })
    }

    /// Whether it may be used as it is.
    pub(super) fn is_fresh(&self) -> bool {
        let Heard { made, answered_at, doubted, .. } = &*self.heard;
        let answered_at = *made + Duration::from_micros(answered_at.load(Ordering::Relaxed));
        !self.is_closed() && !doubted.load(Ordering::Relaxed) && answered_at.elapsed() < FRESH
    }

    pub(super) fn is_closed(&self) -> bool {
        self.heard.closed.load(Ordering::Relaxed)
    }

    /// Asks whether the other side still answers.
    pub(super) async fn ping(&self) -> RedisResult<()> {
        self.answer(redis::cmd("PING").query_async(&mut self.connection.clone())).await
    }

    /// Runs calls in one round trip, as ones that a node has sent where they are `asking`; and again those whose script the
    /// server does not know, and has not run, once it is loaded.
    pub(super) async fn run(
        &self,
        calls: &[&Call<'_>],
        asking: bool,
    ) -> RedisResult<Vec<RedisResult<Value>>> {
        let mut loaded = self.loads.ended();
        let mut answers = self.send(calls, asking).await?;
        for _ in 0..MOST_LOADS {
            let unknown: Vec<usize> =
                (0..).zip(&answers).filter(|(_, answer)| is_unknown(answer)).map(|(at, _)| at).collect();
            if unknown.is_empty() {
                break;
            }
            let again: Vec<&Call<'_>> = unknown.iter().map(|&at| calls[at]).collect();
            let told = match self.load(&again, loaded).await {
                Ok(()) => {
                    loaded = self.loads.ended();
                    self.send(&again, asking).await?
                }
                Err(error) => vec![Err(error); again.len()],
            };
            for (at, answer) in unknown.into_iter().zip(told) {
                answers[at] = answer;
            }
        }
        Ok(answers)
    }

    /// Makes the server know the scripts of calls that were sent when so many loads had ended.
    async fn load(&self, calls: &[&Call<'_>], sent: u64) -> RedisResult<()> {
        for script in calls.iter().filter_map(|call| call.as_script()) {
            let loading = self.loads.of(script, sent, || {
                let (mut load, mut connection) = (redis::cmd("SCRIPT"), self.connection.clone());
                load.arg("LOAD").arg(script.text());
                async move { load.exec_async(&mut connection).await }
            });
            if let Some(loading) = loading {
                self.answer(loading).await?;
            }
        }
        Ok(())
    }

    async fn send(&self, calls: &[&Call<'_>], asking: bool) -> RedisResult<Vec<RedisResult<Value>>> {
        let mut sent = redis::Pipeline::with_capacity(calls.len());
        for call in calls {
            if asking {
                sent.cmd("ASKING");
            }
            sent.add_command(call.as_command().clone());
        }
        sent.ignore_errors();
        let mut connection = self.connection.clone();
        let told: Vec<RedisResult<Value>> = self.answer(sent.query_async(&mut connection)).await?;
        // Of ASKING and its call the second.
        Ok(if asking { told.into_iter().skip(1).step_by(2).collect() } else { told })
    }

    async fn answer<T>(&self, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        let answers = self.heard.answers.load(Ordering::Relaxed);
        let mut waiting = Waiting { heard: &self.heard, answers, answered: false };
        let answer = answer.await;
        waiting.answered = true;
        match &answer {
            Err(error) if error.is_unrecoverable_error() => self.heard.closed.store(true, Ordering::Relaxed),
            _ => self.heard.answered(),
        }
        answer
    }
}

fn is_unknown(answer: &RedisResult<Value>) -> bool {
    answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
}

impl Heard {
    fn answered(&self) {
        self.answered_at.store(self.made.elapsed().as_micros() as u64, Ordering::Relaxed);
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.doubted.store(false, Ordering::Relaxed);
    }
}

impl AsyncPushSender for Heard {
    fn send(&self, push: PushInfo) -> Result<(), SendError> {
        if push.kind == PushKind::Disconnection {
            self.closed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for Waiting<'_> {
    /// What is lost on the way is never told: what was given up may be the first sign.
    fn drop(&mut self) {
        if !self.answered && self.heard.answers.load(Ordering::Relaxed) == self.answers {
            self.heard.doubted.store(true, Ordering::Relaxed);
        }
    }
}
