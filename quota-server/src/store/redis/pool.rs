use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::{IntoConnectionInfo, RedisResult, Value};
use tokio::time::{Instant, timeout_at};

use super::call::Call;
use super::connector::Connector;
use super::error::classify;
use super::line::{Line, MOST_CALLS};
use super::sentinel::Sentinel;
use crate::store::StoreError;

/// What a call is for. What takes long keeps nobody waiting who asks for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// What a request waits for.
    Decisions,
    /// What was spent.
    Reports,
    /// All else, some of which is large.
    Aside,
}

/// What a call is for, and when it must have ended.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    lane: Lane,
    began: Instant,
    end: Instant,
}

/// How connections are had.
#[derive(Clone, Copy)]
pub(super) struct Sizing {
    /// Connections of decisions.
    pub(super) decisions: usize,
    /// How long one that is in doubt may take to answer.
    pub(super) patience: Duration,
}

/// The connections to one server: few, each shared by all calls of a kind, made when they are needed.
#[derive(Clone)]
pub(super) struct Pool(Arc<Lines>);

struct Lines {
    decisions: Vec<Line>,
    next: AtomicUsize,
    reports: Line,
    aside: Line,
}

impl Terms {
    pub(super) fn new(lane: Lane, end: Instant) -> Self {
        Self { lane, began: Instant::now(), end }
    }

    /// What comes of a call that must have ended by then.
    pub(super) async fn within<T>(
        self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        timeout_at(self.end, call).await.unwrap_or_else(|_| Err(StoreError::Timeout(self.end - self.began)))
    }
}

impl Pool {
    /// To the server at an address, or to the one that Sentinel names.
    pub(super) fn to(
        address: impl IntoConnectionInfo,
        sentinel: Option<Sentinel>,
        sizing: Sizing,
    ) -> Result<Self, StoreError> {
        let connector =
            Arc::new(Connector::new(address, sentinel, MOST_CALLS).map_err(|error| classify(&error))?);
        let line = || Line::new(Arc::clone(&connector), sizing.patience);
        let decisions = (0..sizing.decisions).map(|_| line()).collect();
        Ok(Self(Arc::new(Lines { decisions, next: AtomicUsize::new(0), reports: line(), aside: line() })))
    }

    /// Runs one call, as one that a node has sent where it is `asking`. The outer error: there is no connection, or it broke.
    pub(super) async fn call(
        &self,
        terms: Terms,
        call: &Call<'_>,
        asking: bool,
    ) -> Result<RedisResult<Value>, StoreError> {
        let answers = self.line(terms.lane).run(terms.end, &[call], asking).await;
        let answer = answers.map_err(|error| classify(&error))?.pop();
        answer.ok_or_else(|| StoreError::Malformed("no answer".to_owned()))
    }

    /// Runs calls in one round trip; one that fails is no reason to know nothing of the others.
    pub(super) async fn calls(
        &self,
        terms: Terms,
        calls: &[&Call<'_>],
    ) -> Result<Vec<RedisResult<Value>>, StoreError> {
        self.line(terms.lane).run(terms.end, calls, false).await.map_err(|error| classify(&error))
    }

    fn line(&self, lane: Lane) -> &Line {
        let Lines { decisions, next, reports, aside } = &*self.0;
        match lane {
            Lane::Decisions => decisions
                .get(next.fetch_add(1, Ordering::Relaxed) % decisions.len().max(1))
                .unwrap_or(reports),
            Lane::Reports => reports,
            Lane::Aside => aside,
        }
    }
}
