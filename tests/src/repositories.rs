//! Bare repositories to clone: a light one, and large ones that are work to serve.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::git::git;
use fastrand::Rng;

/// The name of the light one.
pub const LIGHT: &str = "light";
/// The names of the large ones, which are alike.
pub const LARGE: [&str; 4] = ["large", "large-1", "large-2", "large-3"];

/// The heads of the repositories.
#[derive(Debug)]
pub struct Repositories {
    light: String,
    large: String,
}

impl Repositories {
    /// The commit that a fetch of the repository of a name wants.
    pub fn head(&self, name: &str) -> &str {
        if name == LIGHT { &self.light } else { &self.large }
    }
}

/// Files in a commit.
const FILES: usize = 20;

/// Lines in a file.
const LINES: usize = 1500;

/// Makes all below `root`. A clone of a large one is work: its objects are no deltas, so that git looks for some
/// each time, in one thread.
pub async fn make(root: &Path, commits: usize) -> Repositories {
    let light = repository(root, LIGHT, 6, FILES).await;
    let large = repository(root, LARGE[0], commits, FILES).await;
    for name in &LARGE[1..] {
        let (from, to) = (format!("{}.git", LARGE[0]), format!("{name}.git"));
        run(root, &["clone", "--quiet", "--bare", &from, &to]).await;
        one_thread(&root.join(to)).await;
    }
    Repositories { light, large }
}

async fn repository(root: &Path, name: &str, commits: usize, files: usize) -> String {
    let (work, bare) = (root.join(name), format!("{name}.git"));
    fs::create_dir(&work).expect("a folder");
    run(&work, &["init", "--quiet", "--initial-branch", "main"]).await;
    let mut random = Rng::with_seed(1);
    for commit in 0..commits {
        for file in 0..files {
            fs::write(work.join(format!("file-{file}")), text(&mut random)).expect("a file");
        }
        run(&work, &["add", "."]).await;
        run(&work, &["commit", "--quiet", "-m", &format!("Commit {commit}")]).await;
    }
    run(root, &["clone", "--quiet", "--bare", name, &bare]).await;
    let folder = root.join(bare);
    one_thread(&folder).await;
    run(&folder, &["repack", "-a", "-d", "-f", "--window=0", "--quiet"]).await;
    fs::read_to_string(folder.join("packed-refs"))
        .expect("the references")
        .lines()
        .find_map(|line| line.strip_suffix(" refs/heads/main").map(str::to_owned))
        .expect("the head")
}

async fn one_thread(repository: &Path) {
    run(repository, &["config", "pack.threads", "1"]).await;
}

/// Words in lines, which are alike in all files and nowhere the same.
fn text(random: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..LINES {
        writeln!(text, "{:x} {:x}", random.u32(..), random.u16(..)).expect("room");
    }
    text
}

async fn run(folder: &Path, args: &[&str]) {
    let done = git(folder, args).await;
    assert!(done.succeeded, "git {args:?}: {}", done.terminal);
}
