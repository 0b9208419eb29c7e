//! Random operations, dense enough that windows fill up, saturate, run empty and are rebased.

use std::collections::VecDeque;
use std::ops::RangeBounds;
use std::time::Duration;

use fastrand::Rng;
use quota_core::{
    Account, BUCKET_CAP, BUCKETS, Bound, Charge, Cost, Ipv6Prefix, Kind, Limit, Mark, Mode, PerResource,
    Release, Source, Tick, Timestamp, WindowLength,
};
use quota_server::store::{Entry, Limited, Report};

const SOURCES: usize = 4;

/// Reservations that may still be given back; older ones are forgotten.
const MAX_RESERVED: usize = 30;

#[derive(Debug)]
pub(crate) enum Operation {
    Pass(Duration),
    StepBack(Duration),
    Admit(Vec<Limited>, Cost),
    /// Reports that arrive at the same time, in this order.
    Settle(Vec<Report>),
    Usage(Vec<Account>),
}

/// Makes operations that follow from a seed and from what was reserved.
pub(crate) struct Operations {
    rng: Rng,
    length: WindowLength,
    accounts: Vec<Account>,
    sequences: [u64; SOURCES],
    reserved: VecDeque<(Account, Tick, Cost)>,
}

impl Operations {
    pub(crate) fn new(seed: u64, length: WindowLength) -> Self {
        let account = |(kind, id)| Account::new(kind, id, Ipv6Prefix::default()).expect("a name");
        let names = [
            (Kind::Repo, "group/project"),
            (Kind::Repo, "other"),
            (Kind::User, "alice"),
            (Kind::User, "a user whose name is held as a digest in keys"),
            (Kind::Ip, "203.0.113.7"),
            (Kind::Ip, "2001:db8::1"),
        ];
        Self {
            rng: Rng::with_seed(seed),
            length,
            accounts: names.map(account).to_vec(),
            sequences: [0; SOURCES],
            reserved: VecDeque::new(),
        }
    }

    /// To be told what an admission reserved, so that it can be given back.
    pub(crate) fn reserved(&mut self, accounts: &[Limited], ticks: &[Tick], price: Cost) {
        for (limited, &tick) in accounts.iter().zip(ticks) {
            self.reserved.push_back((limited.account.clone(), tick, price));
        }
        while self.reserved.len() > MAX_RESERVED {
            self.reserved.pop_front();
        }
    }

    pub(crate) fn next(&mut self, now: Timestamp) -> Operation {
        match self.rng.u8(..100) {
            0..25 => Operation::Pass(self.pass()),
            25..28 => Operation::StepBack(self.step_back()),
            28..60 => {
                let accounts = self.some_accounts(3);
                let limited = accounts.into_iter().map(|account| Limited { account, bounds: self.bounds() });
                Operation::Admit(limited.collect(), self.cost())
            }
            60..90 => {
                let together = if self.rng.bool() { 1 } else { self.rng.usize(2..6) };
                Operation::Settle((0..together).map(|_| self.report(now)).collect())
            }
            _ => Operation::Usage(self.some_accounts(6)),
        }
    }

    fn buckets(&mut self, count: impl RangeBounds<u64>) -> Duration {
        Duration::from_micros(self.rng.u64(count) * self.length.bucket_micros())
    }

    fn pass(&mut self) -> Duration {
        match self.rng.u8(..20) {
            0..7 => Duration::from_micros(self.rng.u64(1..self.length.bucket_micros())),
            7..12 => self.buckets(1..=1),
            12..17 => self.buckets(1..4) + Duration::from_micros(1),
            17..19 => self.buckets(4..=BUCKETS),
            _ => self.buckets(BUCKETS - 1..=3 * BUCKETS),
        }
    }

    fn step_back(&mut self) -> Duration {
        match self.rng.u8(..6) {
            0..4 => Duration::from_micros(self.rng.u64(1..=5_000_000)),
            4 => Duration::from_secs(5) + self.buckets(1..2 * BUCKETS),
            _ => self.buckets(1..20_000),
        }
    }

    /// Between one and `most`, each once.
    fn some_accounts(&mut self, most: usize) -> Vec<Account> {
        let count = self.rng.usize(1..=most);
        self.rng.choose_multiple(self.accounts.iter().cloned(), count)
    }

    fn cost(&mut self) -> Cost {
        if self.rng.u8(..8) == 0 {
            return Cost::ZERO;
        }
        Cost::saturating(PerResource::from_fn(|_| match self.rng.u16(..400) {
            0 => BUCKET_CAP,
            1 => BUCKET_CAP - self.rng.u64(..3),
            2 => Cost::MAX,
            3..100 => 0,
            100..150 => 1,
            _ => self.rng.u64(..1000),
        }))
    }

    fn bounds(&mut self) -> PerResource<Bound> {
        PerResource::from_fn(|_| Bound {
            limit: match self.rng.u8(..60) {
                0 => Limit::At(0),
                1 => Limit::At(u64::MAX),
                2 => Limit::At(BUCKET_CAP),
                3..20 => Limit::Unlimited,
                _ => {
                    let most = 1 << self.rng.u8(6..18);
                    Limit::At(self.rng.u64(..most))
                }
            },
            mode: match self.rng.u8(..4) {
                0..2 => Mode::Enforce,
                2 => Mode::Shadow,
                _ => Mode::Off,
            },
        })
    }

    fn report(&mut self, now: Timestamp) -> Report {
        let entries = self
            .some_accounts(3)
            .into_iter()
            .map(|account| Entry {
                charges: (0..self.rng.u8(..4)).map(|_| self.charge()).collect(),
                releases: (0..self.rng.u8(..3)).map(|_| self.release(&account, now)).collect(),
                account,
            })
            .collect();
        Report { mark: self.mark(), entries }
    }

    fn mark(&mut self) -> Option<Mark> {
        let source = self.rng.usize(..=SOURCES);
        let last = self.sequences.get_mut(source)?;
        let sequence = match self.rng.u8(..8) {
            0 => *last,
            1 => self.rng.u64(..=*last),
            2 => *last + self.rng.u64(1..1 << 30),
            _ => *last + 1,
        };
        *last = sequence.max(*last);
        Some(Mark { source: Source::new("model", &source.to_string()), sequence })
    }

    /// Of an age within the window: the caller leaves out what is older.
    fn charge(&mut self) -> Charge {
        let age = match self.rng.u8(..4) {
            0..2 => Duration::ZERO,
            2 => self.buckets(..BUCKETS),
            _ => Duration::from_micros(self.rng.u64(..BUCKETS * self.length.bucket_micros())),
        };
        Charge { age, cost: self.cost() }
    }

    /// Of something reserved before, whole or in part, or of something made up.
    fn release(&mut self, account: &Account, now: Timestamp) -> Release {
        let of_account = self.reserved.iter().filter(|(reserved, ..)| reserved == account);
        match self.rng.choice(of_account.collect::<Vec<_>>()) {
            Some(&(_, tick, amounts)) if self.rng.u8(..6) > 0 => Release {
                tick,
                amounts: if self.rng.bool() { amounts } else { amounts.at_most(self.cost()) },
            },
            _ => {
                let tick = (self.length.tick(now) + 10).saturating_sub(self.rng.u64(..2 * BUCKETS));
                Release { tick, amounts: self.cost() }
            }
        }
    }
}
