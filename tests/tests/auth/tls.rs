//! TLS on both ports, who is known by a certificate, and certificates that are replaced.

use std::fs;
use std::path::Path;

use quota_tests::certificates::{Authority, Identity};
use quota_tests::https::{Connection, connect};
use quota_tests::server::{MEMORY, TestServer};
use quota_tests::wait::{PATIENCE, until};

use crate::client::{allowed, client_of, works};
use crate::tokens::{NODE, configured, token};

/// A server with a certificate, further settings of TLS, and who is known.
async fn server(identity: &Identity, tls: &str, auth: &str) -> TestServer {
    let Identity { cert_file, key_file } = identity;
    let settings = format!("tls.cert = {cert_file:?}\ntls.key = {key_file:?}\n{tls}\n{auth}");
    TestServer::start(MEMORY, &settings).await
}

fn known(role: &str, subject: &str) -> String {
    configured(role, role, &format!("subject = \"{subject}\"")).replace("auth.tokens", "auth.certificates")
}

/// What a GET of the nodes comes to.
async fn status(server: &TestServer, ca_file: &Path, identity: Option<&Identity>) -> u16 {
    let mut connection = connect(server.http.address(), ca_file, identity).await.unwrap();
    connection.get("/v1/nodes").await.unwrap()
}

#[tokio::test]
async fn both_ports_speak_tls_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::in_folder(folder.path());
    let file = folder.path().join("token");
    fs::write(&file, token("fileserver")).unwrap();
    let auth = configured("gitaly-01", "fileserver", &format!("file = {file:?}"));
    let server = server(&authority.sign_local(folder.path()), "", &auth).await;

    let mut https = connect(server.http.address(), &authority.ca_file, None).await.unwrap();
    assert_eq!(https.get("/healthz").await.unwrap(), 200);
    assert_eq!(https.get("/v1/nodes").await.unwrap(), 401);
    assert!(
        server.http.try_post("/v1/check", &serde_json::json!({})).await.is_err(),
        "plain HTTP is answered"
    );
    let ca_file = format!("token_file = {file:?}\nca_file = {:?}", authority.ca_file);
    assert_eq!(works(&client_of(&server, "https", NODE, &ca_file)).await, (true, true));
    let plain = format!("token_file = {file:?}");
    assert!(!allowed(&client_of(&server, "http", NODE, &plain)).await.checked());
}

#[tokio::test]
async fn a_certificate_says_who_asks() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (authority, other) = (Authority::in_folder(folder.path()), Authority::in_folder(elsewhere.path()));
    let sign = |name: &str, names: &[&str]| authority.sign(&folder.path().join(name), name, names);
    let auth = known("fileserver", "gitaly-01") + &known("reader", "rails.internal");
    let client_ca = format!("tls.client_ca = {:?}", authority.ca_file);
    let server = server(&authority.sign_local(folder.path()), &client_ca, &auth).await;

    let fileserver = sign("gitaly-01", &[]);
    for (identity, expected) in [
        (Some(sign("any", &["rails.internal"])), 200),
        (Some(fileserver.clone()), 403),
        (Some(sign("gitaly-02", &["*.internal", "gitaly-01.internal"])), 401),
        (None, 401),
    ] {
        assert_eq!(status(&server, &authority.ca_file, identity.as_ref()).await, expected, "{identity:?}");
    }
    // Of another authority: the handshake fails, which the client may see when it reads.
    let strange = other.sign(elsewhere.path(), "gitaly-01", &["rails.internal"]);
    let answered = async |mut connection: Connection| connection.get("/healthz").await;
    if let Ok(connection) = connect(server.http.address(), &authority.ca_file, Some(&strange)).await {
        assert!(answered(connection).await.is_err());
    }

    let Identity { cert_file, key_file } = fileserver;
    let shown =
        format!("ca_file = {:?}\ncert_file = {cert_file:?}\nkey_file = {key_file:?}", authority.ca_file);
    assert_eq!(works(&client_of(&server, "https", NODE, &shown)).await, (true, true));
    assert_eq!(works(&client_of(&server, "https", "gitaly-02", &shown)).await, (false, false));
}

#[tokio::test]
async fn a_new_certificate_is_shown_to_who_connects_and_who_is_connected_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::in_folder(folder.path());
    let files = authority.sign_local(folder.path());
    let server = server(&files, "", "").await;
    let connect = async || connect(server.http.address(), &authority.ca_file, None).await.unwrap();
    let mut early = connect().await;
    let first = early.certificate();

    let next = authority.sign_local(&folder.path().join("next"));
    // The certificate alone does not fit the key: until that has come too, the first stays in use.
    fs::copy(&next.cert_file, &files.cert_file).unwrap();
    assert_eq!(connect().await.certificate(), first);
    fs::copy(&next.key_file, &files.key_file).unwrap();
    until(PATIENCE, "the new certificate is shown", async || {
        (connect().await.certificate() != first).then_some(())
    })
    .await;
    assert_eq!(early.get("/healthz").await.unwrap(), 200);
    assert_eq!(connect().await.get("/healthz").await.unwrap(), 200);
}

#[tokio::test]
async fn files_that_are_no_good_stop_the_start() {
    use quota_tests::server::ServerProcess;

    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::in_folder(folder.path());
    let (one, two) =
        (authority.sign_local(&folder.path().join("one")), authority.sign_local(&folder.path().join("two")));
    let missing = folder.path().join("missing");
    for (cert, key, told) in [
        (&missing, &one.key_file, "tls.cert: "),
        (&one.cert_file, &missing, "tls.key: "),
        (&one.key_file, &one.key_file, "no certificate in PEM"),
        (&one.cert_file, &one.cert_file, "no private key in PEM"),
        (&one.cert_file, &two.key_file, "tls.key: "),
    ] {
        let program = ServerProcess::program().env("QUOTA__TLS__CERT", cert).env("QUOTA__TLS__KEY", key);
        let mut process = program.arg("--check-config").start();
        assert_eq!(process.wait_for_exit().await.code(), Some(2));
        let said = process.stderr();
        assert!(said.contains(told) && !said.contains("PRIVATE"), "{said}");
    }
}
