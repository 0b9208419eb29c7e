use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fastrand::Rng;
use quota_tests::git::git;

/// The heads of the two repositories, `light.git` and `large.git`.
pub(crate) struct Repositories {
    pub(crate) light: String,
    pub(crate) large: String,
}

/// Files in a commit.
const FILES: usize = 20;

/// Lines in a file.
const LINES: usize = 1500;

/// Makes both below `root`. A clone of the large one is work: its objects are no deltas, so that git looks for some
/// each time, in one thread.
pub(crate) async fn make(root: &Path, commits: usize) -> Repositories {
    let light = repository(root, "light", 6, FILES).await;
    let large = repository(root, "large", commits, FILES).await;
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
    run(&folder, &["config", "pack.threads", "1"]).await;
    run(&folder, &["repack", "-a", "-d", "-f", "--window=0", "--quiet"]).await;
    fs::read_to_string(folder.join("packed-refs"))
        .expect("the references")
        .lines()
        .find_map(|line| line.strip_suffix(" refs/heads/main").map(str::to_owned))
        .expect("the head")
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
