use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::Refusal;

/// What everybody is called where nobody is asked for a token. No token can have this name.
pub const ANONYMOUS: &str = "anonymous";

/// What a caller may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Checks, reports and pressure, for its nodes.
    Fileserver,
    /// To see, and to change nothing.
    Reader,
    /// Everything.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Fileserver, Self::Reader, Self::Admin];

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fileserver => "fileserver",
            Self::Reader => "reader",
            Self::Admin => "admin",
        }
    }

    /// Whether it may do what takes a role. A fileserver does not see what others use, and a reader is no fileserver.
    pub fn may(self, needed: Self) -> bool {
        self == needed || self == Self::Admin
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| "must be \"fileserver\", \"reader\" or \"admin\"".to_owned())
    }
}

/// The nodes that a caller may speak for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Any.
    All,
    /// These.
    Named(Arc<BTreeSet<Box<str>>>),
}

/// Who asks. Every request that is not open to all carries it in its extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// As the configuration names it: the author of what it changes, and the scope of the sources of its reports.
    pub name: Arc<str>,
    /// What it may ask.
    pub role: Role,
    /// Whom it may speak for.
    pub nodes: Nodes,
}

impl Caller {
    /// Anybody, where nobody is asked.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), role: Role::Admin, nodes: Nodes::All }
    }

    /// Whether it may check, report and tell pressure in the name of a node; where none is named it speaks for no other.
    pub(crate) fn speaks_for(&self, node: Option<&str>) -> Result<(), Refusal> {
        match (&self.nodes, node) {
            (Nodes::Named(names), Some(node)) if !names.contains(node) => {
                Err(Refusal::Node { name: (&*self.name).into() })
            }
            _ => Ok(()),
        }
    }

    /// The first of the nodes that it is bound to, if it is.
    pub(crate) fn first_node(&self) -> Option<&str> {
        match &self.nodes {
            Nodes::All => None,
            Nodes::Named(names) => names.first().map(|name| &**name),
        }
    }
}
