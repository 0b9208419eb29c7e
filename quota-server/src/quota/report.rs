mod merge;

use std::collections::HashMap;
use std::time::Duration;

use quota_core::{Account, Accounts, Charge, Cost, Mark, Release, Source};
use quota_proto::Invalid;

use super::{Finished, Label, Quota, QuotaError, Reservation};
use crate::auth::Caller;
use crate::metrics::Beyond;
use crate::store::{Entry, MAX_CHARGES, Report};

/// What a fileserver consumed.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    /// Which report it is.
    pub mark: Option<Mark>,
    /// How long it has been waiting; added to every age.
    pub held: Duration,
    /// The fileserver.
    pub node: Label,
    /// At most [`MAX_CHARGES`].
    pub charges: Vec<ChargeRequest>,
}

/// What one piece of work consumed.
#[derive(Clone, Debug)]
pub struct ChargeRequest {
    /// Who is charged.
    pub accounts: Accounts,
    /// How much.
    pub cost: Cost,
    /// How long ago it was spent.
    pub age: Duration,
    /// What is given back.
    pub release: Option<Reservation>,
    /// The request, where it has finished and its RPC is told.
    pub finished: Option<Finished>,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// Charges counted.
    pub applied: u32,
    /// Charges older than the window, not counted.
    pub dropped_old: u32,
    /// It had been counted before.
    pub duplicate: bool,
}

impl ReportRequest {
    /// The mark of a report, from its caller and the fields `source` and `sequence`; an empty source is none. The same source
    /// of another caller is another.
    pub fn mark(caller: &Caller, source: &str, sequence: u64) -> Result<Option<Mark>, Invalid> {
        if source.is_empty() {
            return if sequence == 0 {
                Ok(None)
            } else {
                Err(Invalid::new("source", "must be given with sequence"))
            };
        }
        if source.len() > Source::MAX_BYTES {
            return Err(Invalid::new("source", format!("must be at most {} bytes", Source::MAX_BYTES)));
        }
        if sequence >= Mark::SEQUENCE_END {
            return Err(Invalid::new("sequence", "must be below 2^53"));
        }
        Ok(Some(Mark { source: Source::new(&caller.name, source), sequence }))
    }

    /// Refuses more charges than one report may have, before they are looked at.
    pub fn bound(charges: usize) -> Result<(), Invalid> {
        if charges > MAX_CHARGES {
            return Err(Invalid::new("charges", format!("must be at most {MAX_CHARGES}")));
        }
        Ok(())
    }
}

impl ChargeRequest {
    /// What a charge gives back, from its fields `reservation` and `release`: all of it where `release` is absent.
    pub fn release(reservation: &str, release: Option<Cost>) -> Result<Option<Reservation>, Invalid> {
        if reservation.is_empty() {
            return match release {
                None => Ok(None),
                Some(_) => Err(Invalid::new("release", "must come with a reservation")),
            };
        }
        let reserved: Reservation =
            reservation.parse().map_err(|error| Invalid::new("reservation", error))?;
        let amounts = release.map_or(reserved.amounts, |release| release.at_most(reserved.amounts));
        Ok(Some(Reservation { amounts, ..reserved }))
    }
}

/// What a report gives back of prices and shares.
fn released(request: &ReportRequest) -> Cost {
    let releases = request.charges.iter().filter_map(|charge| charge.release.as_ref());
    releases.fold(Cost::ZERO, |sum, release| sum.plus(release.amounts))
}

impl Quota {
    /// Counts what a fileserver consumed; acknowledged only when it is stored.
    pub async fn report(&self, caller: &Caller, request: ReportRequest) -> Result<Reported, QuotaError> {
        let _place = self.enter_report(caller)?;
        let (report, dropped_old) = self.sum(&request);
        let spent = self.spent(&request);
        let known_by = self.paid_as(&request);
        let paid_now = self.pay(caller, known_by.as_ref(), spent).map_err(|resource| {
            Invalid::new(
                "charges",
                format!("come to more {resource} than your nodes can have spent in a window"),
            )
        })?;
        let settled = self.store.settle(&report).await.map_err(QuotaError::of_report);
        self.remember_paid(caller, known_by.as_ref(), settled.is_err());
        let settled = settled?;
        let duplicate = settled.applied == 0 && settled.duplicates > 0;
        if duplicate && paid_now {
            self.unspend(caller, Beyond::Report, spent);
        }
        // Only what it had reserved: who makes reservations up is seen by what there was not to give back.
        if !duplicate && settled.excess_releases == 0 {
            self.unspend(caller, Beyond::Check, released(&request));
        }
        let applied = if duplicate { 0 } else { request.charges.len() as u32 - dropped_old };
        if duplicate {
            self.metrics.reports_duplicate.inc();
        } else {
            self.tell_consumers(&report);
            self.take_down_finished(&request);
        }
        self.metrics.charges_applied.inc_by(applied.into());
        self.metrics.charges_dropped_old.inc_by(dropped_old.into());
        Ok(Reported { applied, dropped_old, duplicate })
    }

    /// What it comes to, whoever is charged.
    fn spent(&self, request: &ReportRequest) -> Cost {
        let counts = |charge: &&ChargeRequest| self.counts(charge, request);
        request.charges.iter().filter(counts).fold(Cost::ZERO, |sum, charge| sum.plus(charge.cost))
    }

    /// Whether a charge is not older than the window.
    fn counts(&self, charge: &ChargeRequest, of: &ReportRequest) -> bool {
        charge.age.saturating_add(of.held) < self.window.length()
    }

    fn tell_consumers(&self, report: &Report) {
        for Entry { account, charges, .. } in &report.entries {
            let cost = charges.iter().fold(Cost::ZERO, |sum, charge| sum.plus(charge.cost));
            self.consumers.spent(account, cost);
        }
    }

    /// The report by account, merged, without what is older than the window, and how many charges that is.
    fn sum(&self, request: &ReportRequest) -> (Report, u32) {
        let mut dropped_old = 0;
        let (mut entries, mut places) = (Vec::<Entry>::new(), HashMap::<&Account, usize>::new());
        for charge in &request.charges {
            let age = charge.age.saturating_add(request.held);
            let counts = self.counts(charge, request);
            dropped_old += u32::from(!counts);
            for account in charge.accounts.as_slice() {
                let place = *places.entry(account).or_insert(entries.len());
                if place == entries.len() {
                    entries.push(Entry::new(account.clone()));
                }
                let entry = &mut entries[place];
                if counts {
                    entry.charges.push(Charge { age, cost: charge.cost });
                }
                if let Some(Reservation { ticks, amounts }) = charge.release {
                    entry.releases.push(Release { tick: ticks[account.kind()], amounts });
                }
            }
        }
        entries.retain(|entry| !entry.is_empty());
        for entry in &mut entries {
            merge::charges(&mut entry.charges, self.window);
            merge::releases(&mut entry.releases);
        }
        (Report { mark: request.mark, entries }, dropped_old)
    }
}
