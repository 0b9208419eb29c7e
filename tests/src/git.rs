//! Real git, with nobody's settings.

use std::path::Path;

use crate::process::Program;

/// What git did.
#[derive(Debug)]
pub struct Git {
    /// Whether it exited with 0.
    pub succeeded: bool,
    /// What it wrote on the terminal.
    pub terminal: String,
}

/// Runs git in a folder, which is its home too, to its end.
pub async fn git(folder: &Path, args: &[&str]) -> Git {
    let mut git = Program::new("git")
        .arg("-C")
        .arg(folder)
        .args(args)
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0");
    for role in ["AUTHOR", "COMMITTER"] {
        git =
            git.env(format!("GIT_{role}_NAME"), "test").env(format!("GIT_{role}_EMAIL"), "test@example.org");
    }
    let mut git = git.start();
    let status = git.wait_for_exit().await;
    Git { succeeded: status.success(), terminal: format!("{}{}", git.stdout(), git.stderr()) }
}
