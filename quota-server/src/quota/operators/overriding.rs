use std::time::Duration;

use prost::Message as _;
use quota_core::{Account, Kind, Override, Timestamp, Word};
use quota_proto::{override_word, v1, wire_override_word};

use crate::config::FileOverride;

/// What an operator says of an account, who, why, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overriding {
    pub(crate) account: Account,
    pub(crate) word: Override,
    pub(crate) reason: Box<str>,
    /// Empty in the configuration file, which does not tell.
    pub(crate) author: Box<str>,
    pub(crate) origin: OverrideOrigin,
    /// When it was said; the configuration file does not tell.
    pub(crate) said: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
}

/// Where an override comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverrideOrigin {
    /// It was put.
    Api,
    /// The configuration file has it.
    File,
}

impl OverrideOrigin {
    /// Every origin.
    pub const ALL: [Self; 2] = [Self::Api, Self::File];

    /// The name in the API and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::File => "file",
        }
    }
}

/// An override as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideStanding {
    /// Of whom.
    pub account: Account,
    /// What is said.
    pub word: Override,
    /// Why.
    pub reason: Box<str>,
    /// By whom; empty where the configuration file says it.
    pub author: Box<str>,
    /// Where it comes from.
    pub origin: OverrideOrigin,
    /// How long it still holds, if not for ever.
    pub expires_in: Option<Duration>,
}

impl Overriding {
    /// As it is told at a moment.
    pub(crate) fn at(&self, now: Timestamp) -> OverrideStanding {
        OverrideStanding {
            account: self.account.clone(),
            word: self.word,
            reason: self.reason.clone(),
            author: self.author.clone(),
            origin: self.origin,
            expires_in: self.until.map(|until| Duration::from_micros(until.since(now))),
        }
    }

    /// From what is stored under a name; `None` where it is no override.
    pub(super) fn read(name: &str, word: &Word) -> Option<Self> {
        if !is_override(name) {
            return None;
        }
        let wire = v1::Override::decode(word.text.as_deref()?).ok()?;
        let account = Account::from_spelling(wire.kind().try_into().ok()?, &wire.id).ok()?;
        Some(Self {
            account,
            word: override_word(wire.word).ok()?,
            reason: wire.reason.into(),
            author: wire.author.into(),
            origin: OverrideOrigin::Api,
            said: Some(word.said),
            until: word.until,
        })
    }
}

/// What is stored of an override. The message only grows, so that servers of different versions read it.
pub(super) fn text(account: &Account, word: &Override, reason: &str, author: &str) -> Vec<u8> {
    let wire = v1::Override {
        kind: v1::Kind::from(account.kind()).into(),
        id: account.id().to_owned(),
        word: Some(wire_override_word(word)),
        reason: reason.to_owned(),
        author: author.to_owned(),
        ..v1::Override::default()
    };
    wire.encode_to_vec()
}

/// Whether a name is that of an account, as [`Account::key`] makes it.
pub(super) fn is_override(name: &str) -> bool {
    name.split_once(':').is_some_and(|(kind, _)| kind.parse::<Kind>().is_ok())
}

impl From<&FileOverride> for Overriding {
    fn from(FileOverride { account, word, reason }: &FileOverride) -> Self {
        Self {
            account: account.clone(),
            word: *word,
            reason: reason.clone(),
            author: Box::default(),
            origin: OverrideOrigin::File,
            said: None,
            until: None,
        }
    }
}
