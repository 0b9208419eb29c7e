use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use quota_core::{Account, Adaptations, Cost, Leased, NodeReport, Progress, Renewal, Wanted, Word};
use tracing::Instrument as _;

use super::{
    Admitted, Board, Calibrated, Cause, Heard, Limited, Nodes, Posts, Report, Safety, Saying, Settlement,
    SlotCall, Snapshots, Store, StoreError, Words,
};
use crate::metrics::{Metrics, Operation};
use crate::shown::Shown;
use crate::trace;

/// An outage ends when the store has answered for so long without a failure: else one that fails now and then would
/// fill the log.
const CALM_MILLIS: u64 = 1000;

/// A store whose latency and errors are counted, and whose loss and return are logged, once each; so is that it refuses this server.
pub struct Measured {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    /// How accounts are named in the log.
    shown: Arc<Shown>,
    lost: AtomicBool,
    /// Within an outage, the store has refused this server.
    refused: AtomicBool,
    started: Instant,
    /// When the store last failed, in milliseconds after `started`.
    failed_at: AtomicU64,
    /// Calls that failed for an account's own sake.
    unserved: AtomicU64,
}

impl Measured {
    /// The same store, measured.
    pub fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>, shown: Arc<Shown>) -> Self {
        metrics.store_up.set(1);
        Self {
            store,
            metrics,
            shown,
            lost: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            started: Instant::now(),
            failed_at: AtomicU64::new(0),
            unserved: AtomicU64::new(0),
        }
    }

    async fn measure<T>(
        &self,
        operation: Operation,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let timer = self.metrics.store_latency(operation).start_timer();
        let span = trace::of_store(operation);
        let result = call.instrument(span.clone()).await;
        timer.observe_duration();
        if let Err(error) = &result {
            self.metrics.store_error(operation, error.cause());
            trace::failed(&span, error.cause().as_str());
        }
        self.log_change(result.as_ref().err());
        result
    }

    fn log_change(&self, error: Option<&StoreError>) {
        let now = self.started.elapsed().as_millis() as u64;
        match error {
            // What concerns one account alone says nothing of the store.
            Some(error) if matches!(error.cause(), Cause::Corrupt | Cause::Full) => {
                let count = self.unserved.fetch_add(1, Ordering::Relaxed) + 1;
                // Ever more seldom: the metric counts each.
                if count.is_power_of_two() {
                    let (cause, error) = (error.cause().as_str(), self.shown.error(error));
                    tracing::error!(cause, error, count, "the store cannot serve an account or a node");
                }
            }
            Some(error) => {
                self.failed_at.store(now, Ordering::Relaxed);
                let cause = error.cause();
                let is_refusal = cause == Cause::Denied && !self.refused.swap(true, Ordering::Relaxed);
                if !self.lost.swap(true, Ordering::Relaxed) {
                    self.metrics.store_up.set(0);
                    tracing::warn!(cause = cause.as_str(), %error, "the store is lost: the fail policy answers");
                } else if is_refusal {
                    // As a rule a connection breaks, or is late, before the next is refused; and this is what somebody has to mend.
                    tracing::warn!(cause = cause.as_str(), %error, "the store that is lost refuses this server");
                }
            }
            None => {
                let calm = now.saturating_sub(self.failed_at.load(Ordering::Relaxed)) >= CALM_MILLIS;
                if self.lost.load(Ordering::Relaxed) && calm && self.lost.swap(false, Ordering::Relaxed) {
                    self.refused.store(false, Ordering::Relaxed);
                    self.metrics.store_up.set(1);
                    tracing::info!("the store answers again");
                }
            }
        }
    }
}

#[async_trait]
impl Store for Measured {
    async fn admit(&self, accounts: &[Limited], price: Cost) -> Result<Admitted, StoreError> {
        let admitted = self.measure(Operation::Admit, self.store.admit(accounts, price)).await?;
        self.metrics.windows_rebased.inc_by(admitted.snapshots.rebased.into());
        Ok(admitted)
    }

    async fn settle(&self, report: &Report) -> Result<Settlement, StoreError> {
        let settlement = self.measure(Operation::Settle, self.store.settle(report)).await?;
        self.metrics.windows_rebased.inc_by(settlement.rebased.into());
        self.metrics.excess_releases.inc_by(settlement.excess_releases.into());
        Ok(settlement)
    }

    async fn usage(&self, accounts: &[Account]) -> Result<Snapshots, StoreError> {
        let snapshots = self.measure(Operation::Usage, self.store.usage(accounts)).await?;
        self.metrics.windows_rebased.inc_by(snapshots.rebased.into());
        Ok(snapshots)
    }

    async fn calibrate(
        &self,
        node: &str,
        report: &NodeReport,
        adaptations: &Adaptations,
    ) -> Result<Calibrated, StoreError> {
        let call = self.store.calibrate(node, report, adaptations);
        let calibrated = self.measure(Operation::Calibrate, call).await?;
        self.metrics.windows_rebased.inc_by(calibrated.rebased.into());
        if calibrated.repaired {
            self.metrics.store_error(Operation::Calibrate, Cause::Corrupt);
        }
        Ok(calibrated)
    }

    async fn nodes(&self) -> Result<Nodes, StoreError> {
        let nodes = self.measure(Operation::Nodes, self.store.nodes()).await?;
        for _ in 0..nodes.unreadable {
            self.metrics.store_error(Operation::Nodes, Cause::Corrupt);
        }
        Ok(nodes)
    }

    async fn post(&self, board: Board, part: u64, content: &[u8]) -> Result<(), StoreError> {
        self.measure(Operation::Post, self.store.post(board, part, content)).await
    }

    async fn posts(&self, board: Board, within: Duration) -> Result<Posts, StoreError> {
        self.measure(Operation::Posts, self.store.posts(board, within)).await
    }

    async fn words(&self, known: u64) -> Result<Words, StoreError> {
        let words = self.measure(Operation::Words, self.store.words(known)).await?;
        for _ in 0..words.unreadable {
            self.metrics.store_error(Operation::Words, Cause::Corrupt);
        }
        Ok(words)
    }

    async fn say(&self, saying: Saying<'_>) -> Result<Heard, StoreError> {
        self.measure(Operation::Say, self.store.say(saying)).await
    }

    async fn restore(&self, words: &[(Box<str>, Word)]) -> Result<u32, StoreError> {
        self.measure(Operation::Restore, self.store.restore(words)).await
    }

    async fn lease_slots(&self, call: SlotCall<'_>, wanted: &Wanted) -> Result<Leased, StoreError> {
        self.measure(Operation::Acquire, self.store.lease_slots(call, wanted)).await
    }

    async fn keep_slots(
        &self,
        call: SlotCall<'_>,
        renewal: &Renewal,
        progress: Progress,
    ) -> Result<Leased, StoreError> {
        self.measure(Operation::Renew, self.store.keep_slots(call, renewal, progress)).await
    }

    async fn safety(&self) -> Result<Safety, StoreError> {
        self.measure(Operation::Safety, self.store.safety()).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.measure(Operation::Probe, self.store.probe()).await
    }
}
