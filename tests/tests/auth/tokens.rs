//! The tokens of the tests, as an operator would configure them.

use quota_tests::server::{MEMORY, TestServer};

/// Each with its role, which is its name too.
pub(crate) const TOKENS: [(&str, &str); 3] = [
    ("fileserver", "t0ken-of-a-fileserver"),
    ("reader", "t0ken-of-a-reader"),
    ("admin", "t0ken-of-an-admin"),
];

/// The node that the fileserver may speak for.
pub(crate) const NODE: &str = "gitaly-01";

/// A token that nobody has.
pub(crate) const UNKNOWN: &str = "t0ken-of-nobody-known";

pub(crate) fn token(role: &str) -> &'static str {
    TOKENS.iter().find(|(name, _)| *name == role).unwrap().1
}

/// As lines of a configuration file.
pub(crate) fn configured(name: &str, role: &str, secret: &str) -> String {
    let nodes = if role == "fileserver" { format!("nodes = [\"{NODE}\"]\n") } else { String::new() };
    format!("[[auth.tokens]]\nname = \"{name}\"\nrole = \"{role}\"\n{nodes}{secret}\n")
}

/// One that knows a token of each role, by its digest.
pub(crate) async fn server() -> TestServer {
    let tokens =
        TOKENS.map(|(role, token)| configured(role, role, &format!("sha256 = \"{}\"", sha256(token))));
    TestServer::start(MEMORY, &tokens.concat()).await
}

/// As `sha256sum` has it.
pub(crate) fn sha256(token: &str) -> String {
    use sha2::{Digest as _, Sha256};

    Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
}
