//! `kill -9` of a fileserver with requests in flight.

use std::fs;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use quota_tests::git::{Git, git};
use quota_tests::process::{Process, Program};
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use redis::AsyncCommands as _;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

const WINDOW: Duration = Duration::from_secs(6);

/// As many requests are in flight as the repository may have: each reserves a second, of ten.
const IN_FLIGHT: u64 = 10;

/// What the service knows of a node, it forgets this long after the last word of it.
const NODE_EXPIRY: Duration = Duration::from_secs(60 * 60);

const REPO: &str = "project.git";

/// A git fileserver with one repository.
struct Fileserver {
    process: Process,
    address: String,
}

impl Fileserver {
    /// On the repositories below `root` in a folder, with its settings beside them.
    async fn start(folder: &Path, service: &ServerProcess) -> Self {
        let settings = folder.join("settings.toml");
        fs::write(&settings, format!("deadline = \"{}s\"\n", PATIENCE.as_secs())).unwrap();
        let mut process = Program::of_workspace("examples/git_fileserver")
            .args(["--listen", "127.0.0.1:0", "--node", "gitaly-01", "--root"])
            .arg(folder.join("root"))
            .arg("--config")
            .arg(settings)
            .args(["--quota-server", &format!("http://{}", service.grpc_address())])
            .start();
        let line = process.wait_for_line("listening on http://").await;
        let address = line.rsplit("http://").next().unwrap().trim().to_owned();
        Self { process, address }
    }

    /// Begins a fetch, and says nothing of what is wanted: an admitted one stays in flight. Returns the status.
    async fn begin(&self, user: &str) -> (BufReader<TcpStream>, u16) {
        let mut stream = BufReader::new(TcpStream::connect(&self.address).await.unwrap());
        let credentials = BASE64_STANDARD.encode(format!("{user}:any"));
        let head = format!(
            "POST /{REPO}/git-upload-pack HTTP/1.1\r\nHost: {}\r\nAuthorization: Basic {credentials}\r\n\
             Transfer-Encoding: chunked\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        (stream, status.unwrap_or_else(|| panic!("no status in {line:?}")))
    }

    /// Its git processes.
    fn children(&self) -> Vec<u32> {
        let parent = self.process.id().to_string();
        let processes =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let is_child = |pid: &u32| stat(*pid).is_some_and(|(_, of)| of == parent);
        processes.filter(is_child).collect()
    }

    async fn clone_into(&self, folder: &Path) -> Git {
        git(folder, &["clone", &format!("http://cloner:any@{}/{REPO}", self.address), "clone"]).await
    }
}

/// A process's state and parent; none where it is gone.
fn stat(pid: u32) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the command's name, which is in brackets and may hold anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned);
    Some((fields.next()?, fields.next()?))
}

/// A folder with the repository in `root`.
async fn world() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    let root = format!("root/{REPO}");
    for (at, args) in [
        (&*source, &["init"][..]),
        (&source, &["commit", "--allow-empty", "-m", "nothing"]),
        (folder.path(), &["clone", "--bare", "source", &root]),
    ] {
        let git = git(at, args).await;
        assert!(git.succeeded, "git {args:?}: {}", git.terminal);
    }
    folder
}

/// CPU-seconds.
async fn used(service: &ServerProcess, kind: &str, id: &str) -> f64 {
    service.http.account(kind, id).await.json()["resources"]["cpu"]["used"].as_f64().unwrap()
}

#[tokio::test]
async fn f23_what_it_had_in_flight_ages_out_and_it_begins_anew() {
    let redis = RedisServer::start().await;
    let url = redis.url();
    let window = format!("{}s", WINDOW.as_secs());
    let limit = format!("{IN_FLIGHT}s");
    let service = ServerProcess::start(&[
        ("QUOTA__STORE__URL", &*url),
        ("QUOTA__WINDOW__LENGTH", &window),
        ("QUOTA__PRICES__DEFAULT__CPU", "1s"),
        ("QUOTA__LIMITS__REPO__CPU__MIN", "0s"),
        ("QUOTA__LIMITS__REPO__CPU__INITIAL", &limit),
        ("QUOTA__LIMITS__REPO__CPU__MAX", &limit),
    ])
    .await;
    let folder = world().await;
    let mut fileserver = Fileserver::start(folder.path(), &service).await;

    let mut in_flight = Vec::new();
    for number in 0..IN_FLIGHT {
        let (stream, status) = fileserver.begin(&format!("user-{number}")).await;
        assert_eq!(status, 200);
        in_flight.push(stream);
    }
    assert_eq!(fileserver.begin("one-more").await.1, 429, "the repository is full");
    // Each is charged what its git uses, and gives back as much of its price.
    assert_eq!(used(&service, "repo", REPO).await, IN_FLIGHT as f64);
    let children = fileserver.children();
    assert_eq!(children.len() as u64, IN_FLIGHT);
    fileserver.process.kill();

    until(WINDOW + PATIENCE, "what was reserved ages out", async || {
        (used(&service, "repo", REPO).await == 0.0).then_some(())
    })
    .await;
    for number in 0..IN_FLIGHT {
        assert_eq!(used(&service, "user", &format!("user-{number}")).await, 0.0);
    }
    until(PATIENCE, "its git processes end", async || {
        // One that is dead and that nobody reaps, since the tests' init does not, has ended too.
        children.iter().all(|pid| stat(*pid).is_none_or(|(state, _)| state == "Z")).then_some(())
    })
    .await;
    let mut store = redis.client().await;
    let keys: Vec<String> = store.keys("*").await.unwrap();
    for key in keys {
        let expiry: i64 = store.pttl(&key).await.unwrap();
        let is_account = ["repo", "user", "ip"].iter().any(|kind| key.starts_with(&format!("q1:{{{kind}:")));
        let most = match &*key {
            _ if is_account => 2 * WINDOW,
            // Who was denied is told for a day.
            denials if denials.starts_with("q1:denials") => Duration::from_secs(86_400),
            _ => NODE_EXPIRY,
        };
        // -2: it has gone meanwhile.
        assert!(expiry == -2 || (0..=most.as_millis() as i64).contains(&expiry), "{key}: {expiry} ms");
    }

    let fileserver = Fileserver::start(folder.path(), &service).await;
    let clone = fileserver.clone_into(folder.path()).await;
    assert!(clone.succeeded, "{}", clone.terminal);
    until(PATIENCE, "the clone's price is settled", async || {
        let used = used(&service, "user", "cloner").await;
        (used > 0.0 && used < 1.0).then_some(())
    })
    .await;
}
