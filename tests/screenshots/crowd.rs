use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use quota_tests::git::git;
use quota_tests::repositories::{LARGE, LIGHT};
use tokio::time::sleep;

use crate::site::Site;

/// Somebody who clones again and again.
struct Visitor {
    user: &'static str,
    repository: &'static str,
    fileserver: usize,
    /// Between two clones.
    rests: Duration,
    /// After this share of the time he comes, in hundredths.
    comes_after: u32,
}

/// Those who work; who has been blocked; and who comes later, and clones everything at once.
const CROWD: [Visitor; 14] = [
    visitor("alice", LIGHT, 0, 4, 0),
    visitor("bob", LIGHT, 0, 7, 0),
    visitor("carol", LIGHT, 1, 5, 0),
    visitor("ci-runner", LARGE[0], 1, 6, 0),
    visitor("dave", LARGE[1], 0, 30, 0),
    visitor("eve", LIGHT, 0, 11, 10),
    visitor("mallory", LARGE[0], 0, 0, 30),
    visitor("mallory", LARGE[1], 0, 0, 30),
    visitor("mallory", LARGE[2], 0, 0, 30),
    visitor("mallory", LARGE[3], 0, 0, 30),
    visitor("mallory", LARGE[0], 0, 0, 30),
    visitor("mallory", LARGE[1], 0, 0, 30),
    visitor("mallory", LARGE[2], 0, 0, 30),
    visitor("mallory", LARGE[3], 0, 0, 30),
];

const fn visitor(
    user: &'static str,
    repository: &'static str,
    fileserver: usize,
    rests: u64,
    comes_after: u32,
) -> Visitor {
    // Who is refused at once tries again after a moment, as people do.
    let rests = Duration::from_millis(1000 * rests + 200);
    Visitor { user, repository, fileserver, rests, comes_after }
}

/// Lets all come; who comes later does so after a share of this time. It does not end by itself.
pub(crate) async fn come(site: &Site, folder: &Path, lasts: Duration) {
    let clones = CROWD.into_iter().enumerate().map(async |(number, visitor)| {
        let Visitor { user, repository, fileserver, rests, comes_after } = visitor;
        let url = format!("http://{user}:any@{}/{repository}.git", site.address(fileserver));
        let home = folder.join(format!("home-{number}"));
        std::fs::create_dir(&home).expect("a folder");
        sleep(lasts * comes_after / 100).await;
        loop {
            // Refused or not, nothing stays of it.
            git(&home, &["clone", "--quiet", "--bare", &url, "clone"]).await;
            let _ = std::fs::remove_dir_all(home.join("clone"));
            sleep(rests).await;
        }
    });
    join_all(clones).await;
}
