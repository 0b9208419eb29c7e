use std::collections::BTreeMap;

use serde::Deserialize;

/// How requests are decided on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckMode {
    /// The service is asked about each.
    #[default]
    Strict,
    /// Requests that come often from the same accounts are admitted by shares, which the service has reserved for this
    /// fileserver beforehand: most of them without asking. docs/fileserver.md says what that gives up.
    Local,
}

/// How requests are decided on, by RPC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckSettings {
    /// Of all RPCs that are not named.
    pub mode: CheckMode,
    /// Of these, by their full names.
    pub rpcs: BTreeMap<String, CheckMode>,
}

impl CheckSettings {
    /// Whether requests of any RPC may be admitted by shares.
    pub(crate) fn is_any_local(&self) -> bool {
        self.mode == CheckMode::Local || self.rpcs.values().any(|mode| *mode == CheckMode::Local)
    }

    /// Whether requests of an RPC may be admitted by shares.
    pub(crate) fn is_local(&self, rpc: &str) -> bool {
        *self.rpcs.get(rpc).unwrap_or(&self.mode) == CheckMode::Local
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    #[test]
    fn an_rpc_that_is_named_has_its_own_mode() {
        let text = "[checks]\nmode = \"local\"\nrpcs = { \"/a.B/Dear\" = \"strict\" }";
        let Settings { checks, .. } = Settings::from_toml(text).unwrap();
        assert_eq!((checks.is_local("/a.B/Cheap"), checks.is_local("/a.B/Dear")), (true, false));
        assert!(!CheckSettings::default().is_local("/a.B/Cheap"));
        assert!(checks.is_any_local() && !CheckSettings::default().is_any_local());
        assert!(Settings::from_toml("checks.mode = \"lax\"").is_err());
    }
}
