//! The operator's command line for the quota service: what it knows, and what it is told, over HTTP.
//!
//! [`args`] is what can be asked, [`command`] has a file for each, [`api`] speaks with the server, and [`table`] and
//! [`units`] print what it says.

mod amounts;
mod api;
mod args;
mod command;
mod connection;
mod error;
mod table;
mod units;

use std::process::ExitCode;

use clap::Parser;

use self::args::Args;
use self::error::Error;

/// What the answer is: the exit code says the same as the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    /// Denied, to be backed off from, or not ready.
    No,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match command::run(&args) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        // Who reads the output has closed it: that is no error.
        Err(Error::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quotactl: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
