//! What operators see, through the facade of the crate [`metrics`]: the fileserver installs the recorder, and gives the
//! figures to whom it likes. Without one, all of this costs next to nothing. Labels are of closed sets: RPCs that the
//! settings name, signals, reasons, outcomes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

use crate::classes::ClassFigures;
use crate::concurrency::calibrator::LATENCY;
use crate::concurrency::figures::Figures;
use crate::concurrency::{Limits, Reason};
use crate::pressure::{Sample, Signal};
use crate::{NoSlotReason, Stats};

/// The figures of one client.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// By RPC: of unauthenticated requests where they have a set of their own, and of the others.
    sets: HashMap<String, [Option<SetMetrics>; 2]>,
}

struct SetMetrics {
    in_progress: Gauge,
    queued: Gauge,
    limit: Gauge,
    acquire: Histogram,
    dropped: [Counter; Reason::ALL.len()],
}

impl Metrics {
    /// Of a client with these limits. A recorder that is installed later does not get all of it.
    pub(crate) fn new(limits: &Limits) -> Self {
        describe();
        let mut sets: HashMap<String, [Option<SetMetrics>; 2]> = HashMap::new();
        for (rpc, authenticated, _) in limits.figures() {
            let set = SetMetrics::new(rpc, authenticated);
            sets.entry(rpc.to_owned()).or_default()[usize::from(authenticated)] = Some(set);
        }
        Self { sets }
    }

    /// A permit was waited for.
    pub(crate) fn acquired(&self, rpc: &str, authenticated: bool, waited: Duration) {
        if let Some([unauthenticated, others]) = self.sets.get(rpc) {
            let set = unauthenticated.as_ref().filter(|_| !authenticated).or(others.as_ref());
            if let Some(set) = set {
                set.acquire.record(waited.as_secs_f64());
            }
        }
    }

    /// Shows what is so now. To be called each second.
    pub(crate) fn show(&self, limits: &Limits, sample: &Sample, stats: &Stats, report_lag: Duration) {
        for (rpc, authenticated, figures) in limits.figures() {
            let sets = self.sets.get(rpc);
            if let Some(set) = sets.and_then(|sets| sets[usize::from(authenticated)].as_ref()) {
                set.show(&figures);
            }
        }
        // From 0 on, or the first event of a signal would show in no rate.
        let events = limits.backoff_events();
        for signal in Signal::ALL.map(Signal::as_str).into_iter().chain([LATENCY]) {
            let count = events.get(signal).copied().unwrap_or_default();
            counter!("quota_client_backoff_events_total", "signal" => signal).absolute(count);
        }
        for signal in Signal::ALL {
            let is_there = sample.reading(signal).value.is_some();
            gauge!("quota_client_signal_available", "signal" => signal.as_str())
                .set(f64::from(u8::from(is_there)));
        }
        for (outcome, count) in [
            ("allowed", stats.allowed),
            ("allowed_by_share", stats.allowed_by_share),
            ("allowed_locally", stats.allowed_locally),
            ("allowed_unchecked", stats.allowed_unchecked - stats.allowed_locally),
            ("denied", stats.denied),
            ("denied_locally", stats.denied_locally),
            ("denied_remembered", stats.denied_remembered),
            ("refused_unavailable", stats.refused_unavailable),
            ("skipped", stats.skipped),
        ] {
            counter!("quota_client_checks_total", "outcome" => outcome).absolute(count);
        }
        counter!("quota_client_shed_total").absolute(stats.shed);
        counter!("quota_client_charges_lost_total").absolute(stats.charges_lost);
        counter!("quota_client_cost_clamped_total").absolute(stats.cost_clamped);
        gauge!("quota_client_unsent_entries").set(stats.charges_pending as f64);
        gauge!("quota_client_report_lag_seconds").set(report_lag.as_secs_f64());
    }
}

/// Shows what is held of each class with a cap, and what became of its requests.
pub(crate) fn show_classes(classes: HashMap<Arc<str>, ClassFigures>) {
    for (class, figures) in classes {
        let label = || [("class", class.to_string())];
        gauge!("quota_client_class_in_progress", &label()).set(figures.in_progress as f64);
        gauge!("quota_client_class_queued", &label()).set(figures.queued as f64);
        gauge!("quota_client_class_slots", &label()).set(f64::from(figures.leased));
        for waited in figures.waited {
            histogram!("quota_client_class_wait_seconds", &label()).record(waited.as_secs_f64());
        }
        for took in figures.took {
            histogram!("quota_client_class_seconds", &label()).record(took.as_secs_f64());
        }
        for (reason, count) in NoSlotReason::ALL.iter().zip(figures.refused) {
            let [class] = label();
            let reason = ("reason", reason.as_str().to_owned());
            counter!("quota_client_class_refused_total", &[class, reason]).absolute(count);
        }
    }
}

/// Shows how many accounts are cut on this fileserver, and how many cgroups of requests yield the CPU for it.
pub(crate) fn show_cuts(accounts: usize, yielding: usize) {
    gauge!("quota_client_accounts_cut").set(accounts as f64);
    gauge!("quota_client_cgroups_yielding").set(yielding as f64);
}

impl SetMetrics {
    fn new(rpc: &str, authenticated: bool) -> Self {
        let labels = || [("rpc", rpc.to_owned()), ("authenticated", authenticated.to_string())];
        Self {
            in_progress: gauge!("quota_client_requests_in_progress", &labels()),
            queued: gauge!("quota_client_requests_queued", &labels()),
            limit: gauge!("quota_client_concurrency_limit", &labels()),
            acquire: histogram!("quota_client_acquire_seconds", &labels()),
            dropped: Reason::ALL.map(|reason| {
                let [rpc, authenticated] = labels();
                let reason = ("reason", reason.as_str().to_owned());
                counter!("quota_client_requests_dropped_total", &[rpc, authenticated, reason])
            }),
        }
    }

    fn show(&self, figures: &Figures) {
        self.in_progress.set(figures.in_flight as f64);
        self.queued.set(figures.queued as f64);
        self.limit.set(figures.limit as f64);
        for (counter, count) in self.dropped.iter().zip(figures.refused) {
            counter.absolute(count);
        }
    }
}

impl std::fmt::Debug for SetMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetMetrics").finish_non_exhaustive()
    }
}

fn describe() {
    for (name, help) in [
        ("quota_client_requests_in_progress", "Requests that hold a permit, of all keys together."),
        ("quota_client_requests_queued", "Requests that wait for a permit, of all keys together."),
        ("quota_client_concurrency_limit", "How many requests of one repository or address may run at once."),
        (
            "quota_client_signal_available",
            "Whether a signal of pressure can be read: 0 is not healthy, but unknown.",
        ),
        ("quota_client_class_in_progress", "Requests of a class with a cap that are in progress here."),
        ("quota_client_class_queued", "Requests of a class that wait here for a slot."),
        ("quota_client_class_slots", "Slots of a class that are leased to this fileserver."),
        ("quota_client_unsent_entries", "Charges that wait to be reported, or are on their way."),
        (
            "quota_client_accounts_cut",
            "Accounts with limits of their own on this fileserver, as the service last told.",
        ),
        ("quota_client_cgroups_yielding", "Cgroups of requests with a tenth of the CPU weight."),
    ] {
        describe_gauge!(name, help);
    }
    for (name, help) in [
        ("quota_client_requests_dropped_total", "Requests that got no permit, and were not started."),
        ("quota_client_backoff_events_total", "Intervals of calibration in which a signal was an event."),
        ("quota_client_checks_total", "Requests that were asked about, by what became of them."),
        ("quota_client_class_refused_total", "Requests of a class that had no slot, or ran for too long."),
        ("quota_client_shed_total", "Requests in flight that were ended on purpose."),
        ("quota_client_charges_lost_total", "Charges that were given up."),
        ("quota_client_cost_clamped_total", "Times that a counter told more CPU time than there was."),
    ] {
        describe_counter!(name, help);
    }
    describe_gauge!(
        "quota_client_report_lag_seconds",
        Unit::Seconds,
        "Since when charges have been waiting to be acknowledged."
    );
    for (name, help) in [
        ("quota_client_acquire_seconds", "How long a permit was waited for."),
        (
            "quota_client_class_wait_seconds",
            "How long requests of a class that ran had waited for their slot.",
        ),
        ("quota_client_class_seconds", "How long requests of a class held their slot."),
    ] {
        describe_histogram!(name, Unit::Seconds, help);
    }
}
