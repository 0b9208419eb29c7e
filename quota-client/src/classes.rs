//! Classes of traffic: requests of a class that has a cap run in slots, which the service leases. What is leased is handed out
//! here, so that a cheap request costs no round trip; waiting happens here, too.

mod answer;
mod figures;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod holding;
mod keeper;
mod no_slot;
mod slot;

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use self::holding::{Entry, Handed, Holding};
use crate::Denial;
use crate::shared::Shared;

pub(crate) use self::figures::ClassFigures;
pub use self::no_slot::{NoSlot, NoSlotReason};
pub use self::slot::Slot;

/// The most names that are told apart. The service knows half as many; a further one takes the place of one that it does not know, or
/// else is taken for the class of requests that name none.
const MOST: usize = 64;

/// What this process holds of each class that its requests have named.
pub(crate) struct Classes {
    /// How this process names itself to the service.
    holder: String,
    by_name: Mutex<HashMap<Arc<str>, Arc<Class>>>,
    /// Whether there is a class that is unknown to the service, or may use a part of the limits alone: as a rule there is none, and
    /// a request need not look for its class.
    any_special: AtomicBool,
}

/// What this process holds of one class.
pub(crate) struct Class {
    /// As requests name it; empty where they name none.
    name: Arc<str>,
    holding: Mutex<Holding>,
    /// Another name has its place: its keeper ends.
    is_forgotten: AtomicBool,
    /// Its keeper has something to do.
    wake: Notify,
    /// The service has said something of it, or does not answer.
    told: Notify,
}

impl Classes {
    pub(crate) fn new(node: &str) -> Self {
        // One is told from another that runs on the same node; a name of 255 bytes is the longest that the service takes.
        let node = &node[..node.floor_char_boundary(128)];
        Self {
            holder: format!("{node}/{:016x}", fastrand::u64(..)),
            by_name: Mutex::default(),
            any_special: AtomicBool::new(false),
        }
    }

    /// The class of a name; its keeper begins with the first request.
    pub(crate) fn get(&self, name: &Arc<str>, shared: &Arc<Shared>) -> Arc<Class> {
        let mut by_name = self.by_name.lock();
        if let Some(class) = by_name.get(name) {
            return Arc::clone(class);
        }
        if by_name.len() >= MOST {
            let place =
                by_name.iter().find(|(name, class)| !name.is_empty() && class.holding.lock().is_nothing());
            if let Some(name) = place.map(|(name, _)| Arc::clone(name))
                && let Some(class) = by_name.remove(&name)
            {
                class.is_forgotten.store(true, Ordering::Relaxed);
                class.wake.notify_one();
            }
        }
        let name = if by_name.len() < MOST { Arc::clone(name) } else { Arc::default() };
        let class = by_name.entry(Arc::clone(&name)).or_insert_with(|| {
            let class = Arc::new(Class::new(name));
            if let Ok(runtime) = Handle::try_current() {
                runtime.spawn(keeper::keep(Arc::clone(&class), Arc::downgrade(shared)));
            }
            class
        });
        Arc::clone(class)
    }

    /// The service has said that it knows no class of this name.
    pub(crate) fn is_not_known(&self, name: &Arc<str>, shared: &Arc<Shared>) {
        let class = self.get(name, shared);
        if class.name == *name && !name.is_empty() {
            class.holding.lock().unknown();
            self.told(&class);
        }
    }

    /// Whether the service has said that it knows no class of this name.
    pub(crate) fn is_unknown(&self, name: &str) -> bool {
        self.is_any(name, Holding::is_unknown)
    }

    /// Whether requests of this class may use a part of the limits of an account alone: what is known of others says nothing of them.
    pub(crate) fn is_partial(&self, name: &str) -> bool {
        self.is_any(name, Holding::is_partial)
    }

    fn is_any(&self, name: &str, is: impl FnOnce(&Holding) -> bool) -> bool {
        self.any_special.load(Ordering::Relaxed)
            && self.by_name.lock().get(name).is_some_and(|class| is(&class.holding.lock()))
    }

    /// Something was told of a class.
    fn told(&self, class: &Class) {
        let is_special = {
            let holding = class.holding.lock();
            holding.is_unknown() || holding.is_partial()
        };
        self.any_special.fetch_or(is_special, Ordering::Relaxed);
        class.told.notify_waiters();
    }

    /// Of each class with a cap, by the name that the service gives it.
    pub(crate) fn figures(&self) -> HashMap<Arc<str>, ClassFigures> {
        let classes: Vec<Arc<Class>> = self.by_name.lock().values().cloned().collect();
        let mut by_name = HashMap::new();
        for (name, figures) in classes.iter().filter_map(|class| class.holding.lock().figures()) {
            let of_name: &mut ClassFigures = by_name.entry(name).or_default();
            *of_name = mem::take(of_name).and(figures);
        }
        by_name
    }
}

impl Class {
    fn new(name: Arc<str>) -> Self {
        let is_forgotten = AtomicBool::new(false);
        Self { name, holding: Mutex::default(), is_forgotten, wake: Notify::new(), told: Notify::new() }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        self.holding.lock().is_unknown()
    }

    /// Waits for a slot: as long as the class lets requests wait, and until the caller's deadline. Nothing where the class has
    /// no cap, or nothing is known of it and the service does not answer within the client's deadline.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        shared: &Shared,
        deadline: Option<Instant>,
    ) -> Result<Option<Slot>, Denial> {
        let asked = Instant::now();
        let answered = asked + shared.settings.deadline;
        let node = &shared.settings.node;
        loop {
            let told = self.told.notified();
            let (entry, wanted) = {
                let mut holding = self.holding.lock();
                (holding.enter(asked, answered, deadline), holding.take_wanted())
            };
            if wanted {
                self.wake.notify_one();
            }
            let (waiter, until, receiver) = match entry {
                Entry::Free => return Ok(None),
                Entry::Runs(key) => return Ok(Some(Slot::new(self, key))),
                Entry::Refused(refusal) => return Err(Denial::no_slot(refusal, node)),
                Entry::NotTold => {
                    if timeout_at(answered, told).await.is_err() {
                        return Ok(None);
                    }
                    continue;
                }
                Entry::Waits { waiter, until, receiver } => (waiter, until, receiver),
            };
            let place = Place { class: self, waiter };
            let handed = timeout_at(until, receiver).await;
            drop(place);
            return match handed {
                Ok(Ok(Handed::Slot(slot))) => Ok(Some(slot)),
                Ok(Ok(Handed::Free)) => Ok(None),
                Ok(Ok(Handed::Refused(refusal))) => Err(Denial::no_slot(refusal, node)),
                // One that came in this very moment goes on to the next.
                Ok(Err(_)) | Err(_) => {
                    let refusal = self.holding.lock().waited(asked, deadline, Instant::now());
                    Err(Denial::no_slot(refusal, node))
                }
            };
        }
    }

    /// Gives what is free to those who wait.
    fn hand_out(self: &Arc<Self>) {
        loop {
            // Not in the condition, whose lock would be held while a slot that nobody takes is given back.
            let next = self.holding.lock().next(Instant::now());
            match next {
                Some((waiter, Some(key))) => drop(waiter.send(Handed::Slot(Slot::new(self, key)))),
                Some((waiter, None)) => drop(waiter.send(Handed::Free)),
                None => break,
            }
        }
    }
}

/// A place in the queue, which is left when it is dropped.
struct Place<'a> {
    class: &'a Class,
    waiter: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.class.holding.lock().leave(self.waiter);
    }
}
