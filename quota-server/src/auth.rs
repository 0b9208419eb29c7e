//! Who may ask what: from what a caller shows and what it asks for, to who it is or why it is refused.
//!
//! The adapters in `http/` and `grpc/` bring both, put the [`Caller`] into the extensions of the request, and say a
//! [`Refusal`] in their protocol. [`Access`] has the one table of what takes which role.

mod access;
mod caller;
mod digest;
mod tokens;

pub(crate) use self::access::Access;
pub use self::caller::{ANONYMOUS, Caller, Nodes, Role};
pub use self::digest::Digest;
pub use self::tokens::{Secret, Token, TokenFileError, Tokens};

/// Why a caller is refused. What it showed is not repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It shows nothing.
    #[error("a bearer token is needed")]
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

/// Knows callers by what they show.
#[derive(Debug)]
pub enum Auth {
    /// Whoever reaches the server may ask everything.
    Anyone,
    /// Those who have a token.
    Known(Tokens),
}

impl Auth {
    /// Who asks, if it may, by the header `authorization`; nobody in particular where what it asks for is open to all.
    pub(crate) fn authorize(
        &self,
        access: Access,
        authorization: Option<&str>,
    ) -> Result<Option<Caller>, Refusal> {
        let Access::Least(needed) = access else { return Ok(None) };
        let Self::Known(tokens) = self else { return Ok(Some(Caller::anonymous())) };
        let token = authorization.and_then(bearer).ok_or(Refusal::NoToken)?;
        let caller = tokens.caller(token).ok_or(Refusal::UnknownToken)?;
        if caller.role.may(needed) {
            Ok(Some(caller))
        } else {
            Err(Refusal::Role { name: (&*caller.name).into(), role: caller.role, needed })
        }
    }
}

/// The token in a header `authorization` (RFC 6750).
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

#[cfg(test)]
mod tests;
