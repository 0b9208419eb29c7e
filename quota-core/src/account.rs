//! Who is charged: repositories, users and IP addresses, and the one spelling that each has.

mod ip;
mod per_kind;
mod repo;

pub use ip::Ipv6Prefix;
pub use per_kind::PerKind;

/// The longest name of an account, in bytes.
pub const MAX_ID_BYTES: usize = 1024;

/// What kind of account it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A repository.
    Repo,
    /// A user, or a key that stands for one.
    User,
    /// A client's address.
    Ip,
}

impl Kind {
    /// Every kind, in the order in which accounts are stored and shown.
    pub const ALL: [Self; 3] = [Self::Repo, Self::User, Self::Ip];

    /// The name in the API, the configuration, metrics, logs and keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Repo => "repo",
            Self::User => "user",
            Self::Ip => "ip",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Kind {
    type Err = InvalidAccount;

    fn from_str(name: &str) -> Result<Self, InvalidAccount> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or(InvalidAccount::UnknownKind)
    }
}

/// Why a name is no account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAccount {
    /// Nothing in it.
    #[error("must not be empty")]
    Empty,
    /// Over [`MAX_ID_BYTES`].
    #[error("must be at most {MAX_ID_BYTES} bytes")]
    TooLong,
    /// NUL, newline and the like.
    #[error("must not contain control characters")]
    ControlCharacter,
    /// `.` or `..` between slashes.
    #[error("must not contain the segments `.` or `..`")]
    DotSegment,
    /// Not an address, or one with a port or a zone.
    #[error("must be an IPv4 or IPv6 address without port or zone")]
    NotAnAddress,
    /// A kind other than repo, user and ip.
    #[error("must be repo, user or ip")]
    UnknownKind,
}

/// Who is charged: a kind and the one spelling of its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    kind: Kind,
    id: Box<str>,
}

impl Account {
    /// From a name as a caller gives it; IPv6 addresses are grouped by `prefix`.
    pub fn new(kind: Kind, id: &str, prefix: Ipv6Prefix) -> Result<Self, InvalidAccount> {
        check(id)?;
        let id = match kind {
            Kind::Repo => repo::normalise(id)?,
            Kind::User => id.into(),
            Kind::Ip => ip::normalise(id, prefix)?,
        };
        Ok(Self { kind, id })
    }

    /// From the one spelling of its name, as [`Account::id`] gave it.
    pub fn from_spelling(kind: Kind, id: &str) -> Result<Self, InvalidAccount> {
        check(id)?;
        Ok(Self { kind, id: id.into() })
    }

    /// The kind.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The name, in its one spelling.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name in a key: `<kind>:<id>` in at most 126 bytes of printable ASCII without `{` and `}`, different
    /// for different accounts.
    #[cfg(feature = "keys")]
    pub fn key(&self) -> String {
        crate::key::encode(self.kind.as_str(), &self.id)
    }
}

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}

/// What every name must be, of whatever kind.
fn check(id: &str) -> Result<(), InvalidAccount> {
    if id.is_empty() {
        return Err(InvalidAccount::Empty);
    }
    if id.len() > MAX_ID_BYTES {
        return Err(InvalidAccount::TooLong);
    }
    if id.chars().any(char::is_control) {
        return Err(InvalidAccount::ControlCharacter);
    }
    Ok(())
}

/// The accounts of one request: at most one of each kind, and at least one in all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Accounts(Vec<Account>);

impl Accounts {
    /// From names as a caller gives them; a missing one is skipped.
    ///
    /// The error tells which kind is at fault, or `None` where all three are missing.
    pub fn new(
        repo: Option<&str>,
        user: Option<&str>,
        ip: Option<&str>,
        prefix: Ipv6Prefix,
    ) -> Result<Self, (Option<Kind>, InvalidAccount)> {
        let accounts = Kind::ALL
            .into_iter()
            .zip([repo, user, ip])
            .filter_map(|(kind, id)| Some((kind, id?)))
            .map(|(kind, id)| Account::new(kind, id, prefix).map_err(|error| (Some(kind), error)))
            .collect::<Result<Vec<_>, _>>()?;
        if accounts.is_empty() { Err((None, InvalidAccount::Empty)) } else { Ok(Self(accounts)) }
    }

    /// The accounts, in the order of [`Kind::ALL`].
    pub fn as_slice(&self) -> &[Account] {
        &self.0
    }
}

impl From<Account> for Accounts {
    fn from(account: Account) -> Self {
        Self(vec![account])
    }
}

#[cfg(test)]
mod tests;
