//! The background task of a client: once an interval it collects what was spent, and reports it; beside that, it tells the
//! pressure, and guards the machine.

use std::sync::Arc;
use std::time::Duration;

use quota_proto::v1;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior};
use tonic::{Code, Status};

use crate::concurrency::calibrator::Calibrator;
use crate::outage::Outage;
use crate::pending::MAX_AGE;
use crate::pool::{NoAnswer, Service};
use crate::shared::Shared;
use crate::status::{is_partly_stored, is_transient, refused_charges};
use crate::{Stats, backoff, guard, pressure, session};

/// How long the last reports are tried for, after the last clone of the client is dropped.
const LAST_REPORTS: Duration = Duration::from_secs(5);

/// A source is at most 64 bytes: the node's name or its beginning, a slash, and 16 digits.
const MAX_NODE_IN_SOURCE: usize = 64 - 1 - 16;

/// Runs until the client has `ended`.
pub(crate) async fn run(shared: Arc<Shared>, calibrator: Calibrator, ended: oneshot::Receiver<()>) {
    tokio::select! {
        () = Reporter::new(&shared).deliver() => {}
        () = pressure::run(&shared) => {}
        () = session::run(&shared) => {}
        () = guard::run(&shared, calibrator) => {}
        () = collect(&shared, ended) => {}
    }
}

async fn collect(shared: &Shared, mut ended: oneshot::Receiver<()>) {
    let interval = shared.settings.report_interval;
    let mut ticks = tokio::time::interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                shared.pool.credential.reread();
                shared.collect(interval).await;
            }
            _ = &mut ended => break,
        }
    }
    shared.collect(interval).await;
    // What is not reported by then is lost with the process, as a rule.
    let _ = tokio::time::timeout(LAST_REPORTS, shared.drained()).await;
}

/// Sends one report after the other. Each is frozen: sent again as it was until it is acknowledged or given up, so
/// that it counts once even where only the acknowledgement is lost.
struct Reporter<'a> {
    shared: &'a Shared,
    source: String,
    sequence: u64,
    outage: Outage,
    losses: Outage,
}

/// What became of a report.
enum End {
    Acknowledged(v1::ReportResponse),
    /// All accounts have it, but some that cannot take it at the moment.
    PartlyStored,
    /// Of so many charges.
    Refused(Status, u64),
    TooOld(u64),
}

impl<'a> Reporter<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            source: source(&shared.settings.node),
            sequence: 0,
            outage: Outage::default(),
            losses: Outage::default(),
        }
    }

    async fn deliver(mut self) {
        loop {
            self.shared.collected.notified().await;
            while let Some(report) = self.freeze() {
                let end = self.send(report).await;
                self.shared.pending.lock().landed();
                self.note(end);
                self.shared.landed.notify_waiters();
            }
            self.shared.landed.notify_waiters();
        }
    }

    /// The next report, if there is anything to report.
    fn freeze(&mut self) -> Option<v1::ReportRequest> {
        let charges = self.shared.pending.lock().freeze(Instant::now());
        if charges.is_empty() {
            return None;
        }
        self.sequence += 1;
        Some(v1::ReportRequest {
            source: self.source.clone(),
            sequence: self.sequence,
            held: None,
            node: self.shared.settings.node.clone(),
            charges,
        })
    }

    /// Sends until it is acknowledged or given up. A charge that the service refuses is left out, and the rest is a new
    /// report: nothing of one that is refused the first time is applied.
    async fn send(&mut self, mut report: v1::ReportRequest) -> End {
        let frozen = Instant::now();
        let (mut sent, mut failures) = (false, 0);
        loop {
            let held = frozen.elapsed();
            if held >= MAX_AGE {
                return End::TooOld(report.charges.len() as u64);
            }
            report.held = prost_types::Duration::try_from(held).ok();
            let deadline = Instant::now() + self.shared.settings.report_deadline;
            let answer = self.ask(&report, deadline).await;
            let is_sent = !matches!(answer, Err(NoAnswer::AllAside));
            let is_resent = sent && is_sent;
            if is_resent {
                self.shared.count(|stats| stats.reports_resent += 1);
            }
            sent |= is_sent;
            match answer {
                Ok(response) => return End::Acknowledged(response),
                Err(NoAnswer::Status(status)) if is_partly_stored(&status) => return End::PartlyStored,
                // A token may be replaced on the server first, and on this fileserver a moment later.
                Err(NoAnswer::Status(status))
                    if !is_transient(&status) && status.code() != Code::Unauthenticated =>
                {
                    // An answer was lost, so all of it may be stored: under a new sequence it would count twice.
                    if is_resent {
                        return End::Refused(status, report.charges.len() as u64);
                    }
                    let left_out = leave_out_refused(&mut report.charges, &status);
                    if left_out == 0 || report.charges.is_empty() {
                        return End::Refused(status, left_out + report.charges.len() as u64);
                    }
                    self.lost(left_out, &message(&status));
                    self.sequence += 1;
                    report.sequence = self.sequence;
                    sent = false;
                }
                Err(error) => {
                    if self.outage.failed(Instant::now()) {
                        // Perhaps nobody asks at the moment, and work that was admitted goes on.
                        self.shared.local.lock().unchecked();
                        tracing::info!(%error, "the quota service takes no report: it is sent again");
                    }
                    failures += 1;
                    let wait = backoff::wait(failures, fastrand::f64());
                    let wait = wait.min(MAX_AGE.saturating_sub(frozen.elapsed()));
                    // Whichever comes first.
                    let _ = tokio::time::timeout(wait, self.shared.pool.recovered()).await;
                }
            }
        }
    }

    /// Sends it once: by the session, if one is open.
    async fn ask(
        &self,
        report: &v1::ReportRequest,
        deadline: Instant,
    ) -> Result<v1::ReportResponse, NoAnswer> {
        if let Some(answer) = self.shared.line.report(report, deadline).await {
            return answer;
        }
        let call = |mut client: Service, report| async move { client.report(report).await };
        self.shared.pool.ask(|| report.clone(), deadline, call).await
    }

    fn note(&self, end: End) {
        match end {
            End::Acknowledged(response) => {
                self.shared.count(|stats: &mut Stats| {
                    stats.reports_sent += 1;
                    stats.charges_too_old += u64::from(response.dropped_old);
                });
                self.worked();
            }
            End::PartlyStored => {
                self.shared.count(|stats| stats.reports_partly_stored += 1);
                self.worked();
            }
            End::Refused(status, charges) => self.lost(charges, &message(&status)),
            End::TooOld(charges) => self.lost(charges, "a whole window has passed"),
        }
    }

    fn worked(&self) {
        let now = Instant::now();
        if let Some(over) = self.outage.worked(now).max(self.losses.worked(now)) {
            tracing::info!(lasted = ?over.lasted, "the quota service takes reports again");
        }
    }

    fn lost(&self, charges: u64, reason: &str) {
        self.shared.count(|stats| stats.charges_lost += charges);
        if self.losses.failed(Instant::now()) {
            tracing::warn!(
                reason,
                charges,
                "charges are lost to the quota service; further ones are only counted"
            );
        }
    }
}

/// Leaves out the charges that an error refuses. Returns how many: none where it names none.
fn leave_out_refused(charges: &mut Vec<v1::Charge>, status: &Status) -> u64 {
    if status.code() != Code::InvalidArgument {
        return 0;
    }
    let refused = refused_charges(status);
    let before = charges.len();
    let mut index = 0..;
    charges.retain(|_| index.next().is_none_or(|index| !refused.contains(&index)));
    (before - charges.len()) as u64
}

fn message(status: &Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}

/// A name that is new at each start of the process.
fn source(node: &str) -> String {
    let node = &node[..node.floor_char_boundary(MAX_NODE_IN_SOURCE)];
    format!("{node}/{:016x}", fastrand::u64(..))
}

#[cfg(test)]
mod tests {
    use quota_core::Source;

    #[test]
    fn a_source_is_new_each_time_and_short_enough() {
        for node in ["", "gitaly-01", &"ü".repeat(100)] {
            let source = super::source(node);
            assert!(source.len() <= Source::MAX_BYTES, "{source}");
            assert_ne!(source, super::source(node));
        }
    }
}
