//! Real git against the server, and the server against a quota service that is told what to answer.

// What the crate's own tests ask of it too is not all needed here.
#[allow(dead_code)]
#[path = "../../src/tests/fake.rs"]
mod fake;

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use async_compression::tokio::bufread::GzipEncoder;
use fake::{Check, Fake, Heard};
use metrics_exporter_prometheus::PrometheusBuilder;
use quota_client::{Client, Cost};
use quota_proto::{STORE_UNAVAILABLE, v1};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tonic::Code;

use crate::child::Children;
use crate::server::Server;

/// Longer than anything takes that is not stuck.
const LONG: Duration = Duration::from_secs(20);

/// A server with the repository `group/project.git`, of one commit.
struct Site {
    folder: TempDir,
    address: SocketAddr,
    fake: Fake,
    quota: Client,
    children: Children,
}

impl Site {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bare = folder.path().join("root/group/project.git");
        let work = folder.path().join("work");
        for arguments in [
            &[OsStr::new("init"), "--bare".as_ref(), "-b".as_ref(), "main".as_ref(), bare.as_ref()][..],
            &["clone".as_ref(), bare.as_ref(), work.as_ref()],
        ] {
            assert!(git(folder.path(), arguments).await.status.success());
        }
        commit(&work, "first").await;
        assert!(git(&work, &["push", "origin", "HEAD:main"]).await.status.success());

        let fake = Fake::start().await;
        let quota = Client::builder().endpoints([fake.endpoint()]).node("gitaly-01").deadline(LONG);
        let quota = quota.report_interval(Duration::from_millis(20)).build().unwrap();
        let metrics = PrometheusBuilder::new().build_recorder().handle();
        let server = Server::new(quota.clone(), &folder.path().join("root"), metrics).unwrap();
        let children = server.children();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = server.router().into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { folder, address, fake, quota, children }
    }

    fn url(&self, user: &str) -> String {
        format!("http://{user}:any@{}/group/project.git", self.address)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn git(&self, arguments: &[&str]) -> Output {
        git(self.folder.path(), arguments).await
    }
}

async fn git(folder: &Path, arguments: &[impl AsRef<OsStr>]) -> Output {
    let mut command = Command::new("git");
    command.current_dir(folder).args(arguments).process_group(0);
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "alice")
            .env(format!("GIT_{role}_EMAIL"), "alice@example.org");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let mut group = Group(child.id().and_then(|pid| Pid::from_raw(pid.try_into().unwrap())));
    let output = tokio::time::timeout(LONG, child.wait_with_output()).await.unwrap().unwrap();
    group.0 = None;
    output
}

/// Git and the helpers that it runs, which are killed where nobody waits for them to end.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn commit(work: &Path, message: &str) {
    assert!(git(work, &["commit", "--allow-empty", "-m", message]).await.status.success());
}

fn deny() -> Check {
    Check::answer(v1::CheckResponse {
        decision: v1::check_response::Decision::Deny.into(),
        checked: true,
        denied_by: Some(v1::Breach {
            kind: v1::Kind::User.into(),
            id: "alice".to_owned(),
            resource: v1::Resource::Cpu.into(),
            used: 104_200_000,
            limit: Some(v1::Limit { limit: Some(v1::limit::Limit::Amount(100_000_000)) }),
            ..v1::Breach::default()
        }),
        retry_after: Some(prost_types::Duration { seconds: 11, nanos: 1 }),
        ..v1::CheckResponse::default()
    })
}

fn checked(heard: &Heard) -> Vec<&str> {
    heard.checks.iter().map(|check| check.rpc.rsplit('/').next().unwrap()).collect()
}

fn spent(heard: &Heard) -> v1::Cost {
    let charges = heard.reports.iter().flat_map(|report| &report.charges);
    charges.filter_map(|charge| charge.cost).fold(v1::Cost::default(), |sum, cost| v1::Cost {
        cpu_micros: sum.cpu_micros + cost.cpu_micros,
        network_bytes: sum.network_bytes + cost.network_bytes,
        ..sum
    })
}

#[tokio::test]
async fn a_fetch_is_asked_about_once_and_charged() {
    let site = Site::start().await;
    for version in ["0", "1", "2"] {
        let before = site.fake.heard().checks.len();
        let config = format!("protocol.version={version}");
        let cloned = site.git(&["-c", &config, "clone", &site.url("alice"), version]).await;
        assert!(cloned.status.success(), "{cloned:?}");
        assert_eq!(checked(&site.fake.heard())[before..], ["InfoRefsUploadPack"], "version {version}");
    }
    let accounts = site.fake.heard().checks[0].accounts.clone().unwrap();
    assert_eq!(accounts.user.as_deref(), Some("alice"));
    assert_eq!(accounts.repo.as_deref(), Some("group/project.git"));
    assert_eq!(accounts.ip.as_deref(), Some("127.0.0.1"));
    let heard =
        site.fake.hears(|heard| spent(heard).cpu_micros > 0 && spent(heard).network_bytes > 500).await;
    let charged = heard.reports.iter().flat_map(|report| &report.charges);
    assert!(charged.into_iter().all(|charge| charge.accounts.as_ref() == Some(&accounts)));
}

#[tokio::test]
async fn a_push_that_was_admitted_finishes_though_nothing_else_is_allowed() {
    let site = Site::start().await;
    site.fake.answers([Check::allow_reserving(Cost::ZERO.with_cpu_micros(7).unwrap()), deny()]);
    let work = site.path("work");
    let hook = site.path("root/group/project.git/hooks/post-receive");
    let done = site.path("done");
    std::fs::write(&hook, format!("#!/bin/sh\necho a hook ran\n: > {}\n", done.display())).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    commit(&work, "second").await;
    let pushed = git(&work, &["push", &site.url("alice"), "HEAD:main"]).await;
    assert!(pushed.status.success(), "{pushed:?}");
    assert!(String::from_utf8_lossy(&pushed.stderr).contains("remote: a hook ran"), "{pushed:?}");
    assert!(done.exists());
    assert_eq!(checked(&site.fake.heard()), ["InfoRefsReceivePack"]);
    let refused = git(&work, &["push", &site.url("alice"), "HEAD:other"]).await;
    assert!(!refused.status.success());
}

#[tokio::test]
async fn a_refusal_is_shown_to_the_user() {
    let site = Site::start().await;
    site.fake.answers([deny()]);
    let refused = site.git(&["clone", &site.url("alice"), "copy"]).await;
    let shown = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success());
    assert!(
        shown.contains("remote: user alice is over its CPU quota on gitaly-01; try again in 12 s\n"),
        "{shown}"
    );
    assert!(shown.contains("429"), "{shown}");
}

#[tokio::test]
async fn that_the_quota_service_cannot_check_is_shown_too() {
    let site = Site::start().await;
    site.fake.answers([Check::Refuse(Code::Unavailable, STORE_UNAVAILABLE)]);
    let refused = site.git(&["clone", &site.url("alice"), "copy"]).await;
    let shown = String::from_utf8(refused.stderr).unwrap();
    let sentence = "remote: the quota service cannot check requests on gitaly-01; try again in 1 s\n";
    assert!(shown.contains(sentence) && shown.contains("503"), "{shown}");
}

/// A request as git sends it, without git. HTTP/1.0 ends the answer with the connection.
async fn send(site: &Site, line: &str, headers: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    // `alice:`
    let head = format!("{line} HTTP/1.0\r\nAuthorization: Basic YWxpY2U6\r\n{headers}");
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    stream
}

async fn status(mut stream: TcpStream) -> u16 {
    let mut line = [0; "HTTP/1.0 200".len()];
    tokio::time::timeout(LONG, stream.read_exact(&mut line)).await.unwrap().unwrap();
    std::str::from_utf8(&line[9..]).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_conversation_that_begins_in_the_middle_is_asked_about() {
    let site = Site::start().await;
    site.fake.answers([deny()]);
    let post = send(&site, "POST /group/project.git/git-upload-pack", "", b"0000").await;
    assert_eq!(status(post).await, 429);
    assert_eq!(checked(&site.fake.heard()), ["PostUploadPackWithSidechannel"]);
}

#[tokio::test]
async fn one_admission_does_not_buy_any_amount_of_work() {
    let site = Site::start().await;
    site.fake.answers([Check::allow(), deny()]);
    let get = send(&site, "GET /group/project.git/info/refs?service=git-upload-pack", "", b"").await;
    assert_eq!(status(get).await, 200);
    for request in 1.. {
        let post = send(&site, "POST /group/project.git/git-upload-pack", "", b"0000").await;
        if status(post).await == 429 {
            break;
        }
        assert!(request < 100, "it is never asked about");
    }
    assert_eq!(checked(&site.fake.heard()), ["InfoRefsUploadPack", "PostUploadPackWithSidechannel"]);
}

/// The longest negotiation there is for so many commits: none of them is known to the server.
#[tokio::test]
async fn a_fetch_that_takes_many_rounds_is_one_conversation() {
    let site = Site::start().await;
    let own = site.path("own");
    assert!(site.git(&["init", "own"]).await.status.success());
    let mut history = String::new();
    for second in 0..5000 {
        history += &format!("commit refs/heads/own\ncommitter a <a@example.org> {second} +0000\ndata 0\n\n");
    }
    std::fs::write(own.join("history"), history).unwrap();
    let script = "git fast-import --quiet < history";
    assert!(git(&own, &["-c", &format!("alias.import=!{script}"), "import"]).await.status.success());
    for version in ["0", "2"] {
        let before = site.fake.heard().checks.len();
        let config = format!("protocol.version={version}");
        let fetched = git(&own, &["-c", &config, "fetch", &site.url("alice"), "main"]).await;
        assert!(fetched.status.success(), "{fetched:?}");
        assert_eq!(checked(&site.fake.heard())[before..], ["InfoRefsUploadPack"], "version {version}");
    }
}

#[tokio::test]
async fn a_compressed_request_is_understood_and_counts_as_it_came() {
    let site = Site::start().await;
    let mut body = Vec::new();
    let plain = &b"0014command=ls-refs\n0000"[..];
    GzipEncoder::new(plain).read_to_end(&mut body).await.unwrap();
    let head = "POST /group/project.git/git-upload-pack";
    let mut post = send(&site, head, "Content-Encoding: gzip\r\nGit-Protocol: version=2\r\n", &body).await;
    let mut answer = String::new();
    tokio::time::timeout(LONG, post.read_to_string(&mut answer)).await.unwrap().unwrap();
    let (head, refs) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.0 200") && refs.contains("refs/heads/main"), "{answer}");
    tokio::time::timeout(LONG, site.children.all_reaped()).await.unwrap();
    assert!(site.quota.shutdown(LONG).await);
    assert_eq!(spent(&site.fake.heard()).network_bytes, (body.len() + refs.len()) as u64);
}

#[tokio::test]
async fn what_is_no_repository_is_not_found_and_costs_nothing() {
    let site = Site::start().await;
    let query = "info/refs?service=git-upload-pack";
    for path in ["nothing.git", "..%2froot%2fgroup%2fproject.git", "group%2f..%2f..%2froot/group/project.git"]
    {
        let get = send(&site, &format!("GET /{path}/{query}"), "", b"").await;
        assert_eq!(status(get).await, 404, "{path}");
    }
    assert!(site.fake.heard().checks.is_empty());
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_process_which_is_charged() {
    let site = Site::start().await;
    let work = site.path("work");
    let hook = site.path("root/group/project.git/hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\nwhile :; do :; done\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    commit(&work, "second").await;
    let arguments = ["push", &site.url("alice"), "HEAD:main"].map(str::to_owned);
    let push = git(&work, &arguments);
    let burnt = site.fake.hears(|heard| spent(heard).cpu_micros > 200_000);
    tokio::select! { pushed = push => panic!("{pushed:?}"), _ = burnt => {} }
    tokio::time::timeout(LONG, site.children.all_reaped()).await.unwrap();
    assert!(site.quota.shutdown(LONG).await);
    assert!(spent(&site.fake.heard()).cpu_micros > 200_000);
}
