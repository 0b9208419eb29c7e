//! A quota-server, a fileserver with one repository, and git with nobody's settings.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use quota_tests::git::{Git, git};
use quota_tests::process::{Process, Program};
use quota_tests::server::ServerProcess;
use quota_tests::wait::{PATIENCE, until};
use tempfile::TempDir;

/// Incompressible files in the repository, and their size: a clone has something to do.
const FILES: usize = 60;
const FILE_BYTES: usize = 20_000;

/// The repository that there always is.
const PROJECT: &str = "project.git";

pub(crate) struct World {
    pub(crate) server: ServerProcess,
    _fileserver: Process,
    pub(crate) address: String,
    folder: TempDir,
}

impl World {
    /// Everything, with this much CPU for each user, and no other limit.
    pub(crate) async fn start(store: &str, user_cpu: &str) -> Self {
        let mut settings = vec![
            ("QUOTA__STORE__URL", store),
            ("QUOTA__LIMITS__USER__CPU__MIN", "0s"),
            ("QUOTA__LIMITS__USER__CPU__INITIAL", user_cpu),
            ("QUOTA__LIMITS__USER__CPU__MAX", user_cpu),
        ];
        settings.extend([("QUOTA__LIMITS__REPO__CPU__MODE", "off"), ("QUOTA__LIMITS__IP__CPU__MODE", "off")]);
        Self::with(&settings, "").await
    }

    /// Everything, with these settings of the service, and these of the fileserver.
    pub(crate) async fn with(settings: &[(&str, &str)], of_fileserver: &str) -> Self {
        let server = ServerProcess::start(settings).await;
        let folder = tempfile::tempdir().unwrap();
        repository(folder.path(), PROJECT, FILES, FILE_BYTES).await;
        leave_a_trace(folder.path());

        let file = folder.path().join("settings.toml");
        fs::write(&file, of_fileserver).unwrap();
        let mut fileserver = Program::of_workspace("examples/git_fileserver")
            .args(["--listen", "127.0.0.1:0", "--node", "gitaly-01", "--root"])
            .arg(folder.path().join("root"))
            .arg("--config")
            .arg(file)
            .args(["--quota-server", &format!("http://{}", server.grpc_address())])
            .start();
        let line = fileserver.wait_for_line("listening on http://").await;
        let address = line.rsplit("http://").next().unwrap().trim().to_owned();
        Self { server, _fileserver: fileserver, address, folder }
    }

    /// One more bare repository, with so many incompressible files of so many bytes, packed: a clone costs next to nothing.
    /// Returns its one commit.
    pub(crate) async fn add(&self, repo: &str, files: usize, bytes: usize) -> String {
        let commit = repository(self.folder.path(), repo, files, bytes).await;
        succeed(&self.folder.path().join("root").join(repo), &["repack", "-a", "-d"]).await;
        commit
    }

    /// Clones the repository, into a folder that is gone afterwards.
    pub(crate) async fn clone_as(&self, user: &str) -> Git {
        self.clone_of(PROJECT, user, &[]).await
    }

    /// Clones a repository, with more settings of git such as `http.extraHeader=X: y`.
    pub(crate) async fn clone_of(&self, repo: &str, user: &str, settings: &[&str]) -> Git {
        let target = tempfile::tempdir_in(self.folder.path()).unwrap();
        let url = self.url(repo, user);
        let settings = settings.iter().flat_map(|setting| ["-c", setting]);
        let args: Vec<&str> = settings.chain(["clone", &url, "clone"]).collect();
        git(target.path(), &args).await
    }

    /// A working copy of the repository that pushes as `user`; made without asking the fileserver.
    pub(crate) async fn work(&self, user: &str) -> PathBuf {
        let root = self.folder.path().join("root").join(PROJECT);
        let work = self.folder.path().join("work");
        succeed(self.folder.path(), &["clone", root.to_str().unwrap(), "work"]).await;
        succeed(&work, &["remote", "set-url", "origin", &self.url(PROJECT, user)]).await;
        work
    }

    pub(crate) async fn commit_and_push(&self, work: &Path, user: &str) -> Git {
        succeed(work, &["commit", "--allow-empty", "-m", user]).await;
        git(work, &["push", "origin", "HEAD"]).await
    }

    pub(crate) fn hook_ran(&self) -> bool {
        self.folder.path().join("hook-ran").exists()
    }

    /// The CPU-seconds of a user, as the server knows them.
    pub(crate) async fn used(&self, user: &str) -> f64 {
        let standing = until(PATIENCE, "a standing", async || {
            let answer = self.server.http.account("user", user).await;
            (answer.status == 200).then(|| answer.json())
        })
        .await;
        standing["resources"]["cpu"]["used"].as_f64().unwrap()
    }

    /// Waits until reports have brought a user's CPU-seconds to `least`.
    pub(crate) async fn until_used(&self, user: &str, least: f64) {
        let what = format!("{user} has used {least} CPU-seconds");
        until(PATIENCE, &what, async || (self.used(user).await >= least).then_some(())).await;
    }

    fn url(&self, repo: &str, user: &str) -> String {
        format!("http://{user}:any@{}/{repo}", self.address)
    }
}

/// A bare repository in `root`, with so many incompressible files. Returns its one commit.
async fn repository(folder: &Path, name: &str, files: usize, bytes: usize) -> String {
    let source = folder.join(format!("source-{name}"));
    fs::create_dir(&source).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    for file in 0..files {
        let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(bytes).collect();
        fs::write(source.join(file.to_string()), bytes).unwrap();
    }
    succeed(&source, &["init", "--initial-branch", "main"]).await;
    succeed(&source, &["add", "."]).await;
    succeed(&source, &["commit", "-m", "files"]).await;
    succeed(folder, &["clone", "--bare", source.to_str().unwrap(), &format!("root/{name}")]).await;
    git(&source, &["rev-parse", "HEAD"]).await.terminal.trim().to_owned()
}

/// By its hook, once something is pushed.
fn leave_a_trace(folder: &Path) {
    let hook = folder.join("root").join(PROJECT).join("hooks/post-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\ncat >/dev/null\ntouch '{}'\n", folder.join("hook-ran").display()))
        .unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
}

async fn succeed(folder: &Path, args: &[&str]) {
    let git = git(folder, args).await;
    assert!(git.succeeded, "git {args:?}: {}", git.terminal);
}
