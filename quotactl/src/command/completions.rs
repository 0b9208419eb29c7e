use std::io;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::Answer;
use crate::args::Args;
use crate::error::Error;

pub(super) fn print(shell: Shell) -> Result<Answer, Error> {
    let mut script = Vec::new();
    generate(shell, &mut Args::command(), "quotactl", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(Answer::Yes)
}
