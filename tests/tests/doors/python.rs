//! The Python of docs/other-languages.md, with stubs that it makes from the proto file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quota_tests::process::Program;

use crate::page::blocks;
use crate::{World, root};

/// Packages are fetched in it.
const LONG: Duration = Duration::from_secs(150);

async fn run(program: Program, what: &str) -> String {
    let mut process = program.start();
    let status = process.wait_for_exit_within(LONG).await;
    assert!(status.success(), "{what}: {status}\n{}\n{}", process.stdout(), process.stderr());
    process.stdout()
}

/// The folder of commands of an environment with the packages of `requirements`, kept until these are others.
async fn environment(requirements: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let (commands, installed) = (folder.join("bin"), folder.join("installed"));
    let wanted = fs::read_to_string(requirements).unwrap();
    if fs::read_to_string(&installed).ok().as_ref() != Some(&wanted) {
        let venv = Program::new("python3").args(["-m", "venv", "--clear"]).arg(&folder);
        run(venv, "python3 -m venv, of Debian's python3-venv").await;
        let pip = Program::new(commands.join("pip")).args(["install", "--quiet", "--requirement"]);
        run(pip.arg(requirements), "pip install, from PyPI").await;
        fs::write(installed, wanted).unwrap();
    }
    commands
}

#[tokio::test]
async fn it_checks_reports_and_backs_off() {
    let commands = environment(&root().join("docs/python/requirements.txt")).await;
    let world = World::new().await;
    // In the folder of the project, as the page says; what is made goes elsewhere.
    let made = tempfile::tempdir().unwrap();
    let stubs = blocks("other-languages.md", "sh").pop().unwrap();
    let path = format!("{}:{}", commands.display(), std::env::var("PATH").unwrap());
    let script = format!("cd {}\n{stubs}", root().display());
    let bash = Program::new("bash").args(["-e", "-c", &script]).env("PATH", path).env("OUT", made.path());
    run(bash, "making the stubs").await;
    let python = Program::new(commands.join("python")).arg(root().join("docs/python/ask.py"));
    let python = python.env("PYTHONPATH", made.path()).env("QUOTA_GRPC", world.grpc_address().to_string());
    let printed = run(python, "ask.py").await;
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[..2], ["carol: allowed", "carol: 1 charge counted"]);
    assert!(lines[2].starts_with("carol: denied, again in "), "{printed}");
    assert!(lines[3].starts_with("carol: back off for "), "{printed}");
    assert_eq!(lines[4..], ["dave: go on"]);
}
