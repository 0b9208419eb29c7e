mod account;
mod check;
mod classes;
mod completions;
mod denials;
mod health;
mod mode;
mod nodes;
mod overrides;
mod prices;
mod top;

use std::io::{self, Write};

use serde_json::Value;

use crate::Answer;
use crate::api::Api;
use crate::args::{Args, Command};
use crate::connection::Connection;
use crate::error::Error;

/// What every command has: the server, and how to print what it says.
pub(crate) struct Context {
    api: Api,
    json: bool,
}

impl Context {
    /// Prints the answer as it is, where JSON is wanted, else by `print`.
    fn show(
        &self,
        body: &Value,
        print: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut out = io::stdout().lock();
        if self.json { Ok(writeln!(out, "{body:#}")?) } else { print(&mut out) }
    }
}

pub(crate) fn run(args: &Args) -> Result<Answer, Error> {
    let open = || -> Result<Context, Error> {
        let connection = Connection::find(&args.connection)?;
        Ok(Context { api: Api::new(&connection, args.connection.timeout)?, json: args.json })
    };
    match &args.command {
        Command::Top(top) => top::run(&open()?, top),
        Command::Account(account) => account::run(&open()?, account),
        Command::Nodes { node } => nodes::nodes(&open()?, node.as_deref()),
        Command::Limits { node } => nodes::limits(&open()?, node.as_deref()),
        Command::Classes => classes::run(&open()?),
        Command::Check(check) => check::check(&open()?, check),
        Command::Backoff(backoff) => check::backoff(&open()?, backoff),
        Command::Override(command) => overrides::run(&open()?, command),
        Command::Mode(command) => mode::run(&open()?, command),
        Command::Prices { since } => prices::run(&open()?, *since),
        Command::WouldDeny { since, kind } => denials::would_deny(&open()?, *since, *kind),
        Command::Tail => denials::tail(&open()?),
        Command::Health => health::run(&open()?),
        Command::Completions { shell } => completions::print(*shell),
    }
}
