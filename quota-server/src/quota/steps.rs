//! What is said of the steps that limits take: in the log, and in metrics.

use quota_core::{Calibration, Controller, Kind, Limit, NodeState, PerKind, PerResource, Resource};

use super::Quota;
use super::words::{cut_in_words, in_words};

/// The most accounts that are named in the log for one step, of those that were cut and of those whose limits were
/// forgotten.
const MOST_NAMED: usize = 20;

impl Quota {
    /// Counts the last step of each of these resources and says it in the log, once.
    pub(super) fn tell_steps(&self, node: &str, state: &NodeState, stepped: &PerResource<bool>) {
        let before = self.nodes.get(Some(node));
        for (resource, _) in stepped.iter().filter(|(_, stepped)| **stepped) {
            if let Some(controller) = &state.controllers[resource]
                && let Some(last) = &controller.last
                && self.nodes.is_news(node, resource, last.at)
            {
                let interval =
                    self.settings().policy.adaptations()[resource].map(|adaptation| adaptation.interval);
                self.metrics.nodes.calibrated(node, resource, last.reason, interval.unwrap_or_default());
                tell(node, resource, last, &controller.limits);
                let before = before.as_ref().and_then(|known| known.state().controllers[resource].as_ref());
                self.tell_cuts(node, resource, before, controller, last);
            }
        }
    }

    /// Says which accounts were cut in a step, and of which the limit was forgotten since what was known before.
    fn tell_cuts(
        &self,
        node: &str,
        resource: Resource,
        before: Option<&Controller>,
        after: &Controller,
        step: &Calibration,
    ) {
        let accounts = &after.cuts.accounts;
        let mut cut = accounts.iter().filter(|(_, cut)| cut.since == step.at);
        let known = before.into_iter().flat_map(|controller| &controller.cuts.accounts);
        let mut forgotten = known.filter(|(account, _)| !accounts.contains_key(*account));
        let window = self.window.length();
        for (account, cut) in cut.by_ref().take(MOST_NAMED) {
            let why = self.shown.sentence(&cut_in_words(account, resource, cut, node, window));
            let (kind, id) = (account.kind().as_str(), self.shown.id(account));
            tracing::info!(node, kind, id, resource = resource.as_str(), why, "account cut");
        }
        for (account, cut) in forgotten.by_ref().take(MOST_NAMED) {
            let last = self.shown.sentence(&cut_in_words(account, resource, cut, node, window));
            let (kind, id) = (account.kind().as_str(), self.shown.id(account));
            tracing::info!(
                node,
                kind,
                id,
                resource = resource.as_str(),
                last,
                "limit of an account forgotten"
            );
        }
        let (cut, forgotten) = (cut.count(), forgotten.count());
        if cut + forgotten > 0 {
            tracing::info!(
                node,
                resource = resource.as_str(),
                cut,
                forgotten,
                "further accounts in this step"
            );
        }
    }
}

/// Says each limit that changed in the log.
fn tell(node: &str, resource: Resource, calibration: &Calibration, limits: &PerKind<u64>) {
    for kind in Kind::ALL {
        let (old, new) = (calibration.old[kind], limits[kind]);
        if old != new {
            tracing::info!(
                node,
                kind = kind.as_str(),
                resource = resource.as_str(),
                old = in_words(resource, Limit::At(old)),
                new = in_words(resource, Limit::At(new)),
                reason = calibration.reason.as_str(),
                pressure = f64::from(calibration.pressure),
                "limit changed"
            );
        }
    }
}
