/// The most usage an account may have of a resource before it is refused.
///
/// Ordered by what it allows: [`Limit::Unlimited`] is above every amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// This much, in the resource's internal unit; 0 refuses everything.
    At(u64),
    /// Never refused.
    Unlimited,
}

impl Limit {
    /// Whether usage is at or over the limit.
    pub fn reached_by(self, usage: u64) -> bool {
        self <= Self::At(usage)
    }
}

/// What happens when a limit is reached. Ordered by how much that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The limit is not compared.
    Off,
    /// Reaching it is told and counted, and refuses nothing.
    Shadow,
    /// Reaching it refuses.
    Enforce,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Off, Self::Shadow, Self::Enforce];

    /// The name in the API, the configuration, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Shadow => "shadow",
            Self::Enforce => "enforce",
        }
    }
}

/// A limit in force, and what happens when it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The limit.
    pub limit: Limit,
    /// What happens when it is reached.
    pub mode: Mode,
}

impl Bound {
    /// Whether this much usage is a breach: reached, and compared at all.
    pub fn breached_by(self, usage: u64) -> bool {
        self.mode != Mode::Off && self.limit.reached_by(usage)
    }

    /// Whether this much usage refuses a request: a breach of an enforced limit.
    pub fn refuses(self, usage: u64) -> bool {
        self.mode == Mode::Enforce && self.limit.reached_by(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_at_its_value_and_zero_by_nothing() {
        assert!(!Limit::At(10).reached_by(9));
        assert!(Limit::At(10).reached_by(10));
        assert!(Limit::At(0).reached_by(0));
        assert!(!Limit::Unlimited.reached_by(u64::MAX));
    }
}
