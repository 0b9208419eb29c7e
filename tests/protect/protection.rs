/// What protects the fileserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Nothing is limited; all is metered, as with protection.
    Off,
    /// A quota server whose limits adapt by such a rule, and the fileserver's own settings.
    By(Rule),
}

/// How limits adapt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Blame,
    Aimd,
    DoubleHalve,
}

impl Rule {
    pub(crate) const ALL: [Self; 3] = [Self::Blame, Self::Aimd, Self::DoubleHalve];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Blame => "blame",
            Self::Aimd => "aimd",
            Self::DoubleHalve => "double-halve",
        }
    }
}

/// Everybody comes from one address here.
const NO_ADDRESSES: (&str, &str) = ("QUOTA__LIMITS__IP__CPU__MODE", "off");

/// Two fifths of the CPU stay free, since who fetches something light needs it at once.
const SOFT_LIMIT: (&str, &str) = ("QUOTA__ADAPT__CPU__SOFT_LIMIT", "0.6");

/// Where the limits of whole kinds begin: at a third of what the CPU can do, since nobody alone shall have it.
const INITIAL: [(&str, &str); 2] =
    [("QUOTA__LIMITS__REPO__CPU__INITIAL", "20s"), ("QUOTA__LIMITS__USER__CPU__INITIAL", "20s")];

impl Protection {
    /// What the quota server is set to by its environment.
    pub(crate) fn environment(self) -> Vec<(&'static str, &'static str)> {
        let of_rule: &[(&str, &str)] = match self {
            Self::Off => {
                &[("QUOTA__LIMITS__REPO__CPU__MODE", "off"), ("QUOTA__LIMITS__USER__CPU__MODE", "off")]
            }
            Self::By(Rule::Blame) => &[("QUOTA__ADAPT__CPU__RULE", "blame"), SOFT_LIMIT],
            // An interval of a minute would outlast the experiment.
            Self::By(Rule::Aimd) => &[
                ("QUOTA__ADAPT__CPU__RULE", "aimd"),
                ("QUOTA__ADAPT__CPU__INTERVAL", "5s"),
                ("QUOTA__ADAPT__CPU__BACKOFF_FACTOR", "0.9"),
                SOFT_LIMIT,
                INITIAL[0],
                INITIAL[1],
            ],
            Self::By(Rule::DoubleHalve) => {
                &[("QUOTA__ADAPT__CPU__RULE", "double-halve"), INITIAL[0], INITIAL[1]]
            }
        };
        of_rule.iter().copied().chain([NO_ADDRESSES]).collect()
    }
}
