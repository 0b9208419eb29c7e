use std::sync::Arc;

use quota_core::{Account, Cost, Resource};
use quota_proto::v1;
use tokio::time::Instant;

use super::{Answer, Client};
use crate::Denial;
use crate::local::{Share, Taken};
use crate::payers::Payers;
use crate::request::Sound;
use crate::trace::TraceContext;
use crate::work::Reservation;

/// What is known here of a request before the service is asked.
pub(super) struct Known {
    /// A refusal that stands.
    pub(super) refusal: Option<Denial>,
    /// For which resources its accounts are cut.
    pub(super) cut: Vec<(Account, Resource)>,
    /// What it is admitted by, without asking.
    pub(super) reservation: Option<Reservation>,
    /// So much of a share is to be asked for.
    pub(super) wanted: Cost,
}

impl Client {
    /// What is known here of a request.
    pub(super) fn known(&self, request: &Sound<'_>, now: Instant) -> Known {
        let (payers, accounts) = (request.payers, request.payers.accounts());
        let mut local = self.shared().local.lock();
        let (refusal, cut) = (local.refusal(accounts, now), local.cuts(accounts));
        let mut known = Known { refusal, cut, reservation: None, wanted: Cost::ZERO };
        // A share is of the whole limits.
        if !self.shared().settings.checks.is_local(request.rpc)
            || self.shared().classes.is_partial(request.class)
        {
            return known;
        }
        // Who is refused or cut has no share.
        if known.refusal.is_some() || !known.cut.is_empty() {
            let ended = local.end_share(payers);
            drop(local);
            ended.into_iter().for_each(|share| self.shared().give_back(payers, share));
            return known;
        }
        // What it would reserve has to be known.
        let Some(price) = request.price_or(|rpc| local.price(rpc)) else { return known };
        let Taken { token, wanted } = local.take(payers, price, now);
        known.reservation = token.map(|token| Reservation::of_share(token, price));
        known.wanted = wanted;
        known
    }

    /// Asks for a share, while requests are admitted by the one before, or asked about.
    pub(super) async fn ask_for_share(self, rpc: Arc<str>, payers: Arc<Payers>, wanted: Cost) {
        let asked = Instant::now();
        // It is of no request.
        let trace = TraceContext::default();
        let request = Sound::for_a_share(&rpc, &payers, wanted, &trace);
        let used_here = self.shared().usage.lock().here(&payers, asked);
        let check = || request.to_check(&self.shared().settings.node, used_here);
        // Nobody waits for it, and what is granted in an answer that is not waited for is lost for a window.
        let deadline = asked + self.shared().settings.report_deadline;
        let answer = self
            .shared()
            .pool
            .ask(check, deadline, |mut client, check| async move { client.check(check).await })
            .await;
        self.take_in_share(&payers, answer.as_ref().ok(), asked);
        if let Ok(Answer::Deny(_)) = self.read(answer, &request, Instant::now()) {
            let ended = self.shared().local.lock().end_share(&payers);
            ended.into_iter().for_each(|share| self.shared().give_back(&payers, share));
        }
    }

    /// A share was asked for at a moment: keeps what was granted, and gives back what is left of the one before.
    fn take_in_share(&self, payers: &Arc<Payers>, answer: Option<&v1::CheckResponse>, asked: Instant) {
        let share = answer.and_then(|answer| Share::granted(answer.share.as_ref()?, asked));
        let before = self.shared().local.lock().granted(payers, share);
        before.into_iter().for_each(|share| self.shared().give_back(payers, share));
    }
}
