/// What a check came to, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Below every limit that is compared.
    Allow,
    /// Refused.
    Deny,
    /// Allowed, where a shadowed limit would have refused.
    Shadow,
    /// Allowed without asking the store, by the fail policy.
    Unchecked,
    /// Answered with an error.
    Error,
}

impl Outcome {
    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Shadow => "shadow",
            Self::Unchecked => "unchecked",
            Self::Error => "error",
        }
    }
}

/// What is asked of the store, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Admit.
    Admit,
    /// Settle.
    Settle,
    /// Usage.
    Usage,
    /// Calibrate.
    Calibrate,
    /// Nodes.
    Nodes,
    /// Post.
    Post,
    /// Posts.
    Posts,
    /// Words of operators.
    Words,
    /// Say.
    Say,
    /// Restore.
    Restore,
    /// Acquire slots.
    Acquire,
    /// Renew slots.
    Renew,
    /// Safety.
    Safety,
    /// Probe.
    Probe,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 14] = [
        Self::Admit,
        Self::Settle,
        Self::Usage,
        Self::Calibrate,
        Self::Nodes,
        Self::Post,
        Self::Posts,
        Self::Words,
        Self::Say,
        Self::Restore,
        Self::Acquire,
        Self::Renew,
        Self::Safety,
        Self::Probe,
    ];

    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Settle => "settle",
            Self::Usage => "usage",
            Self::Calibrate => "calibrate",
            Self::Nodes => "nodes",
            Self::Post => "post",
            Self::Posts => "posts",
            Self::Words => "words",
            Self::Say => "say",
            Self::Restore => "restore",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Safety => "safety",
            Self::Probe => "probe",
        }
    }
}

/// What an operator changes, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// What is said of an account.
    Override,
    /// How far limits are enforced.
    Mode,
}

impl Change {
    /// Every change.
    pub const ALL: [Self; 2] = [Self::Override, Self::Mode];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Override => "override",
            Self::Mode => "mode",
        }
    }
}

/// What of a fileserver is beyond what it may charge, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// A report.
    Report,
    /// The price of a check, or its share.
    Check,
}

impl Beyond {
    /// Each of them.
    pub const ALL: [Self; 2] = [Self::Report, Self::Check];

    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Check => "check",
        }
    }
}
