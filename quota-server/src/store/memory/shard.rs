use std::collections::HashMap;

use quota_core::{Account, Ledger, Tick, Timestamp, WindowLength};

/// The ledgers behind one lock.
#[derive(Default)]
pub(super) struct Shard {
    ledgers: HashMap<Account, Ledger>,
    /// When idle ledgers were last dropped: once a bucket at most, since it looks at all of them.
    swept: Tick,
}

impl Shard {
    pub(super) fn len(&self) -> usize {
        self.ledgers.len()
    }

    pub(super) fn holds(&self, account: &Account) -> bool {
        self.ledgers.contains_key(account)
    }

    /// Whether `new` more accounts fit below `most`, after idle ones are dropped if need be.
    pub(super) fn has_room(&mut self, new: usize, most: usize, now: Timestamp, length: WindowLength) -> bool {
        let fits = |shard: &Self| new == 0 || shard.ledgers.len() + new <= most;
        if !fits(self) && self.swept != length.tick(now) {
            self.drop_idle(now, length);
        }
        fits(self)
    }

    pub(super) fn drop_idle(&mut self, now: Timestamp, length: WindowLength) {
        self.swept = length.tick(now);
        self.ledgers.retain(|_, ledger| {
            ledger.advance(Ledger::now(now, length, [&*ledger]));
            !ledger.is_idle()
        });
        self.ledgers.shrink_to(2 * self.ledgers.len());
    }

    /// The account's ledger, taken out; an empty one where there is none.
    pub(super) fn take(&mut self, account: &Account) -> Ledger {
        self.ledgers.remove(account).unwrap_or_default()
    }

    /// Puts a ledger in, unless it holds nothing.
    pub(super) fn keep(&mut self, account: &Account, ledger: Ledger) {
        if !ledger.is_idle() {
            self.ledgers.insert(account.clone(), ledger);
        }
    }
}
