use std::fmt;

use serde::Deserialize;

use crate::args::Resource;
use crate::units::amount;

/// A limit: a number, or the word `unlimited`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Limit {
    At(f64),
    Word(String),
}

impl Limit {
    pub(crate) fn in_words(&self, resource: Resource) -> String {
        match self {
            Self::At(value) => amount(resource, *value),
            Self::Word(word) => word.clone(),
        }
    }
}

/// One value for each resource.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PerResource<T> {
    cpu: T,
    memory: T,
    network: T,
}

impl<T> PerResource<T> {
    pub(crate) const fn of(&self, resource: Resource) -> &T {
        match resource {
            Resource::Cpu => &self.cpu,
            Resource::Memory => &self.memory,
            Resource::Network => &self.network,
        }
    }
}

/// Who it is about.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Name {
    pub(crate) kind: String,
    pub(crate) id: String,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}
