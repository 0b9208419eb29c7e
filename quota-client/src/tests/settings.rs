//! Settings as people write them, and what they are told where that cannot work.

use std::io::Write as _;

use super::*;
use crate::{BuildError, Settings};

fn limit(lines: &str) -> String {
    let rest = "per = \"repo\"\nmax_queue = 1\nmax_wait = \"1s\"";
    format!("[[concurrency]]\nrpc = \"/gitaly.SSHService/SSHUploadPack\"\n{rest}\n{lines}\n")
}

/// What is wrong with the text.
fn misread(toml: &str) -> String {
    Settings::from_toml(toml).unwrap_err().to_string()
}

/// What is wrong with values that can be read.
fn refused(toml: &str) -> String {
    let settings = Settings::from_toml(toml).unwrap();
    let builder = Client::builder()
        .endpoints(["http://quota-1:8081"])
        .rpcs([FETCH, "/gitaly.CommitService/GetTreeEntries"]);
    builder.settings(settings).build().unwrap_err().to_string()
}

#[tokio::test]
async fn what_is_no_setting_is_refused_with_its_line() {
    for (toml, told) in [
        ("nodes = \"gitaly-01\"", "unknown field `nodes`"),
        ("[pressure]\ncpus = 0.9", "unknown field `cpus`"),
        ("[calibration]\nfactor = 0.5", "unknown field `factor`"),
        ("[shedding]\nenabled = true", "unknown field `enabled`"),
        (&limit("limit = 1\nqueue = 7"), "unknown field `queue`"),
        (&limit("limit = 1\nunauthenticated = { rate = 1 }"), "unknown field `rate`"),
        (&limit("adaptive = { min = 1, initial = 1, max = 1, step = 2 }"), "unknown field `step`"),
        (
            &limit("limit = 1\nadaptive = { min = 1, initial = 1, max = 1 }"),
            "either `limit` or `adaptive` must be given",
        ),
        (&limit(""), "either `limit` or `adaptive` must be given"),
        (&limit("limit = -1"), "invalid value: integer `-1`"),
        (&limit("limit = 1\norder = \"random\""), "unknown variant `random`, expected `fifo` or `lifo`"),
        ("deadline = \"100\"", "\"100\" is no duration"),
        ("deadline = \"-1s\"", "\"-1s\" is no duration"),
        ("deadline = 100", "invalid type: integer `100`"),
        ("[calibration]\ninterval = \"soon\"", "\"soon\" is no duration"),
        ("[shedding]\nmode = \"on\"", "unknown variant `on`, expected one of `off`, `shadow`, `enforce`"),
        ("[[concurrency]]\nrpc = \"/g.S/M\"", "missing field `per`"),
        ("deadline =", "string values must be quoted"),
    ] {
        let error = misread(toml);
        assert!(error.contains(told) && error.contains("line "), "{toml}: {error}");
    }
}

#[tokio::test]
async fn what_cannot_work_is_refused_by_the_name_of_the_setting() {
    let adaptive = |numbers: &str| limit(&format!("adaptive = {{ {numbers} }}"));
    let key = "concurrency[\"/gitaly.SSHService/SSHUploadPack\"]";
    for (toml, told) in [
        (
            adaptive("min = 0, initial = 1, max = 1"),
            format!("{key}.adaptive.min is 0, which would stop all processing: it must be at least 1"),
        ),
        (
            adaptive("min = 2, initial = 1, max = 3"),
            format!("{key}.adaptive.initial is 1: it must be at least min, 2"),
        ),
        (
            adaptive("min = 2, initial = 4, max = 3"),
            format!("{key}.adaptive.max is 3: it must be at least initial, 4"),
        ),
        (limit("limit = 0"), format!("{key}.limit is 0, which would stop all processing")),
        (
            limit("limit = 1\nlatency = true"),
            format!("{key}.limit is static: with latency it must be adaptive"),
        ),
        (
            limit("limit = 1\nunauthenticated = { limit = 2 }"),
            format!("{key}.unauthenticated.limit is up to 2, above that of other requests, 1"),
        ),
        (format!("{0}{0}", limit("limit = 1")), format!("{key} is given twice")),
        (
            "[calibration]\ninterval = \"1ms\"".to_owned(),
            "calibration.interval is 1ms: it must be at least 1 s, and at most 1 h".to_owned(),
        ),
        (
            "[calibration]\nbackoff_factor = 1.0".to_owned(),
            "calibration.backoff_factor is 1: it must be above 0 and below 1".to_owned(),
        ),
        ("[shedding]\nafter = 0".to_owned(), "shedding.after must be more than 0".to_owned()),
        (
            "[shedding]\nabove_limit_for = \"0s\"".to_owned(),
            "shedding.above_limit_for must be more than 0".to_owned(),
        ),
        ("[shedding]\nmost = 0".to_owned(), "shedding.most must be more than 0".to_owned()),
        (
            "[pressure]\nmemory = 90".to_owned(),
            "pressure.memory must be more than 0, and at most 1".to_owned(),
        ),
        (
            "deadline = \"2h\"".to_owned(),
            "deadline must be longer than nothing, and at most an hour".to_owned(),
        ),
        (format!("node = {:?}", "x".repeat(257)), "node must be at most 256 bytes".to_owned()),
    ] {
        assert_eq!(refused(&toml), told, "{toml}");
    }
}

/// It would limit nothing, and nobody would notice.
#[tokio::test]
async fn a_limit_for_an_rpc_that_there_is_not_is_refused_with_the_nearest_name() {
    let misnamed = limit("limit = 1").replace("SSHService/SSHUploadPack", "CommitService/TreeEntries");
    assert_eq!(
        refused(&misnamed),
        "concurrency[\"/gitaly.CommitService/TreeEntries\"] is an RPC that no service has: did you mean \
         \"/gitaly.CommitService/GetTreeEntries\"?"
    );
    let settings = Settings::from_toml(&limit("limit = 1")).unwrap();
    let error = Client::builder().settings(settings).endpoints(["http://quota-1:8081"]).build().unwrap_err();
    assert!(error.to_string().ends_with("there is none at all"), "{error}");
}

#[tokio::test]
async fn the_token_is_read_from_its_file_without_the_line_break() {
    let fake = Fake::start().await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"s3cret\n").unwrap();
    let with = |file: &std::path::Path| {
        let toml = format!(
            "endpoints = [{:?}]\nnode = \"gitaly-02\"\ndeadline = \"20s\"\ntoken_file = {file:?}",
            fake.endpoint()
        );
        Client::builder().settings(Settings::from_toml(&toml).unwrap())
    };
    assert!(allowed(&with(file.path()).build().unwrap(), &fetch()).await.checked());
    let heard = fake.heard();
    assert_eq!(heard.authorization.as_deref(), Some("Bearer s3cret"));
    assert_eq!(heard.checks[0].node, "gitaly-02");

    assert!(allowed(&with(file.path()).token("other").build().unwrap(), &fetch()).await.checked());
    assert_eq!(
        fake.heard().authorization.as_deref(),
        Some("Bearer other"),
        "what code says stands before it"
    );

    let missing = with(&file.path().with_extension("missing")).build().unwrap_err();
    assert!(
        matches!(&missing, BuildError::TokenFile { .. })
            && missing.to_string().starts_with("token_file: ")
            && missing.to_string().contains(".missing: "),
        "{missing}"
    );
    file.write_all(b"two").unwrap();
    let error = with(file.path()).build().unwrap_err();
    assert!(matches!(error, BuildError::Token) && !error.to_string().contains("s3cret"), "{error}");
}

#[tokio::test]
async fn a_new_token_in_the_file_is_used_and_one_that_is_none_is_not() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cret\n").unwrap();
    let settings = Settings { token_file: Some(file.clone()), ..Settings::default() };
    let client = builder([&fake]).settings(settings).build().unwrap();
    let shown = async || {
        allowed(&client, &fetch()).await;
        fake.heard().authorization.unwrap()
    };
    assert_eq!(shown().await, "Bearer s3cret");

    // What is broken is read before what comes after it, or never: in either case it is not used.
    std::fs::write(&file, "no token").unwrap();
    assert_eq!(shown().await, "Bearer s3cret");
    std::fs::write(&file, "another").unwrap();
    let used = async {
        loop {
            match shown().await.as_str() {
                "Bearer s3cret" => {}
                new => return new.to_owned(),
            }
        }
    };
    assert_eq!(tokio::time::timeout(LONG, used).await.unwrap(), "Bearer another");
}

#[tokio::test]
async fn files_of_tls_are_told_by_their_setting() {
    let folder = tempfile::tempdir().unwrap();
    let (file, missing) = (folder.path().join("file.pem"), folder.path().join("missing.pem"));
    std::fs::write(&file, "no PEM").unwrap();
    for (toml, told) in [
        (format!("ca_file = {missing:?}"), "ca_file: "),
        (format!("cert_file = {missing:?}\nkey_file = {file:?}"), "cert_file: "),
        (format!("cert_file = {file:?}\nkey_file = {missing:?}"), "key_file: "),
        (format!("cert_file = {file:?}"), "cert_file and key_file must be given together"),
        (format!("key_file = {file:?}"), "cert_file and key_file must be given together"),
        (
            format!("endpoints = [\"https://quota-1:8081\"]\nca_file = {file:?}"),
            "TLS cannot be set up for https://",
        ),
    ] {
        let builder = Client::builder().endpoints(["http://quota-1:8081"]);
        let error = builder.settings(Settings::from_toml(&toml).unwrap()).build().unwrap_err().to_string();
        assert!(error.starts_with(told), "{toml}: {error}");
    }
}
