use parking_lot::Mutex;

use crate::metrics::Metrics;
use crate::store::{Danger, Risk, Safety, Store};

/// What is known of whether the store may lose what it holds. Told once at each change: in the log, by a metric, and in
/// what `/readyz` details.
#[derive(Default)]
pub(crate) struct StoreSafety(Mutex<Safety>);

impl StoreSafety {
    /// Looks. To be called at the start, and about once a minute.
    pub(crate) async fn look(&self, store: &dyn Store, metrics: &Metrics) {
        // That the store is lost is told elsewhere.
        if let Ok(safety) = store.safety().await {
            let before = std::mem::replace(&mut *self.0.lock(), safety);
            for risk in Risk::ALL {
                metrics.show_risk(risk, safety.of(risk));
                if before.of(risk) != safety.of(risk) {
                    tell(risk, safety.of(risk));
                }
            }
        }
    }

    /// What an operator must know, if anything.
    pub(crate) fn detail(&self) -> Option<String> {
        let safety = *self.0.lock();
        let risks = Risk::ALL.into_iter().filter(|risk| safety.of(*risk) == Danger::Yes);
        let risks: Vec<_> = risks.map(Risk::in_words).collect();
        (!risks.is_empty()).then(|| format!("what the store holds may be lost: {}", risks.join("; ")))
    }
}

fn tell(risk: Risk, danger: Danger) {
    let (reason, why) = (risk.as_str(), risk.in_words());
    match danger {
        Danger::Yes => tracing::warn!(reason, why, "the store may lose what it holds"),
        Danger::Unknown => {
            tracing::warn!(
                reason,
                "whether the store may lose what it holds is not known: INFO and CONFIG GET are not permitted"
            );
        }
        Danger::No => tracing::info!(reason, "the store does not lose what it holds any more"),
    }
}
