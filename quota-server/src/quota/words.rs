//! Amounts and denials in words, for logs and people.

use std::time::Duration;

use quota_core::{Breach, Limit, Resource};
use quota_proto::wire_amount;

use super::Label;

/// What was refused and why, as a sentence.
pub fn denial_in_words(denied_by: &Breach, node: &Label, window: Duration) -> String {
    let Breach { account, resource, used, limit, .. } = denied_by;
    let resource_name = match resource {
        Resource::Cpu => "CPU",
        Resource::Memory => "memory",
        Resource::Network => "network",
    };
    let used = in_words(*resource, Limit::At(*used));
    let limit = in_words(*resource, *limit);
    let window = window.as_secs_f64();
    let place = node.as_deref().map_or_else(String::new, |node| format!(" on {node}"));
    format!("{account} used {used} of {limit} {resource_name} in the last {window} s{place}")
}

/// An amount with its unit: seconds, byte-seconds or bytes.
pub(super) fn in_words(resource: Resource, amount: Limit) -> String {
    match (resource, amount) {
        (_, Limit::Unlimited) => "unlimited".to_owned(),
        (Resource::Cpu, Limit::At(micros)) => {
            let tenths = micros / 100_000;
            format!("{}.{} s", tenths / 10, tenths % 10)
        }
        (Resource::Memory, Limit::At(amount)) => format!("{} byte-seconds", wire_amount(resource, amount)),
        (Resource::Network, Limit::At(amount)) => format!("{amount} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use quota_core::{Account, Ipv6Prefix, Kind, Scope};

    use super::*;

    #[test]
    fn a_denial_is_a_sentence() {
        let breach = Breach {
            account: Account::new(Kind::User, "alice", Ipv6Prefix::default()).unwrap(),
            resource: Resource::Cpu,
            scope: Scope::Cluster,
            used: 104_250_000,
            limit: Limit::At(100_000_000),
            retry_after: Duration::ZERO,
            permanent: false,
        };
        let node = Label::new("node", Some("gitaly-01")).unwrap();
        assert_eq!(
            denial_in_words(&breach, &node, Duration::from_secs(60)),
            "user alice used 104.2 s of 100.0 s CPU in the last 60 s on gitaly-01"
        );
        assert!(
            denial_in_words(&breach, &Label::default(), Duration::from_secs(60))
                .ends_with("in the last 60 s")
        );
    }

    #[test]
    fn amounts_have_their_unit() {
        assert_eq!(in_words(Resource::Memory, Limit::At(2)), "2048 byte-seconds");
        assert_eq!(in_words(Resource::Network, Limit::At(7)), "7 bytes");
        assert_eq!(in_words(Resource::Network, Limit::Unlimited), "unlimited");
    }
}
