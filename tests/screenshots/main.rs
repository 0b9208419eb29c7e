//! Pictures of every view of the dashboard, with data of real clones from two fileservers: some users work, one clones
//! large repositories without end and is cut, one is blocked, and a limit in shadow would refuse. `scripts/screenshots`
//! builds and runs it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "what fails is no picture")]

mod crowd;
mod site;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use quota_tests::browser::{Browser, Look};
use tempfile::tempdir;
use tokio::time::sleep;

use self::site::Site;

/// Takes pictures of the dashboard.
#[derive(Parser)]
struct Args {
    /// For how many minutes there is traffic before the pictures are taken; the plots show 15.
    #[arg(long, default_value_t = 12)]
    minutes: u64,
    /// The folder for the pictures.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// The fileserver's program.
    #[arg(long, value_name = "FILE")]
    fileserver: PathBuf,
}

const VIEWS: [(&str, &str); 7] = [
    ("overview", "/"),
    ("heaviest", "/dashboard/top"),
    ("refused", "/dashboard/denials"),
    ("classes", "/dashboard/classes"),
    ("overrides", "/dashboard/overrides"),
    ("account", "/dashboard/accounts/user/mallory?node=gitaly-01"),
    ("not-found", "/dashboard/accounts?kind=ip&id=nonsense"),
];

const LOOKS: [(&str, Look); 4] = [
    ("light-desktop", Look { width: 1280, height: 900, is_dark: false }),
    ("dark-desktop", Look { width: 1280, height: 900, is_dark: true }),
    ("light-phone", Look { width: 390, height: 844, is_dark: false }),
    ("dark-phone", Look { width: 390, height: 844, is_dark: true }),
];

#[tokio::main]
async fn main() {
    let args = Args::parse();
    std::fs::create_dir_all(&args.to).expect("a folder for the pictures");
    let folder = tempdir().expect("a temporary folder");
    let site = Site::start(folder.path(), &args.fileserver).await;
    site.say_things().await;
    eprintln!("clones for {} minutes", args.minutes);
    let lasts = Duration::from_secs(60 * args.minutes);
    tokio::select! {
        () = crowd::come(&site, folder.path(), lasts) => {}
        () = async { sleep(lasts).await; take_pictures(&site, &args.to).await } => {}
    }
}

async fn take_pictures(site: &Site, to: &Path) {
    let browser = Browser::start().await;
    for (how, look) in LOOKS {
        browser.look(look).await;
        for (name, path) in VIEWS {
            browser.open(&format!("http://{}{path}", site.quota.http.address())).await;
            browser.screenshot(to.join(format!("{name}-{how}.png"))).await;
        }
    }
    browser.close().await;
}
