//! What operators say: of single accounts, in the store and in the configuration file; and of how far limits are enforced. Every server keeps a copy, so that a
//! check need not ask for it, and so that the store can have back what it has lost.

mod audit;
#[cfg(any(fuzzing, test))]
pub(super) mod fuzzing;
mod modes;
mod overrides;
mod overriding;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use quota_core::{Account, Book, Mode, Switch, Timestamp, Word};

pub(crate) use modes::wire_mode;
pub use modes::{ModeRequest, ModeSetting, ModeStanding, PutMode};
pub use overrides::{OverrideRequest, PutOverride};
pub(super) use overriding::Overriding;
pub use overriding::{OverrideOrigin, OverrideStanding};

use super::{Change, Quota};
use crate::config::FileOverride;
use crate::metrics::Operation;
use crate::store::{Cause, StoreError, Words};

/// What operators say, as far as it is known. It is read again and again ([`Quota::refresh_operators`]); without the store,
/// what was last known stays in force.
pub struct Operators {
    copy: Mutex<Copy>,
    in_force: RwLock<Arc<InForce>>,
    /// How often reading has begun: of two answers, the one counts that was asked for later.
    begun: AtomicU64,
}

/// What the configuration file says, and what the store held when it was last read.
#[derive(Default)]
struct Copy {
    file: Vec<Arc<Overriding>>,
    book: Book,
    /// By this server's clock, and by the store's.
    read: Option<(Instant, Timestamp)>,
    /// Which reading that was.
    turn: u64,
}

/// What holds at a moment.
pub(super) struct InForce {
    /// When the first of them ends.
    next_end: Option<Timestamp>,
    by_account: HashMap<Account, Arc<Overriding>>,
    /// All, by account; of two for the same one, the one that holds comes first.
    listed: Vec<Arc<Overriding>>,
    /// How far limits are enforced.
    pub(super) switch: Switch,
    /// What that follows from: of the system, of kinds, of nodes.
    modes: Vec<ModeSetting>,
}

impl Operators {
    /// With what the configuration file says.
    pub fn new(file: &[FileOverride]) -> Self {
        let copy = Copy { file: read_file(file), ..Copy::default() };
        let in_force = RwLock::new(Arc::new(InForce::new(&copy, Timestamp::from_micros(0))));
        Self { copy: Mutex::new(copy), in_force, begun: AtomicU64::new(0) }
    }

    /// The configuration file says something else from now on. Returns what that changes.
    pub(super) fn replace_file(&self, file: &[FileOverride]) -> Option<Change> {
        let mut copy = self.copy.lock();
        copy.file = read_file(file);
        let now = copy.now();
        self.put_in_force(InForce::new(&copy, now))
    }

    /// Returns what that changes.
    fn put_in_force(&self, holds: InForce) -> Option<Change> {
        let mut in_force = self.in_force.write();
        let change = in_force.change_to(&holds);
        *in_force = Arc::new(holds);
        change
    }

    pub(super) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.in_force.read())
    }

    /// The moment as of which it is known, by the store's clock.
    pub(super) fn known_at(&self) -> Timestamp {
        self.copy.lock().now()
    }

    /// What the copy has that the store has not any more. One that is too old may have missed that something was withdrawn.
    fn lost_by(&self, stored: &Book, now: Timestamp) -> Vec<(Box<str>, Word)> {
        let copy = self.copy.lock();
        if copy.read.is_none_or(|(read, _)| read.elapsed() >= Book::MEMORY) {
            return Vec::new();
        }
        copy.book.lost_by(stored, now).map(|(name, word)| (name.into(), word.clone())).collect()
    }

    /// Takes in what was read, unless it was asked for later already; no book: nothing has changed. Returns what changes.
    fn learn(&self, turn: u64, now: Timestamp, book: Option<Book>) -> Option<Change> {
        let mut copy = self.copy.lock();
        if turn < copy.turn {
            return None;
        }
        let is_new = book.is_some();
        copy.book = book.unwrap_or_else(|| std::mem::take(&mut copy.book));
        (copy.turn, copy.read) = (turn, Some((Instant::now(), now)));
        let has_ended = self.in_force.read().next_end.is_some_and(|end| end <= now);
        if is_new || has_ended { self.put_in_force(InForce::new(&copy, now)) } else { None }
    }
}

impl Copy {
    /// The moment as of which it is known.
    fn now(&self) -> Timestamp {
        self.read.map_or(Timestamp::from_micros(0), |(_, now)| now)
    }
}

fn read_file(file: &[FileOverride]) -> Vec<Arc<Overriding>> {
    file.iter().map(|said| Arc::new(said.into())).collect()
}

impl InForce {
    fn new(Copy { file, book, .. }: &Copy, now: Timestamp) -> Self {
        let holding = || book.iter().filter(|(_, word)| word.holds(now));
        let put: Vec<_> =
            holding().filter_map(|(name, word)| Overriding::read(name, word)).map(Arc::new).collect();
        let of = |said: &Arc<Overriding>| (said.account.clone(), Arc::clone(said));
        let mut listed = [&put[..], file].concat();
        // It keeps the order of those that are equal.
        listed.sort_by(|a, b| a.account.cmp(&b.account));
        let mut modes: Vec<_> = holding().filter_map(|(name, word)| ModeSetting::read(name, word)).collect();
        modes.sort_by(|a, b| a.place.cmp(&b.place));
        let mut switch = Switch::default();
        modes.iter().for_each(|setting| switch.set(setting.place.clone(), setting.mode));
        Self {
            switch,
            modes,
            next_end: holding().filter_map(|(_, word)| word.until).min(),
            by_account: file.iter().chain(&put).map(of).collect(),
            listed,
        }
    }

    /// What changes where this holds no more, and the other does.
    fn change_to(&self, other: &Self) -> Option<Change> {
        if self.modes != other.modes {
            return Some(Change::All);
        }
        let either = self.by_account.keys().chain(other.by_account.keys().filter(|it| self.of(it).is_none()));
        Change::of(either.filter(|it| self.of(it) != other.of(it)).cloned().collect())
    }

    /// What is said of an account.
    pub(super) fn of(&self, account: &Account) -> Option<&Arc<Overriding>> {
        self.by_account.get(account)
    }
}

impl Quota {
    /// Reads what operators say, and gives the store back what it has lost. To be called at least every 500 ms. Returns the
    /// moment as of which it is known.
    pub async fn refresh_operators(&self) -> Result<Timestamp, StoreError> {
        let operators = &self.operators;
        let turn = operators.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let known = operators.copy.lock().book.version();
        let mut words = self.store.words(known).await?;
        if let Some(stored) = &words.book {
            let lost = operators.lost_by(stored, words.now);
            if !lost.is_empty() && self.restore(&lost).await? > 0 {
                words = self.store.words(0).await?;
            }
        }
        let Words { now, book, .. } = words;
        if let Some(book) = &book {
            self.tell_unreadable(book);
        }
        self.changes.tell(operators.learn(turn, now, book));
        self.show_what_is_said();
        Ok(now)
    }

    async fn restore(&self, lost: &[(Box<str>, Word)]) -> Result<u32, StoreError> {
        let restored = self.store.restore(lost).await?;
        // Another server may have been quicker.
        if restored > 0 {
            self.metrics.overrides_restored.inc_by(restored.into());
            tracing::error!(
                restored,
                "the store had lost what operators said: it is put back from this server's copy"
            );
        }
        Ok(restored)
    }

    fn tell_unreadable(&self, book: &Book) {
        let unreadable = book.iter().filter(|(name, word)| is_unreadable(name, word)).count();
        if unreadable > 0 {
            tracing::error!(unreadable, "what operators said cannot be read in part, and is not in force");
            self.metrics.store_error(Operation::Words, Cause::Corrupt);
        }
    }

    fn show_what_is_said(&self) {
        let in_force = self.operators.in_force();
        for origin in OverrideOrigin::ALL {
            let count = in_force.listed.iter().filter(|said| said.origin == origin).count();
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.metrics.overrides.with_label_values(&[origin.as_str()]).set(count);
        }
        for mode in Mode::ALL {
            let count = in_force.modes.iter().filter(|setting| setting.mode == mode).count();
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.metrics.modes.with_label_values(&[mode.as_str()]).set(count);
        }
    }
}

/// Whether something that holds is not understood; names of another kind are those of a newer server.
fn is_unreadable(name: &str, word: &Word) -> bool {
    let is_read = Overriding::read(name, word).is_some() || ModeSetting::read(name, word).is_some();
    word.text.is_some() && !is_read && (overriding::is_override(name) || modes::is_mode(name))
}

#[cfg(test)]
mod tests;
