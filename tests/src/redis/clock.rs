//! A clock that a test sets, by libfaketime.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::Program;

/// What it reads at each look at the clock.
fn file(folder: &Path) -> PathBuf {
    folder.join("clock")
}

/// So many seconds from this machine's.
pub(super) fn set(folder: &Path, seconds: i32) {
    // Renamed into place, so that it is never read half-written.
    let written = folder.join("clock.new");
    fs::write(&written, format!("{seconds:+}\n")).expect("a file in the test's own folder");
    fs::rename(written, file(folder)).expect("a file in the test's own folder");
}

/// The program with that clock; how much time passes is not touched.
pub(super) fn given_to(program: Program, folder: &Path) -> Program {
    program
        .env("LD_PRELOAD", library())
        .env("FAKETIME_TIMESTAMP_FILE", file(folder))
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}

/// Below `/usr/lib`, in a folder named after the architecture.
fn library() -> PathBuf {
    let architectures = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let paths = architectures.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    let mut found = paths.filter(|path| path.exists());
    found.next().expect("libfaketime: install faketime (`apt-get install faketime`)")
}
