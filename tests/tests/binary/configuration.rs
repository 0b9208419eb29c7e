//! What is said of a configuration, with and without starting.

use std::path::PathBuf;

use quota_tests::process::{Process, Program};
use tempfile::TempDir;

const PROGRAM: &str = "quota-server";

/// A configuration file of the test's own.
struct ConfigFile {
    path: PathBuf,
    _folder: TempDir,
}

impl ConfigFile {
    fn with(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quota.toml");
        std::fs::write(&path, text).unwrap();
        Self { path, _folder: folder }
    }

    fn given(&self) -> Program {
        Program::of_workspace(PROGRAM).arg("--config").arg(&self.path)
    }
}

async fn code(process: &mut Process) -> Option<i32> {
    process.wait_for_exit().await.code()
}

#[tokio::test]
async fn a_good_configuration_is_called_good() {
    let file = ConfigFile::with("[limits.user.cpu]\ninitial = \"50s\"\n");
    let by_name = Program::of_workspace(PROGRAM).env("QUOTA_CONFIG", &file.path);
    for program in [Program::of_workspace(PROGRAM), file.given(), by_name] {
        let mut process = program.arg("--check-config").start();
        assert_eq!(code(&mut process).await, Some(0));
        assert_eq!(
            (process.stdout().as_str(), process.stderr().as_str()),
            ("the configuration is good\n", "")
        );
    }
}

/// A text, and what must be said of it.
const BAD: [(&str, &[&str]); 10] = [
    ("[store]\nuri = \"memory://\"\n", &["store.uri"]),
    ("[shop]\n", &["shop"]),
    ("[window]\nlength = 60\n", &["window.length", "string"]),
    ("[window]\nlength = \"0s\"\n", &["window.length", "60ms"]),
    ("[limits.user.cpu]\nmin = \"200s\"\n", &["limits.user.cpu.min", "limits.user.cpu.max"]),
    ("[limits.user.cpu]\nmode = \"on\"\n", &["limits.user.cpu.mode", "shadow"]),
    ("[http]\nlisten = \"0.0.0.0:8080\"\n", &["http.listen", "loopback"]),
    ("[grpc]\nlisten = \"[::]:8081\"\n", &["grpc.listen", "loopback"]),
    ("[http\n", &["not valid TOML", "line 1"]),
    ("[prices]\ndefault = { cpu = \"-1s\" }\n", &["prices.default.cpu"]),
];

#[tokio::test]
async fn a_bad_configuration_stops_the_start_with_file_key_and_reason() {
    for (text, words) in BAD {
        let file = ConfigFile::with(text);
        for program in [file.given(), file.given().arg("--check-config")] {
            let mut process = program.start();
            assert_eq!(code(&mut process).await, Some(2), "{text}");
            let said = process.stderr();
            let named = file.path.to_str().unwrap();
            for word in words.iter().chain([&named]) {
                assert!(said.contains(word), "no {word} in {said}");
            }
            assert_eq!(process.stdout(), "", "{text}");
        }
    }
}

#[tokio::test]
async fn a_bad_variable_is_named() {
    let file = ConfigFile::with("[store]\nfail = \"closed\"\n");
    for (name, value, key) in [
        ("QUOTA__STORE__FAIL", "maybe", "store.fail"),
        ("QUOTA__STORE__NAME", "x", "store.name"),
        ("QUOTA__IP__IPV6_PREFIX", "129", "ip.ipv6_prefix"),
        ("QUOTA__AUTH__DISABLED", "yes", "auth.disabled"),
    ] {
        let mut process = file.given().env(name, value).start();
        assert_eq!(code(&mut process).await, Some(2), "{name}");
        let said = process.stderr();
        assert!(said.contains(&format!("environment variable {name}: {key}: ")), "{said}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_named() {
    let missing = "/nonexistent/quota.toml";
    let mut process = Program::of_workspace(PROGRAM).args(["--config", missing]).start();
    assert_eq!(code(&mut process).await, Some(2));
    assert!(process.stderr().contains(&format!("{missing}: cannot be read")), "{}", process.stderr());
}

#[tokio::test]
async fn variables_stand_before_the_file() {
    let file = ConfigFile::with("[http]\nlisten = \"0.0.0.0:80\"\n");
    let mut process = file.given().arg("--check-config").env("QUOTA__HTTP__LISTEN", "127.0.0.1:0").start();
    assert_eq!(code(&mut process).await, Some(0), "{}", process.stderr());
}
