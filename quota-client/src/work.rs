use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use quota_core::{Cost, PerResource};
use quota_proto::v1;

use crate::Client;
use crate::local::Hold;
use crate::pending::{Release, Spent};
use crate::process::Process;

/// A piece of work that is metered, from its admission until the last that meters it is dropped.
pub(crate) struct Work {
    id: u64,
    client: Client,
    accounts: v1::Accounts,
    /// Spent since it was last charged.
    cpu_micros: AtomicU64,
    network_bytes: AtomicU64,
    children: Mutex<Children>,
    reservation: Mutex<Option<Reservation>>,
    /// What is reserved in this fileserver's own windows.
    hold: Mutex<Option<Hold>>,
}

/// What was reserved when the work was admitted, and is not given back yet.
#[derive(Debug)]
pub(crate) struct Reservation {
    token: String,
    left: Cost,
}

#[derive(Debug, Default)]
struct Children {
    next_key: u64,
    running: Vec<Child>,
}

/// A child process whose CPU counts as this work's.
#[derive(Clone, Debug)]
struct Child {
    key: u64,
    process: Process,
    /// How much of its CPU has been counted.
    counted: Duration,
}

impl Work {
    pub(crate) fn new(
        id: u64,
        client: Client,
        accounts: v1::Accounts,
        reservation: Option<Reservation>,
        hold: Option<Hold>,
    ) -> Self {
        Self {
            id,
            client,
            accounts,
            cpu_micros: AtomicU64::new(0),
            network_bytes: AtomicU64::new(0),
            children: Mutex::default(),
            reservation: Mutex::new(reservation),
            hold: Mutex::new(hold),
        }
    }

    pub(crate) fn add_cpu(&self, time: Duration) {
        add(&self.cpu_micros, u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn add_network(&self, bytes: u64) {
        add(&self.network_bytes, bytes);
    }

    /// Takes note of a child; its key names it from now on.
    pub(crate) fn child(&self, process: Process) -> u64 {
        let mut children = self.children.lock();
        let key = children.next_key;
        children.next_key += 1;
        children.running.push(Child { key, process, counted: Duration::ZERO });
        key
    }

    /// The children that run, with their keys.
    pub(crate) fn children(&self) -> Vec<(u64, Process)> {
        self.children.lock().running.iter().map(|child| (child.key, child.process)).collect()
    }

    /// Counts what a child has used beyond what is counted already; nothing where it has ended.
    pub(crate) fn child_used(&self, key: u64, cpu: Duration) {
        let mut children = self.children.lock();
        if let Some(child) = children.running.iter_mut().find(|child| child.key == key) {
            self.add_cpu(cpu.saturating_sub(child.counted));
            child.counted = child.counted.max(cpu);
        }
    }

    /// A child has ended: no later sample counts.
    pub(crate) fn child_ended(&self, key: u64) {
        self.children.lock().running.retain(|child| child.key != key);
    }

    /// What was spent since this was last asked, to be charged. The last one gives back the rest of the reservation.
    pub(crate) fn charge(&self, last: bool) -> Option<Spent> {
        let cost = PerResource::new(self.cpu_micros.swap(0, Relaxed), 0, self.network_bytes.swap(0, Relaxed));
        let cost = Cost::saturating(cost);
        let release =
            self.reservation.lock().as_mut().and_then(|reservation| reservation.give_back(cost, last));
        let here = self.hold.lock().as_mut().and_then(|hold| hold.give_back(cost, last));
        (!cost.is_zero() || release.is_some() || here.is_some()).then(|| Spent {
            accounts: self.accounts.clone(),
            cost,
            release,
            here,
        })
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let last = self.charge(true);
        self.client.shared().work_ended(self.id, last);
    }
}

impl Reservation {
    /// Of the answer to a check; none where nothing was reserved.
    pub(crate) fn new(token: String, reserved: Cost) -> Option<Self> {
        (!token.is_empty()).then_some(Self { token, left: reserved })
    }

    /// How much to give back with a charge of `cost`: as much as that, and with the last charge all that is left.
    fn give_back(&mut self, cost: Cost, last: bool) -> Option<Release> {
        let amounts = if last { self.left } else { cost.at_most(self.left) };
        self.left = self.left.minus(amounts);
        (!amounts.is_zero()).then(|| Release { reservation: self.token.clone(), amounts })
    }
}

/// Adds without wrapping around.
fn add(sum: &AtomicU64, amount: u64) {
    // The closure always has an answer, so the update cannot fail.
    let _ = sum.fetch_update(Relaxed, Relaxed, |old| Some(old.saturating_add(amount)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(micros: u64) -> Cost {
        Cost::ZERO.with_cpu_micros(micros).unwrap()
    }

    #[test]
    fn releases_follow_the_cost_and_sum_to_what_was_reserved() {
        let mut reservation = Reservation::new("r1".to_owned(), cpu(100)).unwrap();
        let mut give_back = |cost, last| reservation.give_back(cpu(cost), last).map(|back| back.amounts);
        assert_eq!(give_back(30, false), Some(cpu(30)));
        assert_eq!(give_back(0, false), None);
        assert_eq!(give_back(20, true), Some(cpu(70)), "the rest");
        assert_eq!(give_back(20, true), None);
    }

    #[test]
    fn more_is_never_released_than_was_reserved() {
        let reserved = cpu(100).with_network_bytes(7).unwrap();
        let mut reservation = Reservation::new("r1".to_owned(), reserved).unwrap();
        let cost = cpu(80).with_network_bytes(1000).unwrap();
        let releases = [(); 3].map(|()| reservation.give_back(cost, false));
        let sum = releases.iter().flatten().fold(Cost::ZERO, |sum, release| sum.plus(release.amounts));
        assert_eq!(sum, reserved);
        assert_eq!(releases[2], None);
    }

    #[test]
    fn no_reservation_is_none_to_give_back() {
        assert!(Reservation::new(String::new(), cpu(100)).is_none());
    }
}
