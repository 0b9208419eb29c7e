//! Which RPCs there are: a limit for one that the guarded service does not have would silently limit nothing.

use prost::Message as _;
use prost_types::FileDescriptorSet;

use super::settings::InvalidSetting;

/// What was given is no `FileDescriptorSet`.
#[derive(Debug, thiserror::Error)]
#[error("no descriptor of services: {0}")]
pub struct InvalidDescriptor(#[source] prost::DecodeError);

/// The paths of all RPCs in an encoded `FileDescriptorSet`, such as `tonic::include_file_descriptor_set!` gives:
/// `/gitaly.SSHService/SSHUploadPack`.
///
/// # Errors
/// Where it is none.
pub fn rpc_names(file_descriptor_set: &[u8]) -> Result<Vec<String>, InvalidDescriptor> {
    let set = FileDescriptorSet::decode(file_descriptor_set).map_err(InvalidDescriptor)?;
    let mut names = Vec::new();
    for file in &set.file {
        let package = match file.package() {
            "" => String::new(),
            package => format!("{package}."),
        };
        for service in &file.service {
            let rpcs = service.method.iter();
            names.extend(rpcs.map(|rpc| format!("/{package}{}/{}", service.name(), rpc.name())));
        }
    }
    Ok(names)
}

/// Whether `rpc` is among the names; the error has the nearest of them.
pub(super) fn check_known(key: &str, rpc: &str, known: &[String]) -> Result<(), InvalidSetting> {
    if known.iter().any(|name| name == rpc) {
        return Ok(());
    }
    // One that is left unfinished is near, however much is missing: `PostUploadPack` of
    // `PostUploadPackWithSidechannel`.
    let nearest = known.iter().min_by_key(|name| (!name.starts_with(rpc), distance(rpc, name)));
    let reason = match nearest {
        Some(nearest) => format!("is an RPC that no service has: did you mean {nearest:?}?"),
        None => "is an RPC that no service has: there is none at all".to_owned(),
    };
    Err(InvalidSetting::new(key, reason))
}

/// How many characters must be added, left out or replaced (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // Of what of `a` was looked at, the distance to the first so many characters of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_a_descriptor() {
        let names = rpc_names(quota_proto::FILE_DESCRIPTOR_SET).unwrap();
        for known in ["/quota.v1.QuotaService/Check", "/quota.v1.OverrideService/Put"] {
            assert!(names.contains(&known.to_owned()), "{names:?}");
        }
        assert!(names.iter().all(|name| name.starts_with("/quota.v1.")), "{names:?}");
        assert!(rpc_names(b"no descriptor").is_err());
    }

    #[test]
    fn distances_are_those_of_levenshtein() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("ää", "a", 2),
            ("flaw", "lawn", 2),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn an_unknown_rpc_is_refused_with_the_nearest_name() {
        let known = ["/g.SSHService/SSHUploadPack", "/g.SmartHTTPService/PostUploadPackWithSidechannel"];
        let known = known.map(str::to_owned);
        let told = |rpc, known: &[String]| check_known("concurrency", rpc, known).unwrap_err().to_string();
        assert_eq!(
            told("/g.SmartHTTPService/PostUploadPack", &known),
            "concurrency is an RPC that no service has: did you mean \
             \"/g.SmartHTTPService/PostUploadPackWithSidechannel\"?"
        );
        assert!(
            told("/g.SSHService/UploadPack", &known)
                .ends_with("did you mean \"/g.SSHService/SSHUploadPack\"?")
        );
        assert_eq!(told("x", &[]), "concurrency is an RPC that no service has: there is none at all");
        assert!(check_known("concurrency", &known[0], &known).is_ok());
    }
}
