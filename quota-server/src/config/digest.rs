use config::{Value, ValueKind};
use sha2::{Digest as _, Sha256};

use super::schema::Table;

/// What all servers on one store decide by.
const SHARED: [&str; 8] =
    ["adapt", "classes", "default_class", "ip", "limits", "overrides", "prices", "window"];

/// Of those settings, in 48 bits, which a metric can hold.
pub(super) fn of(settings: &Table) -> u64 {
    let mut text = String::new();
    SHARED.iter().filter_map(|name| settings.get(*name)).for_each(|value| write(&mut text, value));
    let digest: [u8; 32] = Sha256::digest(text).into();
    digest.iter().take(6).fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// A value as one text, whatever the order of its keys.
fn write(text: &mut String, value: &Value) {
    match &value.kind {
        ValueKind::Table(table) => {
            let mut entries: Vec<_> = table.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (key, value) in entries {
                *text += &format!("{key:?}=");
                write(text, value);
            }
            text.push('}');
        }
        ValueKind::Array(values) => {
            text.push('[');
            values.iter().for_each(|value| write(text, value));
            text.push(']');
        }
        // With quotation marks around a string, so that no two values are written alike.
        scalar => *text += &format!("{scalar:?},"),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn of(text: &str) -> u64 {
        Config::from_toml(text).unwrap().digest
    }

    #[test]
    fn it_tells_apart_what_is_decided_by_and_nothing_else() {
        let one = "limits.user.cpu.max = \"200s\"\n[[overrides]]\nkind = \"user\"\nid = \"a\"\nreason = \"r\"\nweight = 2";
        let same = "http.listen = \"127.0.0.1:1\"\nstore.pool_size = 3\nlimits.user.cpu.max = \"200s\"\n\
                    [[overrides]]\nreason = \"r\"\nweight = 2\nid = \"a\"\nkind = \"user\"";
        assert_eq!(of(one), of(same));
        assert!(of(one) < 1 << 48);
        for other in [one.replace("200s", "201s"), one.replace("weight = 2", "weight = 3"), String::new()] {
            assert_ne!(of(one), of(&other), "{other}");
        }
    }
}
