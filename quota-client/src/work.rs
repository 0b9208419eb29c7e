mod ceiling;
mod child;
mod held;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quota_core::{Cost, PerResource};
use quota_proto::v1;
use tokio::sync::SetOnce;

use crate::local::Hold;
use crate::payers::Payers;
use crate::pending::{Finished, Release, Spent};
use crate::process::{Process, TreeUsage};
use crate::request::Sound;
use crate::reserved::Reserved;
use crate::shared::Shared;
use crate::shed::InFlight;
use crate::{Client, Denial};
use ceiling::Ceiling;
use child::{Child, New};
pub(crate) use held::Held;

/// The internal unit of memory is the KiB-second.
const KIB: u64 = 1024;

/// A piece of work that is metered, from its admission until the last that meters it is dropped.
pub(crate) struct Work {
    /// Its place among those that live.
    id: usize,
    client: Client,
    rpc: Arc<str>,
    payers: Arc<Payers>,
    /// It is a request of its own, and no work within one.
    admitted: bool,
    began: Instant,
    /// Spent since it was last charged.
    cpu_micros: AtomicU64,
    memory_byte_seconds: AtomicU64,
    network_bytes: AtomicU64,
    /// Spent since it began, and what it said it would send, where it has.
    all_cpu_micros: AtomicU64,
    sent_bytes: AtomicU64,
    announced_bytes: OnceLock<u64>,
    /// Memory of its cgroups at the last sample, in bytes.
    memory_of_cgroups: AtomicU64,
    /// Why it is to end before its time, and how many wait to be told.
    ended: SetOnce<Denial>,
    listeners: AtomicUsize,
    ceiling: Mutex<Ceiling>,
    children: Mutex<Children>,
    reservation: Mutex<Option<Reservation>>,
    /// What is reserved in this fileserver's own windows.
    hold: Mutex<Option<Hold>>,
}

/// What was reserved when the work was admitted, and is not given back yet.
#[derive(Debug)]
pub(crate) struct Reservation {
    token: Arc<str>,
    /// The token is of many requests.
    is_share: bool,
    reserved: Reserved,
    /// What has been charged.
    charged: Cost,
}

#[derive(Debug, Default)]
struct Children {
    next_key: u64,
    running: Vec<Child>,
}

impl Work {
    pub(crate) fn new(
        id: usize,
        client: Client,
        request: &Sound<'_>,
        admitted: bool,
        began: Instant,
        reservation: Option<Reservation>,
        hold: Option<Hold>,
    ) -> Self {
        let ceiling = Ceiling::new(client.shared().processors, began);
        Self {
            id,
            client,
            rpc: Arc::clone(request.rpc),
            payers: Arc::clone(request.payers),
            admitted,
            began,
            cpu_micros: AtomicU64::new(0),
            memory_byte_seconds: AtomicU64::new(0),
            network_bytes: AtomicU64::new(0),
            all_cpu_micros: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            announced_bytes: OnceLock::new(),
            memory_of_cgroups: AtomicU64::new(0),
            ended: SetOnce::new(),
            listeners: AtomicUsize::new(0),
            ceiling: Mutex::new(ceiling),
            children: Mutex::default(),
            reservation: Mutex::new(reservation),
            hold: Mutex::new(hold),
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        self.client.shared()
    }

    /// Takes the caller's word for it.
    pub(crate) fn add_cpu(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        add(&self.cpu_micros, micros);
        add(&self.all_cpu_micros, micros);
    }

    /// What counters of the kernel tell, as far as it can be.
    pub(crate) fn add_measured_cpu(&self, time: Duration, now: Instant) {
        let taken = self.ceiling.lock().take(time, now);
        self.add_cpu(taken);
        if taken < time {
            self.shared().cost_clamped(time - taken);
        }
    }

    pub(crate) fn add_memory(&self, byte_seconds: u64) {
        add(&self.memory_byte_seconds, byte_seconds);
    }

    pub(crate) fn add_received(&self, bytes: u64) {
        add(&self.network_bytes, bytes);
    }

    pub(crate) fn add_sent(&self, bytes: u64) {
        add(&self.network_bytes, bytes);
        add(&self.sent_bytes, bytes);
    }

    /// It will send so many bytes. The first word stands.
    pub(crate) fn announce(&self, bytes: u64) {
        let _ = self.announced_bytes.set(bytes);
    }

    /// One of its cgroups holds so much memory now, where it held `before`.
    pub(crate) fn cgroup_holds(&self, bytes: u64, before: u64) {
        add(&self.memory_of_cgroups, bytes);
        let less = |sum: u64| Some(sum.saturating_sub(before));
        // The closure always has an answer, so the update cannot fail.
        let _ = self.memory_of_cgroups.fetch_update(Relaxed, Relaxed, less);
    }

    /// What it holds and has consumed.
    pub(crate) fn in_flight(&self) -> InFlight {
        let memory_of_children =
            self.children.lock().running.iter().map(Child::held).fold(0, u64::saturating_add);
        InFlight {
            memory: self.memory_of_cgroups.load(Relaxed).saturating_add(memory_of_children),
            cpu_micros: self.all_cpu_micros.load(Relaxed),
            sent: self.sent_bytes.load(Relaxed),
            announced: self.announced_bytes.get().copied(),
        }
    }

    /// Whether telling it to end would end it: it has not been told, and somebody listens. One that waits for its permit
    /// has nobody yet, and what only meters has nobody ever.
    pub(crate) fn can_be_ended(&self) -> bool {
        self.listeners.load(Relaxed) > 0 && !self.ended.initialized()
    }

    /// Tells it to end. Returns whether it had not been told.
    pub(crate) fn end(&self, denial: Denial) -> bool {
        self.ended.set(denial).is_ok()
    }

    /// Waits until it is told to end.
    pub(crate) async fn is_ended(&self) -> Denial {
        let _listener = Listener::of(&self.listeners);
        self.ended.wait().await.clone()
    }

    /// Whether an account that pays for it is cut for CPU on this fileserver.
    pub(crate) fn is_cut_for_cpu(&self) -> bool {
        self.shared().local.lock().is_cut_for_cpu(self.payers.accounts())
    }

    pub(crate) fn rpc(&self) -> &str {
        &self.rpc
    }

    /// Who pays, as they were named.
    pub(crate) fn accounts(&self) -> &v1::Accounts {
        self.payers.named()
    }

    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Takes note of a child; its key names it from now on.
    pub(crate) fn child(&self, process: Process) -> u64 {
        let now = Instant::now();
        if let Some(started) = now.checked_sub(process.age()) {
            self.ceiling.lock().began(started);
        }
        let mut children = self.children.lock();
        let key = children.next_key;
        children.next_key += 1;
        children.running.push(Child::new(key, process, now));
        key
    }

    /// The children that run, with their keys.
    pub(crate) fn children(&self) -> Vec<(u64, Process)> {
        self.children.lock().running.iter().map(|child| (child.key, child.process)).collect()
    }

    /// Counts what a child has used beyond what is counted already; nothing where it has ended.
    pub(crate) fn child_used(&self, key: u64, usage: TreeUsage) {
        let now = Instant::now();
        let mut children = self.children.lock();
        let child = children.running.iter_mut().find(|child| child.key == key);
        let new = child.map(|child| child.sampled(usage, now));
        drop(children);
        self.add_new(new, now);
    }

    /// A child has ended, with this CPU time where it is known: no later sample counts.
    pub(crate) fn child_ended(&self, key: u64, cpu: Option<Duration>) {
        let now = Instant::now();
        let mut children = self.children.lock();
        let at = children.running.iter().position(|child| child.key == key);
        let child = at.map(|at| children.running.swap_remove(at));
        drop(children);
        self.add_new(child.map(|child| child.ended(cpu, now)), now);
    }

    fn add_new(&self, new: Option<New>, now: Instant) {
        if let Some(New { cpu, byte_seconds }) = new {
            self.add_measured_cpu(cpu, now);
            self.add_memory(byte_seconds);
        }
    }

    /// What was spent since this was last asked, to be charged. The last one gives back the rest of the reservation.
    pub(crate) fn charge(&self, last: bool) -> Spent {
        let cost = Cost::saturating(PerResource::new(
            self.cpu_micros.swap(0, Relaxed),
            self.take_memory(last),
            self.network_bytes.swap(0, Relaxed),
        ));
        let mut reservation = self.reservation.lock();
        let release = reservation.as_mut().and_then(|reservation| reservation.give_back(cost, last));
        // What was admitted by a share is told with others of it: there may be very many.
        let told = reservation.as_ref().filter(|known| last && !known.is_share && !self.rpc.is_empty());
        let total = told.map(|known| known.charged);
        drop(reservation);
        let finished =
            total.map(|total| Finished { rpc: Arc::clone(&self.rpc), wall: self.began.elapsed(), total });
        let here = self.hold.lock().as_mut().and_then(|hold| hold.give_back(cost, last));
        Spent { payers: Arc::clone(&self.payers), cost, release, here, finished }
    }

    /// In KiB-seconds. What is less than one stays for the next charge, and the last one is rounded up.
    fn take_memory(&self, last: bool) -> u64 {
        if last {
            return self.memory_byte_seconds.swap(0, Relaxed).div_ceil(KIB);
        }
        let rest = |byte_seconds| Some(byte_seconds % KIB);
        let (Ok(taken) | Err(taken)) = self.memory_byte_seconds.fetch_update(Relaxed, Relaxed, rest);
        taken / KIB
    }
}

/// Somebody who waits to be told.
struct Listener<'a>(&'a AtomicUsize);

impl<'a> Listener<'a> {
    fn of(listeners: &'a AtomicUsize) -> Self {
        listeners.fetch_add(1, Relaxed);
        Self(listeners)
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.shared().work_ended(self.id, self.charge(true), self.admitted);
    }
}

impl Reservation {
    /// Of the answer to a check; none where nothing was reserved.
    pub(crate) fn new(token: impl Into<Arc<str>>, reserved: Cost) -> Option<Self> {
        let token = token.into();
        (!token.is_empty()).then_some(Self {
            is_share: false,
            token,
            reserved: Reserved::new(reserved),
            charged: Cost::ZERO,
        })
    }

    /// Of a share, which has this token.
    pub(crate) fn of_share(token: Arc<str>, price: Cost) -> Self {
        Self { token, is_share: true, reserved: Reserved::new(price), charged: Cost::ZERO }
    }

    /// What to give back with a charge of `cost`, or with the last one.
    fn give_back(&mut self, cost: Cost, last: bool) -> Option<Release> {
        self.charged = self.charged.plus(cost);
        let amounts = self.reserved.give_back(cost, last)?;
        Some(Release { reservation: Arc::clone(&self.token), amounts })
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

    #[test]
    fn a_reservation_is_given_back_by_its_token_and_no_token_is_none_to_give_back() {
        let cpu = |micros| Cost::ZERO.with_cpu_micros(micros).unwrap();
        let mut reservation = Reservation::new("r1", cpu(100)).unwrap();
        let release = |micros| Some(Release { reservation: "r1".into(), amounts: cpu(micros) });
        assert_eq!(reservation.give_back(cpu(30), false), release(30));
        assert_eq!(reservation.give_back(cpu(30), true), release(70));
        assert!(Reservation::new("", cpu(100)).is_none());
    }
}
