use serde::Deserialize;

/// What is done with the cgroups of requests beside counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CgroupSettings {
    /// Whether requests of accounts that are cut on this fileserver yield the CPU to others: their cgroups get a tenth of the
    /// weight, those that run already included. They use what nobody else wants, and are never stopped. Default: yes, since no
    /// limit reaches what was admitted before it.
    #[serde(rename = "yield")]
    pub yields: bool,
}

impl Default for CgroupSettings {
    fn default() -> Self {
        Self { yields: true }
    }
}
