//! What the manifest for Kubernetes and the unit for systemd say of the server, against the server's own reading of it.
//! Their own validators read them in `scripts/validate-deploy`.

use std::time::Duration;

use quota_core::{Kind, Mode, Resource};
use quota_server::config::Config;

use super::text;

/// The file in the ConfigMap, without what the block is indented by.
fn configuration(manifest: &str) -> String {
    let (_, block) = manifest.split_once("quota-server.toml: |\n").expect("a file");
    let lines =
        block.lines().map_while(|line| if line.is_empty() { Some("") } else { line.strip_prefix("    ") });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The number after a key, once.
fn seconds(text: &str, key: &str) -> Duration {
    let (_, after) = text.split_once(key).expect("the key");
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    Duration::from_secs(digits.parse().expect("a number"))
}

#[test]
fn the_configuration_in_the_manifest_is_good_and_its_pod_lives_until_the_server_has_stopped() {
    let manifest = text("deploy/kubernetes/quota-server.yaml");
    let config = Config::from_toml(&configuration(&manifest)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.auth.tokens.len(), 3, "the block is read to its end");
    for kind in Kind::ALL {
        assert_eq!(config.policy.ceilings(kind)[Resource::Cpu].mode, Mode::Shadow);
    }
    let patience = seconds(&manifest, "terminationGracePeriodSeconds: ");
    assert!(patience > config.shutdown.drain + config.shutdown.grace);
}

#[test]
fn systemd_waits_until_the_server_has_stopped() {
    let patience = seconds(&text("deploy/systemd/quota-server.service"), "TimeoutStopSec=");
    let shutdown = Config::from_toml("").expect("the defaults").shutdown;
    assert!(patience > shutdown.drain + shutdown.grace);
}
