use redis::{Cmd, ToRedisArgs};

use super::scripts::Script;

/// What is asked of one server: one command or script, which does all or nothing.
pub(super) struct Call<'a> {
    command: Cmd,
    /// Which script the command runs, by its digest.
    script: Option<&'a Script>,
}

impl<'a> Call<'a> {
    /// A script on keys.
    pub(super) fn script(script: &'a Script, keys: &[impl AsRef<str>]) -> Self {
        let mut command = redis::cmd("EVALSHA");
        command.arg(script.digest()).arg(keys.len());
        for key in keys {
            command.arg(key.as_ref());
        }
        Self { command, script: Some(script) }
    }

    /// With one more argument.
    pub(super) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.command.arg(arg);
        self
    }

    /// With more arguments.
    pub(super) fn args(self, args: impl IntoIterator<Item = impl ToRedisArgs>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    pub(super) const fn as_command(&self) -> &Cmd {
        &self.command
    }

    pub(super) const fn as_script(&self) -> Option<&'a Script> {
        self.script
    }
}

impl From<Cmd> for Call<'_> {
    fn from(command: Cmd) -> Self {
        Self { command, script: None }
    }
}
