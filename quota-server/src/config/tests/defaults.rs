use std::collections::BTreeSet;

use quota_core::{Kind, Resource};

use super::super::Config;
use super::{from_env, refusal};
use crate::config::layers::DEFAULTS;

/// Every key of the defaults with its value, as TOML shows it.
pub(super) fn leaves() -> Vec<(String, toml::Value)> {
    fn walk(path: &str, value: toml::Value, leaves: &mut Vec<(String, toml::Value)>) {
        match value {
            toml::Value::Table(table) => {
                for (key, value) in table {
                    let dot = if path.is_empty() { "" } else { "." };
                    walk(&format!("{path}{dot}{key}"), value, leaves);
                }
            }
            value => leaves.push((path.to_owned(), value)),
        }
    }
    let mut leaves = Vec::new();
    walk("", toml::Value::Table(toml::from_str(DEFAULTS).unwrap()), &mut leaves);
    leaves
}

#[test]
fn the_defaults_hold_every_setting() {
    let mut expected: BTreeSet<String> = [
        "overrides",
        "http.listen",
        "http.max_connections",
        "http.max_connections_per_address",
        "http.idle_timeout",
        "http.unread_timeout",
        "grpc.listen",
        "grpc.max_connections",
        "grpc.max_connections_per_address",
        "grpc.max_streams",
        "grpc.idle_timeout",
        "grpc.unread_timeout",
        "store.url",
        "store.deadline",
        "store.fail",
        "store.pool_size",
        "store.max_accounts",
        "window.length",
        "ip.ipv6_prefix",
        "default_class",
        "classes.default.slots",
        "classes.default.min_slots",
        "classes.default.tolerance",
        "classes.default.node_slots",
        "classes.default.lease",
        "classes.default.service",
        "classes.default.max_wait",
        "classes.default.max_queue",
        "classes.default.max_run",
        "classes.default.quota",
        "classes.interactive.service",
        "classes.api.service",
        "classes.ci.service",
        "classes.background.service",
        "auth.disabled",
        "auth.tokens",
        "auth.certificates",
        "tls.cert",
        "tls.key",
        "tls.client_ca",
        "log.format",
        "log.accounts",
        "log.key",
        "log.key_file",
        "log.requests",
        "trace.otlp",
        "trace.sample",
        "shutdown.drain",
        "shutdown.grace",
    ]
    .map(str::to_owned)
    .into();
    for resource in Resource::ALL {
        let names = ["rule", "interval", "soft_limit", "backoff_factor", "step"];
        expected.extend(names.map(|name| format!("adapt.{resource}.{name}")));
        expected.insert(format!("prices.default.{resource}"));
        expected.insert(format!("charges.{resource}"));
        for kind in Kind::ALL {
            let names = ["mode", "min", "initial", "max"];
            expected.extend(names.map(|name| format!("limits.{kind}.{resource}.{name}")));
        }
    }
    assert_eq!(leaves().into_iter().map(|(key, _)| key).collect::<BTreeSet<_>>(), expected);
}

#[test]
fn every_setting_is_read_and_checked() {
    for (key, default) in leaves() {
        // A flag has no value of its type that is no good; what it does is tested with the addresses.
        let wrong = match default {
            toml::Value::String(_) | toml::Value::Array(_) => "?",
            toml::Value::Integer(_) | toml::Value::Float(_) => "-1",
            _ => continue,
        };
        let name = format!("QUOTA__{}", key.replace('.', "__").to_uppercase());
        let message = refusal(from_env([(&name, wrong)]));
        assert!(message.starts_with(&format!("environment variable {name}: {key}: must be ")), "{message}");
    }
}

#[test]
fn the_defaults_written_as_a_file_change_nothing() {
    assert_eq!(Config::from_toml(DEFAULTS).unwrap(), Config::from_toml("").unwrap());
}
