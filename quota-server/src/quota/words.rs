//! Amounts, denials and limits of single accounts in words, for logs and people.

use std::time::Duration;

use quota_core::{Account, Breach, Cut, Limit, Override, Ratio, Resource, Timestamp, WindowLength};
use quota_proto::wire_amount;

use super::{Denial, Label, Overriding, Sentence};
use crate::config::written_limit;

const MINUTE: Duration = Duration::from_secs(60);

/// What was refused and why, as a sentence.
pub fn denial_in_words(denial: &Denial, node: &Label, window: Duration) -> String {
    if let (true, Some(explained)) = (denial.blocked, &denial.explanation) {
        return explained.why.to_string();
    }
    let Breach { account, resource, used, limit, .. } = &denial.breach;
    let used = in_words(*resource, Limit::At(*used));
    let limit = in_words(*resource, *limit);
    let name = name(*resource);
    let window = window.as_secs_f64();
    let place = node.as_deref().map_or_else(String::new, |node| format!(" on {node}"));
    let why =
        denial.explanation.as_ref().map_or_else(String::new, |explained| format!("; {}", explained.why));
    format!("{account} used {used} of {limit} {name} in the last {window} s{place}{why}")
}

/// What an operator says of an account, and why.
pub(super) fn overriding_in_words(Overriding { account, word, reason, .. }: &Overriding) -> Sentence {
    let said = match word {
        Override::Blocked => " is blocked".to_owned(),
        Override::Exempt => " is exempt".to_owned(),
        Override::Limits(_) => " has limits of its own".to_owned(),
        Override::Weight(weight) => format!(" may use {} times what others may", f64::from(*weight)),
    };
    Sentence { account: account.clone(), said, reason: Some(reason.clone()) }
}

/// How much of its limits requests of a class may use of an account.
pub(super) fn part_in_words(account: &Account, class: &Label, part: Ratio) -> Sentence {
    let percent = part.millionths() as f64 / 10_000.0;
    let of_class =
        class.as_deref().map_or("that name no class".to_owned(), |class| format!("of class {class}"));
    let said = format!(": requests {of_class} may use {percent} % of its limits");
    Sentence { account: account.clone(), said, reason: None }
}

/// What an operator says, as it is written in the configuration file.
pub(crate) fn override_in_words(word: &Override, window: WindowLength) -> String {
    match word {
        Override::Blocked => "blocked".to_owned(),
        Override::Exempt => "exempt".to_owned(),
        Override::Weight(weight) => format!("weight {}", f64::from(*weight)),
        Override::Limits(limits) => {
            let written = limits.iter().filter_map(|(resource, limit)| {
                Some(format!(" {resource} {}", written_limit(resource, (*limit)?, window.length())))
            });
            format!("limits{}", written.collect::<String>())
        }
    }
}

/// The limit of a single account on a node, since when it has it, and why.
pub(super) fn cut_in_words(
    account: &Account,
    resource: Resource,
    cut: &Cut,
    node: &str,
    window: Duration,
) -> Sentence {
    let limit = limit_in_words(resource, cut.limit, window);
    let since = time_of_day(cut.since);
    let percent = (cut.blamed.share.millionths() + 5_000) / 10_000;
    let (shares, tenths) = (cut.blamed.tenths_of_fair_share / 10, cut.blamed.tenths_of_fair_share % 10);
    let tenths = if tenths == 0 { String::new() } else { format!(".{tenths}") };
    let pressure = f64::from(cut.blamed.pressure);
    let name = name(resource);
    let said = format!(
        ": {limit} on {node} since {since} (held {percent} % of the {name}, {shares}{tenths}x the fair share, while \
         pressure was {pressure:.2})"
    );
    Sentence { account: account.clone(), said, reason: None }
}

/// What may be used within a window: memory as the average held over it, as in the configuration.
pub(crate) fn limit_in_words(resource: Resource, limit: u64, window: Duration) -> String {
    let within = if window == MINUTE { "/min".to_owned() } else { format!(" in {} s", window.as_secs_f64()) };
    match resource {
        Resource::Cpu => format!("{} CPU-s{within}", cpu_seconds(limit)),
        Resource::Memory => {
            let bytes = u128::from(limit) * 1024 * 1_000_000 / window.as_micros().max(1);
            format!("{} of memory held", size(u64::try_from(bytes).unwrap_or(u64::MAX)))
        }
        Resource::Network => format!("{} over the network{within}", size(limit)),
    }
}

/// Bytes in the largest unit of which there is one.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} B"),
    }
}

/// Hours, minutes and seconds in UTC.
fn time_of_day(moment: Timestamp) -> String {
    let seconds = moment.as_micros() / 1_000_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

const fn name(resource: Resource) -> &'static str {
    match resource {
        Resource::Cpu => "CPU",
        Resource::Memory => "memory",
        Resource::Network => "network",
    }
}

/// An amount with its unit: seconds, byte-seconds or bytes.
pub(super) fn in_words(resource: Resource, amount: Limit) -> String {
    match (resource, amount) {
        (_, Limit::Unlimited) => "unlimited".to_owned(),
        (Resource::Cpu, Limit::At(micros)) => format!("{} s", cpu_seconds(micros)),
        (Resource::Memory, Limit::At(amount)) => format!("{} byte-seconds", wire_amount(resource, amount)),
        (Resource::Network, Limit::At(amount)) => format!("{amount} bytes"),
    }
}

fn cpu_seconds(micros: u64) -> String {
    let tenths = micros / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use quota_core::{Account, Blamed, Ipv6Prefix, Kind, Ratio, Scope};

    use super::super::Explanation;
    use super::*;

    fn alice() -> Account {
        Account::new(Kind::User, "alice", Ipv6Prefix::default()).unwrap()
    }

    fn cut(limit: u64, tenths_of_fair_share: u32) -> Cut {
        Cut {
            limit,
            // 12:03:10.9 on some day.
            since: Timestamp::from_micros((20_000 * 86_400 + 43_390) * 1_000_000 + 900_000),
            blamed: Blamed {
                share: Ratio::from_millionths(314_999),
                tenths_of_fair_share,
                pressure: Ratio::from_millionths(970_000),
            },
        }
    }

    #[test]
    fn a_denial_is_a_sentence_and_says_why_the_limit_is_so() {
        let breach = Breach {
            account: alice(),
            resource: Resource::Cpu,
            scope: Scope::Cluster,
            used: 104_250_000,
            limit: Limit::At(100_000_000),
            retry_after: Duration::ZERO,
            permanent: false,
        };
        let node = Label::new("node", Some("gitaly-01")).unwrap();
        let mut denial = Denial { breach, explanation: None, heavy: false, blocked: false };
        assert_eq!(
            denial_in_words(&denial, &node, MINUTE),
            "user alice used 104.2 s of 100.0 s CPU in the last 60 s on gitaly-01"
        );
        assert!(denial_in_words(&denial, &Label::default(), MINUTE).ends_with("in the last 60 s"));
        let why = Sentence { account: alice(), said: " is blocked".to_owned(), reason: Some("why".into()) };
        denial.explanation = Some(Explanation { since: None, why });
        let said = denial_in_words(&denial, &node, MINUTE);
        assert!(said.ends_with("on gitaly-01; user alice is blocked: why"), "{said}");
        denial.blocked = true;
        assert_eq!(denial_in_words(&denial, &node, MINUTE), "user alice is blocked: why");
    }

    #[test]
    fn a_limit_of_a_single_account_is_a_sentence_with_since_when_and_why() {
        let said =
            |resource, cut, window| cut_in_words(&alice(), resource, &cut, "gitaly-01", window).to_string();
        assert_eq!(
            said(Resource::Cpu, cut(120_000_000, 60), MINUTE),
            "user alice: 120.0 CPU-s/min on gitaly-01 since 12:03:10 (held 31 % of the CPU, 6x the fair share, while \
             pressure was 0.97)"
        );
        let other = said(Resource::Cpu, cut(120_000_000, 63), Duration::from_millis(1500));
        assert!(other.contains("120.0 CPU-s in 1.5 s on") && other.contains(", 6.3x the"), "{other}");
        let memory = said(Resource::Memory, cut((60 * 3) << 19, 5), MINUTE);
        assert!(memory.contains(": 1.5 GiB of memory held on gitaly-01 since"), "{memory}");
        assert!(memory.contains("(held 31 % of the memory, 0.5x the"), "{memory}");
        let network = said(Resource::Network, cut(1023, 5), MINUTE);
        assert!(network.contains(": 1023 B over the network/min on gitaly-01"), "{network}");
    }

    #[test]
    fn amounts_have_their_unit() {
        assert_eq!(in_words(Resource::Memory, Limit::At(2)), "2048 byte-seconds");
        assert_eq!(in_words(Resource::Network, Limit::At(7)), "7 bytes");
        assert_eq!(in_words(Resource::Network, Limit::Unlimited), "unlimited");
    }
}
