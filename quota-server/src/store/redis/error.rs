use std::error::Error;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError};

use crate::store::{Cause, StoreError};

/// What an error of Redis means for its caller. The messages carry no password: Redis never repeats one.
pub(super) fn classify(error: &RedisError) -> StoreError {
    let cause = match (error.kind(), code(error.code(), error.detail())) {
        (ErrorKind::Io, _) if is_broken_tls(error) => Cause::Denied,
        (ErrorKind::Io, _) => return StoreError::Unreachable(error.to_string()),
        (ErrorKind::AuthenticationFailed, _) | (_, Some("NOAUTH" | "WRONGPASS" | "NOPERM")) => Cause::Denied,
        (_, Some("READONLY")) => Cause::Readonly,
        (
            _,
            Some(
                "LOADING" | "BUSY" | "MASTERDOWN" | "NOREPLICAS" | "TRYAGAIN" | "CLUSTERDOWN" | "MOVED"
                | "ASK",
            ),
        ) => Cause::Busy,
        (ErrorKind::MasterNameNotFoundBySentinel, _) => Cause::Busy,
        (_, Some("OOM")) => Cause::Memory,
        (_, Some("WRONGTYPE")) => Cause::Corrupt,
        _ => return StoreError::Malformed(error.to_string()),
    };
    StoreError::Refused(error.to_string(), cause)
}

/// The code of an error. Before Redis 7.0, what fails within a script comes as an error of the script, and its own
/// code is in the text: `Error running script (call to f_…): @user_script:155: @user_script: 155: -READONLY You can't …`.
fn code<'a>(code: Option<&'a str>, detail: Option<&'a str>) -> Option<&'a str> {
    let of_script = detail.filter(|detail| detail.starts_with("Error running script"));
    let within =
        of_script.and_then(|detail| detail.split(": -").nth(1)).and_then(|rest| rest.split(' ').next());
    within.or(code)
}

/// Whether TLS failed, most likely for the certificate: rustls says so as data that is invalid.
fn is_broken_tls(error: &RedisError) -> bool {
    let cause = error.source().and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let io = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    io.is_some_and(|io| io.kind() == io::ErrorKind::InvalidData)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_script_s_error_is_found_in_old_and_new_servers() {
        let old = "Error running script (call to f_f012): @user_script:155: @user_script: 155: -READONLY You can't \
                   write against a read only replica.";
        assert_eq!(code(Some("ERR"), Some(old)), Some("READONLY"));
        assert_eq!(
            code(Some("READONLY"), Some("You can't write against a read only replica.")),
            Some("READONLY")
        );
        assert_eq!(code(Some("ERR"), Some("ARGV[1] is no bucket length: -OOM")), Some("ERR"));
        assert_eq!(code(None, None), None);
    }
}
