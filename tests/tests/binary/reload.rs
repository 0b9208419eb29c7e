//! The configuration file is another while the server runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quota_tests::process::Signal;
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::task::JoinSet;

const REFUSED: &str = "the configuration is refused: the last one stays in force";
const RELOADED: &str = "the configuration is reloaded";

/// A server that follows a file.
struct Followed {
    server: ServerProcess,
    file: PathBuf,
    folder: TempDir,
}

impl Followed {
    async fn start(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("quota.toml");
        fs::write(&file, text).unwrap();
        let server = Self::following(&file).await;
        Self { server, file, folder }
    }

    async fn following(file: &Path) -> ServerProcess {
        ServerProcess::listening(ServerProcess::program().arg("--config").arg(file).start()).await
    }

    /// Puts another file in its place, as one does.
    fn replace(&self, text: impl AsRef<[u8]>) {
        let next = self.folder.path().join("next");
        fs::write(&next, text).unwrap();
        fs::rename(next, &self.file).unwrap();
    }

    async fn metric(&self, series: &str) -> Option<f64> {
        let text = self.server.http.get("/metrics").await.text().to_owned();
        text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
    }

    async fn until_metric(&self, series: &str, value: f64) {
        let what = format!("{series} is {value}");
        until(PATIENCE, &what, async || (self.metric(series).await == Some(value)).then_some(())).await;
    }

    /// Waits until users may use so many CPU seconds.
    async fn until_limit(&self, seconds: f64) {
        self.until_metric(LIMIT, seconds).await;
    }

    /// Waits until so many have been refused, and tells why the last was.
    async fn refusal(&self, count: usize) -> String {
        let refused = async || Some(self.server.log(REFUSED)).filter(|lines| lines.len() == count);
        until(PATIENCE, "the configuration is refused", refused).await.pop().unwrap()
    }

    async fn decision(&self, user: &str) -> String {
        let answer = self.server.http.post("/v1/check", &json!({ "accounts": { "user": user } })).await;
        answer.json()["decision"].as_str().unwrap_or_default().to_owned()
    }
}

const LIMIT: &str = "quota_limit{kind=\"user\",mode=\"enforce\",resource=\"cpu\"}";
const SUCCESSFUL: &str = "quota_config_last_reload_successful";

/// The limit of users, beside whatever else.
fn limit(seconds: u32, rest: &str) -> String {
    format!("[limits.user.cpu]\ninitial = \"{seconds}s\"\nmax = \"{seconds}s\"\n{rest}")
}

fn blocked(user: &str) -> String {
    format!("[[overrides]]\nkind = \"user\"\nid = \"{user}\"\nblocked = true\nreason = \"why\"\n")
}

#[tokio::test]
async fn a_good_one_is_in_force_and_no_decision_is_lost() {
    let followed = Followed::start(&limit(100, "")).await;
    followed.until_limit(100.0).await;
    let digest = followed.metric("quota_config_hash").await;

    let is_over = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    for caller in 0..4 {
        let (http, is_over) = (followed.server.http.clone(), Arc::clone(&is_over));
        callers.spawn(async move {
            let mut decisions = 0;
            while !is_over.load(Ordering::Relaxed) {
                let check =
                    json!({ "accounts": { "user": format!("user-{caller}") }, "price": { "cpu": 0.000001 } });
                let answer = http.post("/v1/check", &check).await;
                assert_eq!((answer.status, answer.json()["checked"].as_bool()), (200, Some(true)));
                decisions += 1;
            }
            decisions
        });
    }
    for round in 1..=5 {
        followed.replace(limit(100 + round, &blocked("mallory")));
        followed.until_limit(f64::from(100 + round)).await;
        assert_eq!(
            (followed.decision("mallory").await, followed.decision("alice").await),
            ("deny".into(), "allow".into())
        );
        followed.replace(limit(100, ""));
        followed.until_limit(100.0).await;
        assert_eq!(followed.decision("mallory").await, "allow");
    }
    is_over.store(true, Ordering::Relaxed);
    while let Some(decisions) = callers.join_next().await {
        assert!(decisions.unwrap() > 0);
    }
    assert_eq!(followed.metric("quota_config_hash").await, digest, "it is the first one again");
    let lines = followed.server.log(RELOADED);
    assert_eq!(lines.len(), 10, "{lines:#?}");
    for change in ["limits.user.cpu.max 100s -> 101s", "overrides"] {
        assert!(lines[0].contains(change), "{}", lines[0]);
    }
}

#[tokio::test]
async fn what_is_no_good_changes_nothing_and_says_why() {
    let good = limit(100, &blocked("mallory"));
    let followed = Followed::start(&good).await;
    let whole = limit(50, &blocked("bob"));
    let half = &whole[..whole.find("0s").unwrap()];
    let bad: [(&[u8], &[&str]); 8] = [
        (half.as_bytes(), &["not valid TOML", "line 2"]),
        (b"[limits.user.cpu]\nmax = \"50s\"\nmax = \"60s\"\n", &["not valid TOML", "line 3"]),
        (b"[limits.user.cpu]\nmost = \"50s\"\n", &["limits.user.cpu.most", "unknown setting"]),
        (b"[limits.user.cpu]\nmin = \"500s\"\n", &["limits.user.cpu.min", "at most limits.user.cpu.max"]),
        (
            b"[[auth.tokens]]\nname = \"a\"\nrole = \"reader\"\nfile = \"/nonexistent\"\n",
            &["auth.tokens: /nonexistent"],
        ),
        (b"", &["is empty"]),
        (b" \n\n", &["is empty"]),
        (b"limits = \"\xff\"", &["cannot be read"]),
    ];
    for (count, (text, words)) in bad.into_iter().enumerate() {
        followed.replace(text);
        let line = followed.refusal(count + 1).await;
        assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {line}");
        assert_eq!(followed.metric(SUCCESSFUL).await, Some(0.0));
        assert_eq!(followed.metric(LIMIT).await, Some(100.0));
        assert_eq!(followed.decision("mallory").await, "deny");
        assert_eq!(followed.decision("bob").await, "allow");
    }
    fs::remove_file(&followed.file).unwrap();
    assert!(followed.refusal(bad.len() + 1).await.contains("cannot be read"));
    followed.replace(&good);
    followed.until_metric(SUCCESSFUL, 1.0).await;
    assert_eq!(
        followed.server.log(RELOADED),
        Vec::<String>::new(),
        "nothing was ever in force but the first"
    );
}

#[tokio::test]
async fn what_names_a_file_that_comes_later_is_in_force_once_it_is_there() {
    let followed = Followed::start(&limit(100, "")).await;
    let token = followed.folder.path().join("token");
    let known = format!("[[auth.tokens]]\nname = \"a\"\nrole = \"reader\"\nfile = {token:?}\n");
    followed.replace(limit(50, &known));
    followed.refusal(1).await;
    fs::write(&token, "a-token-that-comes-later").unwrap();
    followed.until_limit(50.0).await;
    assert_eq!(followed.server.log(REFUSED).len(), 1, "told once");
}

#[tokio::test]
async fn nothing_in_its_place_keeps_the_next_one_from_being_read() {
    let mut followed = Followed::start(&limit(100, "")).await;
    let pipe = followed.folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::rename(&pipe, &followed.file).unwrap();
    assert!(followed.refusal(1).await.contains("it is no regular file"));
    followed.replace(limit(50, ""));
    followed.until_limit(50.0).await;
    followed.server.process.signal(Signal::TERM);
    assert_eq!(followed.server.process.wait_for_exit().await.code(), Some(0));
}

#[tokio::test]
async fn a_link_that_points_elsewhere_is_followed_and_what_lies_beside_is_of_no_matter() {
    // As Kubernetes mounts a ConfigMap.
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (version, seconds) in [("..1", 100), ("..2", 50)] {
        fs::create_dir(path(version)).unwrap();
        fs::write(path(version).join("quota.toml"), limit(seconds, "")).unwrap();
    }
    symlink("..1", path("..data")).unwrap();
    symlink("..data/quota.toml", path("quota.toml")).unwrap();
    let file = path("quota.toml");
    let server = Followed::following(&file).await;
    let followed = Followed { server, file, folder };
    followed.until_limit(100.0).await;
    for beside in [".quota.toml.swp", "quota.toml~", "4913"] {
        fs::write(followed.folder.path().join(beside), "[limits.user.cpu]\nmax = ").unwrap();
    }
    symlink("..2", followed.folder.path().join("..data_tmp")).unwrap();
    fs::rename(followed.folder.path().join("..data_tmp"), followed.folder.path().join("..data")).unwrap();
    followed.until_limit(50.0).await;
    assert_eq!(followed.server.log(REFUSED), Vec::<String>::new());
}

#[tokio::test]
async fn what_takes_a_restart_is_said_and_stays_as_it_is_and_no_password_is_shown() {
    let mut followed = Followed::start(&limit(100, "[limits.user.memory]\nmax = \"8GiB\"")).await;
    let memory = "quota_limit{kind=\"user\",mode=\"shadow\",resource=\"memory\"}";
    let held = followed.metric(memory).await;
    followed.replace(limit(
        50,
        "[limits.user.memory]\nmax = \"8GiB\"\n[window]\nlength = \"120s\"\n[store]\nurl = \"redis://:s3cret@elsewhere\"\n",
    ));
    followed.until_limit(50.0).await;
    let line = followed.server.process.wait_for_line("what changed in the file takes a restart").await;
    assert!(line.contains("store.url; window.length"), "{line}");
    assert_eq!(followed.metric("quota_config_restart_pending").await, Some(2.0));
    assert_eq!(followed.metric(memory).await, held, "held over the window that is in force");
    assert!(!followed.server.process.stderr().contains("s3cret"));
    followed.replace(limit(50, "[limits.user.memory]\nmax = \"8GiB\""));
    followed.until_metric("quota_config_restart_pending", 0.0).await;
}

#[tokio::test]
async fn a_signal_makes_it_read_what_there_is() {
    let mut followed = Followed::start(&limit(100, "")).await;
    followed.server.process.signal(Signal::HUP);
    followed.server.process.wait_for_line("nothing in it changes what is in force").await;
    followed.replace(limit(50, ""));
    followed.server.process.signal(Signal::HUP);
    followed.until_limit(50.0).await;
}

#[tokio::test]
async fn without_a_file_a_signal_ends_nothing() {
    let mut server = ServerProcess::start(&[]).await;
    server.process.signal(Signal::HUP);
    server.process.wait_for_line("nothing in it changes what is in force").await;
    assert_eq!(server.http.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn who_is_known_follows_the_file() {
    const FIRST: &str = "t0ken-of-mine-the-first";
    const SECOND: &str = "t0ken-of-mine-the-second";
    let token = |token: &str| {
        let digest = format!("{:x}", Sha256::digest(token));
        format!("[[auth.tokens]]\nname = \"me\"\nrole = \"reader\"\nsha256 = \"{digest}\"\n")
    };
    let followed = Followed::start(&token(FIRST)).await;
    let status = async |token: &str| followed.server.http.with_token(token).get("/v1/nodes").await.status;
    assert_eq!((status(FIRST).await, status(SECOND).await), (200, 401));
    followed.replace(token(SECOND));
    until(PATIENCE, "the second is known", async || (status(SECOND).await == 200).then_some(())).await;
    assert_eq!(status(FIRST).await, 401);
    followed.replace(limit(50, ""));
    assert!(followed.refusal(1).await.contains("to open the server to all takes a restart"));
    assert_eq!((status(FIRST).await, status(SECOND).await), (401, 200));
}
