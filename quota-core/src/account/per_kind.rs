use std::ops::{Index, IndexMut};

use super::Kind;

/// One value for each kind of account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PerKind<T>([T; 3]);

impl<T> PerKind<T> {
    /// From values in the order of [`Kind::ALL`].
    pub const fn new(repo: T, user: T, ip: T) -> Self {
        Self([repo, user, ip])
    }

    /// Asks `value` for each kind.
    pub fn from_fn(mut value: impl FnMut(Kind) -> T) -> Self {
        Self(Kind::ALL.map(&mut value))
    }

    /// Each kind with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, &T)> {
        Kind::ALL.into_iter().zip(&self.0)
    }
}

impl<T> Index<Kind> for PerKind<T> {
    type Output = T;

    fn index(&self, kind: Kind) -> &T {
        let [repo, user, ip] = &self.0;
        match kind {
            Kind::Repo => repo,
            Kind::User => user,
            Kind::Ip => ip,
        }
    }
}

impl<T> IndexMut<Kind> for PerKind<T> {
    fn index_mut(&mut self, kind: Kind) -> &mut T {
        let [repo, user, ip] = &mut self.0;
        match kind {
            Kind::Repo => repo,
            Kind::User => user,
            Kind::Ip => ip,
        }
    }
}
