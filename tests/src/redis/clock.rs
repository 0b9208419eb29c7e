//! A clock that a test sets: what `clock.c` tells the time by.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::Program;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/redis/clock.c");

/// What is read at each look at the clock.
fn file(folder: &Path) -> PathBuf {
    folder.join("clock")
}

/// So many seconds from this machine's.
pub(super) fn set(folder: &Path, seconds: i32) {
    // Renamed into place, so that it is never read half-written.
    let written = folder.join("clock.new");
    fs::write(&written, seconds.to_string()).expect("a file in the test's own folder");
    fs::rename(written, file(folder)).expect("a file in the test's own folder");
}

/// The program with that clock; how much time passes is not touched.
pub(super) fn given_to(program: Program, folder: &Path) -> Program {
    let library = folder.join("clock.so");
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(SOURCE).status();
    let is_there = compiled.expect("a C compiler: install gcc (`apt-get install gcc libc6-dev`)").success();
    assert!(is_there, "{SOURCE} cannot be compiled");
    program.env("LD_PRELOAD", library).env("QUOTA_TEST_CLOCK", file(folder))
}
