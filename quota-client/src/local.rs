//! What the client knows for itself: the limits and prices that the service last told, whom it has cut on this fileserver,
//! whom it has refused and until when, and whether it knows what was used here.
//! `docs/decisions/0009-limits-without-the-server.md` says why it is so.

pub(crate) mod cuts;
mod denials;
mod early;
mod hold;
mod judge;
mod limits;
mod phase;
mod prices;
mod shares;
mod stale;

use std::sync::Arc;
use std::time::Duration;

use quota_core::{Account, Cost, Kind, Resource};
use quota_proto::v1;
use tokio::time::Instant;

use self::cuts::Cuts;
use self::denials::Denials;
use self::limits::Limits;
use self::phase::Phase;
use self::prices::Prices;
use self::shares::Shares;
use crate::Denial;
use crate::payers::Payers;

pub(crate) use self::early::Early;
pub(crate) use self::hold::Hold;
pub(crate) use self::judge::judge;
pub(crate) use self::limits::Comparisons;
pub(crate) use self::shares::{Share, Taken};
pub(crate) use self::stale::Stale;

/// Pure state: the time is an argument. Everything in it is bounded.
#[derive(Debug, Default)]
pub(crate) struct Local {
    limits: Limits,
    cuts: Cuts,
    prices: Prices,
    denials: Denials,
    shares: Shares,
    phase: Phase,
}

impl Local {
    /// The refusal that stands for these accounts; none where the service is to be asked: nobody is known to be over a
    /// limit, or it has not been asked about those who are for a second.
    pub(crate) fn refusal(&mut self, accounts: &[Account], now: Instant) -> Option<Denial> {
        if self.denials.may_ask(accounts, now) { None } else { self.denials.in_force(accounts, now) }
    }

    /// The refusal that stands for these accounts where the service does not answer.
    pub(crate) fn refusal_unasked(&self, accounts: &[Account], now: Instant) -> Option<Denial> {
        self.denials.in_force(accounts, now)
    }

    /// The service has allowed a request of these accounts, and reserved this much for an RPC without a price of its own.
    pub(crate) fn allowed(
        &mut self,
        accounts: &[Account],
        standings: &[v1::Standing],
        rpc: Option<&str>,
        price: Cost,
    ) {
        self.learn(accounts, standings);
        for account in accounts {
            self.denials.forget(account);
        }
        if let Some(rpc) = rpc {
            self.prices.learn(rpc, price);
        }
    }

    /// The service has refused a request of these accounts.
    pub(crate) fn denied(
        &mut self,
        accounts: &[Account],
        standings: &[v1::Standing],
        denial: &Denial,
        now: Instant,
    ) {
        self.learn(accounts, standings);
        let Some(account) = denial.kind().and_then(|kind| of_kind(accounts, kind)) else { return };
        // The standing's wait is exact, that of the refusal is spread.
        let told = standings.iter().find(|standing| Kind::try_from(standing.kind()) == Ok(account.kind()));
        let exact = told.and_then(|told| quota_proto::age(told.retry_after.as_ref(), "retry_after").ok());
        let wait = exact.filter(|wait| !wait.is_zero()).unwrap_or(denial.retry_after());
        self.denials.remember(account, denial, now + wait, now);
    }

    fn learn(&mut self, accounts: &[Account], standings: &[v1::Standing]) {
        for standing in standings {
            let kind = Kind::try_from(standing.kind()).ok();
            let Some(account) = kind.and_then(|kind| of_kind(accounts, kind)) else { continue };
            self.limits.learn(account, standing);
            if !standing.over {
                self.denials.forget(account);
            }
        }
    }

    /// The service tells standings unasked, of accounts that were charged. Returns the shares that end, to be given back.
    pub(crate) fn told(&mut self, standings: &[v1::Standing]) -> Vec<(Arc<Payers>, Share)> {
        let mut over = Vec::new();
        for standing in standings {
            let kind = Kind::try_from(standing.kind()).ok();
            let account = kind.and_then(|kind| Account::from_spelling(kind, &standing.id).ok());
            let Some(account) = account else { continue };
            self.limits.learn(&account, standing);
            if standing.over {
                over.push(account);
            } else {
                self.denials.forget(&account);
            }
        }
        if over.is_empty() { Vec::new() } else { self.shares.end_of(|account| over.contains(account)) }
    }

    /// What was told of these may hold no more. Returns the shares that end, to be given back.
    pub(crate) fn doubt(&mut self, stale: &Stale) -> Vec<(Arc<Payers>, Share)> {
        self.denials.forget_of(stale);
        self.shares.end_of(|account| stale.is_of(account))
    }

    /// What these accounts were last compared with, as far as it is known.
    pub(crate) fn limits(&self, accounts: &[Account]) -> Vec<(Account, Comparisons)> {
        let known =
            |account: &Account| Some((account.clone(), self.cuts.within(account, self.limits.of(account)?)));
        accounts.iter().filter_map(known).collect()
    }

    /// The service has told all accounts that have limits of their own on this fileserver.
    pub(crate) fn learn_cuts(&mut self, told: &[v1::AccountLimit]) {
        self.cuts.learn(told);
    }

    /// How many accounts have limits of their own on this fileserver.
    pub(crate) fn cut(&self) -> usize {
        self.cuts.len()
    }

    /// Those of these accounts that are cut on this fileserver, with each resource for which.
    pub(crate) fn cuts(&self, accounts: &[Account]) -> Vec<(Account, Resource)> {
        if self.cuts.is_empty() {
            return Vec::new();
        }
        let each = |resource| accounts.iter().map(move |account| (account, resource));
        let cut = Resource::ALL.into_iter().flat_map(each);
        let cut = cut.filter(|(account, resource)| self.cuts.has(account, *resource));
        cut.map(|(account, resource)| (account.clone(), resource)).collect()
    }

    /// Whether one of these accounts is cut for CPU on this fileserver.
    pub(crate) fn is_cut_for_cpu(&self, accounts: &[Account]) -> bool {
        accounts.iter().any(|account| self.cuts.has(account, Resource::Cpu))
    }

    /// What an RPC was last expected to cost; none where that is not known.
    pub(crate) fn price(&self, rpc: &str) -> Option<Cost> {
        self.prices.of(rpc)
    }

    /// What is to become of a request of these accounts that is not refused: it may be admitted by a share, where the service
    /// knows what was used here.
    pub(crate) fn take(&mut self, payers: &Arc<Payers>, price: Cost, now: Instant) -> Taken {
        if self.is_known() { self.shares.take(payers, price, now) } else { Taken::ASK }
    }

    /// The service was asked for a share, and granted this one, if any. Returns what is to be given back instead.
    pub(crate) fn granted(&mut self, payers: &Payers, share: Option<Share>) -> Option<Share> {
        self.shares.granted(payers, share)
    }

    /// Nobody is admitted any more by the share of these accounts. Returns it, to be given back.
    pub(crate) fn end_share(&mut self, payers: &Payers) -> Option<Share> {
        self.shares.end(payers)
    }

    /// The shares that have ended, to be given back.
    pub(crate) fn sweep_shares(&mut self, now: Instant) -> Vec<(Arc<Payers>, Share)> {
        self.shares.sweep(now)
    }

    /// The service is away, or its store is: a request was not checked, or a report not taken.
    pub(crate) fn unchecked(&mut self) {
        self.phase.unchecked();
    }

    /// Whether the service knows what was used here.
    pub(crate) fn is_known(&self) -> bool {
        self.phase == Phase::Known
    }

    /// A request was checked. Returns whether the service may not know yet what was used here while it was away, so that
    /// the last known limits are enforced here too. What is used is collected once an interval, and `is_reported` when all
    /// of that is acknowledged.
    pub(crate) fn checked(&mut self, now: Instant, interval: Duration, is_reported: bool) -> bool {
        self.phase.checked(now, interval, is_reported)
    }
}

fn of_kind(accounts: &[Account], kind: Kind) -> Option<&Account> {
    accounts.iter().find(|account| account.kind() == kind)
}
