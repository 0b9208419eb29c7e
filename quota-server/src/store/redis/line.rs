use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use redis::{RedisError, RedisResult, Value};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::call::Call;
use super::connector::Connector;
use super::error::classify;
use super::link::Link;
use crate::store::Cause;

/// The most calls that wait for answers on one connection; further ones wait until one has ended.
pub(super) const MOST_CALLS: usize = 1024;

/// How much longer than the call that began it a connection may take to be made: for those who come after it.
const GRACE: Duration = Duration::from_secs(1);

/// From one connection's making to the next, at least, and by chance up to as much again: so a server that is away or in
/// trouble is not run into by all that asks for it, and not by all servers at the same moment. Who needs a connection
/// meanwhile waits for it, so that both together are well below the deadline of a decision.
const PAUSE: Duration = Duration::from_millis(10);

/// The way to a server: one connection that all share, made when it is needed, and another when it proves bad.
#[derive(Clone)]
pub(super) struct Line(Arc<Inner>);

struct Inner {
    connector: Arc<Connector>,
    /// How long a connection that is in doubt may take to answer.
    patience: Duration,
    room: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    link: Option<Arc<Link>>,
    making: Option<Making>,
    /// When the next may be made.
    next: Option<Instant>,
}

/// One connection in the making, which all wait for who need one.
type Making = Shared<BoxFuture<'static, RedisResult<Arc<Link>>>>;

impl Line {
    pub(super) fn new(connector: Arc<Connector>, patience: Duration) -> Self {
        let (room, state) = (Semaphore::new(MOST_CALLS), Mutex::default());
        Self(Arc::new(Inner { connector, patience, room, state }))
    }

    /// Runs calls in one round trip, as ones that a node has sent where they are `asking`. The outer error: there is no
    /// connection, or it broke.
    pub(super) async fn run(
        &self,
        end: Instant,
        calls: &[&Call<'_>],
        asking: bool,
    ) -> RedisResult<Vec<RedisResult<Value>>> {
        let _room = self.0.room.acquire().await.map_err(|_| broken("closed"))?;
        let link = self.link(end).await?;
        let answers = link.run(calls, asking).await;
        let mut errors = match &answers {
            Ok(answers) => answers.iter().filter_map(|answer| answer.as_ref().err()).collect(),
            Err(error) => vec![error],
        }
        .into_iter();
        if errors.any(proves_bad) {
            self.discard(&link);
        }
        answers
    }

    /// The connection, once it is known to be one.
    async fn link(&self, end: Instant) -> RedisResult<Arc<Link>> {
        let making = {
            let mut state = self.0.state.lock();
            if let Some(link) = state.link.as_ref().filter(|link| link.is_fresh()) {
                return Ok(Arc::clone(link));
            }
            let State { link, making, next } = &mut *state;
            making.get_or_insert_with(|| self.make(link.take(), *next, end)).clone()
        };
        making.await
    }

    /// By a task of its own, so that it goes on when who began it has given up.
    fn make(&self, link: Option<Arc<Link>>, begin: Option<Instant>, end: Instant) -> Making {
        let inner = Arc::clone(&self.0);
        let task = tokio::spawn(async move {
            let made = inner.proven_or_new(link, begin, end + GRACE).await;
            let mut state = inner.state.lock();
            let next = Some(Instant::now() + PAUSE.mul_f64(1.0 + fastrand::f64()));
            *state = State { link: made.as_ref().ok().cloned(), making: None, next };
            made
        });
        task.map(|made| made.unwrap_or_else(|_| Err(broken("the connection's task ended")))).boxed().shared()
    }

    /// The next call makes a new connection. Those that wait for an answer of this one have it for as long as they do.
    fn discard(&self, link: &Arc<Link>) {
        let mut state = self.0.state.lock();
        if state.link.as_ref().is_some_and(|current| Arc::ptr_eq(current, link)) {
            state.link = None;
        }
    }
}

impl Inner {
    async fn proven_or_new(
        &self,
        link: Option<Arc<Link>>,
        begin: Option<Instant>,
        end: Instant,
    ) -> RedisResult<Arc<Link>> {
        if let Some(link) = link.filter(|link| !link.is_closed())
            && matches!(timeout(self.patience, link.ping()).await, Ok(Ok(())))
        {
            return Ok(link);
        }
        if let Some(begin) = begin {
            sleep_until(begin).await;
        }
        let made = timeout_at(end, self.connector.connect()).await;
        made.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into())).map(Arc::new)
    }
}

/// Whether a call that ended so shows that its connection is of no use any more. One to a node that has handed a slot over is.
fn proves_bad(error: &RedisError) -> bool {
    let cause = classify(error).cause();
    error.redirect_node().is_none()
        && matches!(cause, Cause::Connection | Cause::Readonly | Cause::Busy | Cause::Denied)
}

fn broken(why: &'static str) -> RedisError {
    io::Error::new(io::ErrorKind::BrokenPipe, why).into()
}
