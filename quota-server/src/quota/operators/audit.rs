//! Every change by an operator is one line in the log, with the target `audit`: who, what, old and new, and why.

use std::time::Duration;

use quota_core::{Account, Mode, Override, Place};

use super::Overriding;
use crate::metrics::Change;
use crate::quota::Quota;
use crate::quota::words::override_in_words;

impl Quota {
    pub(super) fn audit_override(
        &self,
        who: &str,
        account: &Account,
        old: Option<&Overriding>,
        new: Option<(&Override, Option<Duration>)>,
        why: &str,
    ) {
        let words = |word: Option<&Override>| {
            word.map_or_else(|| "none".to_owned(), |word| override_in_words(word, self.window))
        };
        self.metrics.change(Change::Override);
        tracing::info!(
            target: "audit",
            who,
            what = "override",
            kind = account.kind().as_str(),
            id = account.id(),
            old = words(old.map(|old| &old.word)),
            new = words(new.map(|(word, _)| word)),
            expires_in = new.and_then(|(_, lasts)| lasts).map(tracing::field::debug),
            why,
            "changed"
        );
    }

    pub(super) fn audit_mode(
        &self,
        who: &str,
        place: &Place,
        old: Option<Mode>,
        new: Option<Mode>,
        why: &str,
    ) {
        let words = |mode: Option<Mode>| mode.map_or("none", Mode::as_str);
        let (node, kind) = match place {
            Place::System => (None, None),
            Place::Kind(kind) => (None, Some(kind.as_str())),
            Place::Node(node) => (Some(&**node), None),
        };
        self.metrics.change(Change::Mode);
        let (old, new) = (words(old), words(new));
        tracing::info!(target: "audit", who, what = "mode", node, kind, old, new, why, "changed");
    }
}
