//! Who may ask what: from what a caller shows and what it asks for, to who it is or why it is refused.
//!
//! The adapters in `http/` and `grpc/` bring both, put the [`Caller`] into the extensions of the request, and say a
//! [`Refusal`] in their protocol. `access.rs` has the one table of what takes which role.

mod access;
mod caller;
mod digest;
mod tokens;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::config;

pub(crate) use self::access::Access;
pub use self::caller::{ANONYMOUS, Caller, Nodes, Role};
pub use self::digest::Digest;
pub use self::tokens::{Secret, Token, TokenFileError, Tokens};

/// Why a caller is refused. What it showed is not repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It shows nothing.
    #[error("a bearer token is needed, or a certificate of somebody who is known")]
    NoToken,
    /// What it shows is nobody's.
    #[error("the token is not known")]
    UnknownToken,
    /// It is another's to ask this.
    #[error("{name} has the role {role}, and this takes the role {needed}")]
    Role {
        /// Who asks.
        name: Box<str>,
        /// What it is.
        role: Role,
        /// What it would have to be.
        needed: Role,
    },
    /// It speaks for a node that is not its own.
    #[error("{name} may not speak for this node")]
    Node {
        /// Who asks.
        name: Box<str>,
    },
}

impl Refusal {
    /// Every [`Refusal::as_str`].
    pub const ALL: [&'static str; 4] = ["no_token", "unknown_token", "role", "node"];

    /// In a word, as the label of a metric.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NoToken => "no_token",
            Self::UnknownToken => "unknown_token",
            Self::Role { .. } => "role",
            Self::Node { .. } => "node",
        }
    }

    /// Whether showing another credential may help: it is not known who asks.
    pub const fn is_of_nobody(&self) -> bool {
        matches!(self, Self::NoToken | Self::UnknownToken)
    }
}

/// Knows callers by what they show: by the configuration in force, which may change.
#[derive(Debug)]
pub struct Auth {
    known: RwLock<Arc<Known>>,
    /// Tells that it is not as it was.
    changes: watch::Sender<()>,
}

/// Who is known.
#[derive(Debug)]
pub(crate) enum Known {
    /// Nobody in particular: whoever reaches the server may ask everything.
    Anyone,
    /// These.
    Callers {
        /// By a token.
        tokens: Tokens,
        /// By a name in the certificate of their connection.
        certificates: HashMap<Box<str>, Caller>,
    },
}

/// Who is known by a certificate that an authority of `tls.client_ca` vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Whose.
    pub caller: Caller,
    /// A common name of its subject, or an alternative one in the DNS.
    pub subject: Box<str>,
}

impl Known {
    /// Those of a configuration; reads the files of their tokens. Blocks.
    pub(crate) fn open(auth: &config::Auth) -> Result<Self, TokenFileError> {
        if auth.knows_nobody() {
            return Ok(Self::Anyone);
        }
        let of = |known: &Certificate| (known.subject.clone(), known.caller.clone());
        Ok(Self::Callers {
            tokens: Tokens::open(auth.tokens.clone())?,
            certificates: auth.certificates.iter().map(of).collect(),
        })
    }

    /// Whom a certificate of these names is of.
    fn named(&self, names: &[String]) -> Option<&Caller> {
        let Self::Callers { certificates, .. } = self else { return None };
        names.iter().find_map(|name| certificates.get(name.as_str()))
    }
}

impl Auth {
    pub(crate) fn new(known: Known) -> Self {
        Self { known: RwLock::new(Arc::new(known)), changes: watch::Sender::new(()) }
    }

    /// From now on these are known, on connections that are open as well.
    pub(crate) fn replace(&self, known: Known) {
        *self.known.write() = Arc::new(known);
        self.changes.send_replace(());
    }

    /// Hears when others may be known than before: what was begun for somebody is to end then.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Who asks, if it may, by the header `authorization`, or else by the names in the certificate of its connection; nobody
    /// in particular where what it asks for is open to all.
    pub(crate) fn authorize(
        &self,
        access: Access,
        authorization: Option<&str>,
        names: &[String],
    ) -> Result<Option<Caller>, Refusal> {
        let Access::Least(needed) = access else { return Ok(None) };
        let known = self.known();
        let Known::Callers { tokens, .. } = &*known else { return Ok(Some(Caller::anonymous())) };
        let caller = match authorization.and_then(bearer) {
            Some(token) => tokens.caller(token).ok_or(Refusal::UnknownToken)?,
            None => known.named(names).cloned().ok_or(Refusal::NoToken)?,
        };
        if caller.role.may(needed) {
            Ok(Some(caller))
        } else {
            Err(Refusal::Role { name: (&*caller.name).into(), role: caller.role, needed })
        }
    }

    /// Reads the files of tokens anew. Blocks.
    pub(crate) fn reread(&self) {
        if let Known::Callers { tokens, .. } = &*self.known()
            && tokens.reread()
        {
            self.changes.send_replace(());
        }
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read())
    }
}

/// The token in a header `authorization` (RFC 6750).
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

#[cfg(test)]
mod tests;
