/// Why a store may lose what it holds before its time: usage, limits of nodes, what operators say. The label of a metric, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// It evicts keys when it is full.
    Eviction,
    /// A restart loses all of it.
    Persistence,
}

/// Whether there is a risk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Danger {
    /// No.
    #[default]
    No,
    /// The store does not tell, or not to this server.
    Unknown,
    /// Yes.
    Yes,
}

/// What is known of each risk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Safety {
    /// Of eviction.
    pub eviction: Danger,
    /// Of a restart.
    pub persistence: Danger,
}

impl Risk {
    /// Every risk.
    pub const ALL: [Self; 2] = [Self::Eviction, Self::Persistence];

    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Eviction => "eviction",
            Self::Persistence => "persistence",
        }
    }

    /// What is wrong, and what would be right.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Eviction => "maxmemory-policy may evict what is still needed: set noeviction",
            Self::Persistence => {
                "neither appendonly nor save is set, and a restart forgets: set appendonly yes"
            }
        }
    }
}

impl Safety {
    /// What is known of a risk.
    pub const fn of(&self, risk: Risk) -> Danger {
        match risk {
            Risk::Eviction => self.eviction,
            Risk::Persistence => self.persistence,
        }
    }
}
