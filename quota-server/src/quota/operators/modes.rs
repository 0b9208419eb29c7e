use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use quota_core::{Kind, Mode, Place, Said, Timestamp, Word, node_key};
use quota_proto::{Invalid, v1};

use super::overrides::check_reason;
use crate::quota::{Label, Quota, QuotaError};
use crate::store::Saying;

/// What the names of all of them begin with.
const PREFIX: &str = "mode:";

/// How far limits are enforced in a part of the system, by an operator's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeSetting {
    /// Which part.
    pub place: Place,
    /// The most that is done there when a limit is reached.
    pub mode: Mode,
    /// Why.
    pub reason: Box<str>,
    /// By whom.
    pub author: Box<str>,
    /// Since when, by the store's clock.
    pub said: Timestamp,
}

/// A mode as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeStanding {
    /// What is said.
    pub setting: ModeSetting,
    /// For how long it has held.
    pub since: Duration,
}

/// A part of the system whose mode is to be set or taken back.
#[derive(Clone, Debug)]
pub struct ModeRequest {
    /// Which.
    pub place: Place,
    /// Who asks.
    pub author: Arc<str>,
}

/// A mode that is to be set.
#[derive(Clone, Debug)]
pub struct PutMode {
    request: ModeRequest,
    mode: Mode,
    reason: Box<str>,
}

impl ModeRequest {
    /// Of a node, or of a kind, or else of all.
    pub fn new(node: Option<&str>, kind: Option<Kind>, author: Arc<str>) -> Result<Self, Invalid> {
        let node = Label::new("node", node)?;
        let place = match (node.as_deref(), kind) {
            (None, None) => Place::System,
            (None, Some(kind)) => Place::Kind(kind),
            (Some(node), None) => Place::Node(node.into()),
            (Some(_), Some(_)) => return Err(Invalid::new("kind", "must not be given beside a node")),
        };
        Ok(Self { place, author })
    }
}

impl PutMode {
    /// With the reason.
    pub fn new(request: ModeRequest, mode: Mode, reason: &str) -> Result<Self, Invalid> {
        check_reason(reason)?;
        Ok(Self { request, mode, reason: reason.into() })
    }
}

impl ModeSetting {
    /// As it is told at a moment.
    fn at(&self, now: Timestamp) -> ModeStanding {
        ModeStanding { setting: self.clone(), since: Duration::from_micros(now.since(self.said)) }
    }

    /// From what is stored under a name; `None` where it is no mode.
    pub(super) fn read(name: &str, word: &Word) -> Option<Self> {
        if !is_mode(name) {
            return None;
        }
        let wire = v1::ModeSetting::decode(word.text.as_deref()?).ok()?;
        let kind = wire.kind.map(|kind| v1::Kind::try_from(kind).ok().and_then(|kind| kind.try_into().ok()));
        let kind = match kind {
            Some(None) => return None,
            kind => kind.flatten(),
        };
        let author: Arc<str> = wire.author.as_str().into();
        let ModeRequest { place, .. } = ModeRequest::new(Some(&wire.node), kind, author).ok()?;
        Some(Self {
            place,
            mode: wire.mode().try_into().ok()?,
            reason: wire.reason.into(),
            author: wire.author.into(),
            said: word.said,
        })
    }

    /// What is stored of it. The message only grows, so that servers of different versions read it.
    fn text(&self) -> Vec<u8> {
        wire_mode(self).encode_to_vec()
    }
}

/// A mode as it travels, but for how long it has held.
pub(crate) fn wire_mode(setting: &ModeSetting) -> v1::ModeSetting {
    let (node, kind) = match &setting.place {
        Place::System => ("", None),
        Place::Kind(kind) => ("", Some(v1::Kind::from(*kind).into())),
        Place::Node(node) => (&**node, None),
    };
    v1::ModeSetting {
        node: node.to_owned(),
        kind,
        mode: v1::Mode::from(setting.mode).into(),
        reason: setting.reason.to_string(),
        author: setting.author.to_string(),
        since: None,
    }
}

pub(super) fn is_mode(name: &str) -> bool {
    name.starts_with(PREFIX)
}

fn name_of(place: &Place) -> String {
    match place {
        Place::System => format!("{PREFIX}system"),
        Place::Kind(kind) => format!("{PREFIX}kind:{kind}"),
        Place::Node(node) => format!("{PREFIX}{}", node_key(node)),
    }
}

impl Quota {
    /// What operators say of how far limits are enforced: of the system, of kinds and of nodes.
    pub async fn list_modes(&self) -> Result<Vec<ModeStanding>, QuotaError> {
        let now = self.refresh_operators().await?;
        Ok(self.operators.in_force().modes.iter().map(|setting| setting.at(now)).collect())
    }

    /// Sets how far limits are enforced in a part, in place of what was said before.
    pub async fn put_mode(&self, request: PutMode) -> Result<ModeStanding, QuotaError> {
        let PutMode { request: ModeRequest { place, author }, mode, reason } = request;
        let name = name_of(&place);
        let author = (&*author).into();
        let mut setting = ModeSetting { place, mode, reason, author, said: Timestamp::from_micros(0) };
        let heard = self
            .say(&setting.author, Saying { name: &name, text: Some(&setting.text()), lasts: None })
            .await?;
        let Said::Done { before } = heard.said else { return Err(QuotaError::TooManyOverrides) };
        let before = before.and_then(|before| ModeSetting::read(&name, &before));
        let old = before.map(|before| before.mode);
        self.audit_mode(&setting.author, &setting.place, old, Some(mode), &setting.reason);
        self.learn_what_was_said().await;
        setting.said = heard.now;
        Ok(setting.at(heard.now))
    }

    /// Takes back what was said of a part.
    pub async fn delete_mode(&self, request: ModeRequest) -> Result<(), QuotaError> {
        let ModeRequest { place, author } = request;
        let name = name_of(&place);
        let heard = self.say(&author, Saying { name: &name, text: None, lasts: None }).await?;
        let Said::Done { before } = heard.said else { return Err(QuotaError::NothingSaid) };
        let old = before.and_then(|before| ModeSetting::read(&name, &before)).map(|before| before.mode);
        self.audit_mode(&author, &place, old, None, "");
        self.learn_what_was_said().await;
        Ok(())
    }
}
