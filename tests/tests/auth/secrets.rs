//! A server that has every secret that one can have tells none: in no line of its log, no answer, no page and no metric.

use std::fs;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use quota_tests::certificates::Authority;
use quota_tests::https::connect;
use quota_tests::openapi::DOCUMENT;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;

use crate::tokens::{TOKENS, UNKNOWN, configured, sha256, token};

const PASSWORD: &str = "s3cr3t-pa55-of-redis";
const LOG_KEY: &str = "s3cr3t-key-of-the-log";

/// Everything that can be asked for over HTTP, as method and path.
fn asked() -> Vec<String> {
    let paths = DOCUMENT["paths"].as_object().unwrap().iter();
    let documented = paths.flat_map(|(path, operations)| {
        let path = path.replace("{kind}", "user").replace(['{', '}'], "");
        let methods = operations.as_object().unwrap().keys();
        methods.map(move |method| format!("{} {path}", method.to_uppercase())).collect::<Vec<_>>()
    });
    let pages =
        ["", "dashboard/accounts/user/alice", "dashboard/top", "dashboard/denials", "dashboard/classes"];
    let more = ["dashboard/overrides", "dashboard/modes", "dashboard/nothing", "dashboard/style.css"];
    documented
        .filter(|what| !what.ends_with("/stream"))
        .chain(pages.into_iter().chain(more).map(|page| format!("GET /{page}")))
        .chain(["POST /dashboard/overrides".to_owned(), "DELETE /v1/check".to_owned()])
        .collect()
}

#[tokio::test]
async fn they_are_in_no_log_no_answer_no_page_and_no_metric() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::in_folder(folder.path());
    let files = authority.sign_local(folder.path());
    let mut redis = RedisServer::options().password(PASSWORD).start().await;
    let tokens = TOKENS.map(|(role, token)| {
        let file = folder.path().join(role);
        fs::write(&file, token).unwrap();
        configured(role, role, &format!("file = {file:?}"))
    });
    let config = folder.path().join("quota.toml");
    let settings = format!(
        "store.url = \"{}\"\ntls.cert = {:?}\ntls.key = {:?}\nlog.accounts = \"hashed\"\nlog.key = \"{LOG_KEY}\"\n{}",
        redis.url(),
        files.cert_file,
        files.key_file,
        tokens.concat()
    );
    fs::write(&config, &settings).unwrap();
    let program = ServerProcess::program().arg("--config").arg(&config).env("RUST_LOG", "trace");
    let mut server = ServerProcess::listening(program.start()).await;

    let key = fs::read_to_string(&files.key_file).unwrap();
    let mut secrets: Vec<String> = [PASSWORD, LOG_KEY, UNKNOWN].map(str::to_owned).into();
    secrets.extend(key.lines().filter(|line| !line.starts_with('-')).map(str::to_owned));
    secrets.extend(TOKENS.iter().flat_map(|(_, token)| [(*token).to_owned(), sha256(token)]));
    let basic = |token: &str| BASE64_STANDARD.encode(format!("me:{token}"));
    secrets.extend(TOKENS.iter().map(|(_, token)| basic(token)));
    let keeps = |text: &str, what: &str| {
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{what} tells {secret:?}: {text}");
        }
    };

    let mut https = connect(server.http.address(), &authority.ca_file, None).await.unwrap();
    let admin = token("admin");
    let shown = [
        format!("authorization: Bearer {admin}\r\n"),
        format!("authorization: Bearer {UNKNOWN}\r\n"),
        format!("authorization: Basic {}\r\nsec-fetch-site: same-origin\r\n", basic(admin)),
        format!("authorization: {admin}\r\n"),
        String::new(),
    ];
    let mut statuses = std::collections::BTreeSet::new();
    for store in ["there", "lost"] {
        for what in asked() {
            for header in &shown {
                let body = r#"{"accounts":{"user":"alice"}}"#;
                let (status, answer) = match https.ask(&what, header, body).await {
                    Ok(answered) => answered,
                    // A connection whose body was not read may be closed.
                    Err(_) => {
                        https = connect(server.http.address(), &authority.ca_file, None).await.unwrap();
                        https.ask(&what, header, body).await.unwrap()
                    }
                };
                keeps(&answer, &what);
                statuses.insert(status);
            }
        }
        if store == "there" {
            redis.kill().await;
        }
    }
    // It was let in, kept out, answered and let down.
    assert!([200, 401, 404, 503].iter().all(|status| statuses.contains(status)), "{statuses:?}");

    // A secret in the wrong place, while it runs.
    fs::write(
        &config,
        settings.replace("log.accounts", &format!("store.fail = \"{PASSWORD}\"\nlog.accounts")),
    )
    .unwrap();
    server.process.wait_for_line("store.fail").await;
    for output in [server.process.stdout(), server.process.stderr()] {
        keeps(&output, "an output");
    }
}
