//! A cgroup for each request, where this process may make one. What runs in it, and all that it starts, is counted by the
//! kernel: exactly, once, and also what outlives its parent.
//!
//! A process must be in it before it executes anything, and nothing between fork(2) and exec(2) may be had without unsafe
//! code. To move it after it was spawned is a race: what it has started until then stays outside. So a shell
//! moves itself and becomes the program, which takes it less than a millisecond.

mod files;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod metered;
mod parents;
mod settings;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

pub(crate) use metered::Metered;
use parents::{Directories, Parents};
pub use settings::CgroupSettings;

/// Where cgroups of requests are made. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RequestCgroups(Arc<Parents>);

impl RequestCgroups {
    /// Below these directories, which are this process's own; removes what an earlier one left in them.
    ///
    /// With cgroup v2 one directory, such as `/sys/fs/cgroup/gitaly/requests`, in which no process is. With v1 one of the
    /// hierarchy `cpuacct` and one of `memory`; on a host that has both versions, one of each. CPU is counted in the first
    /// that counts it, and memory too; where none counts memory, the processes in the cgroup are summed up. Where one shares
    /// out the CPU by weight, which in v1 is one of the hierarchy `cpu`, requests of accounts that are cut on this fileserver
    /// [yield](CgroupSettings::yields).
    ///
    /// Blocks: it runs a process in such a cgroup, so that what is wrong shows when the fileserver starts.
    ///
    /// # Errors
    /// Where a cgroup cannot be made there or no process moved into it, such as for want of permission or of `sh`, or
    /// where none of them counts CPU time.
    pub fn below<P: AsRef<Path>>(directories: impl IntoIterator<Item = P>) -> io::Result<Self> {
        Self::of(directories, CgroupSettings::default())
    }

    pub(crate) fn of<P: AsRef<Path>>(
        directories: impl IntoIterator<Item = P>,
        settings: CgroupSettings,
    ) -> io::Result<Self> {
        Parents::probe(directories, settings.yields).map(|parents| Self(Arc::new(parents)))
    }

    pub(crate) fn make(&self) -> io::Result<Directories> {
        self.0.make()
    }
}

/// The cgroup of one request. Keep it until its processes have ended: what still runs in it then, such as a
/// `git gc` that a push has left behind, is not ended, but counted until it does, which keeps the request's
/// [`Meter`](crate::Meter) alive. Then the cgroup is removed.
#[derive(Debug)]
#[must_use = "a cgroup is for the processes that are started in it"]
pub struct RequestCgroup {
    directories: Vec<PathBuf>,
    over: Arc<OnceLock<Instant>>,
}

impl RequestCgroup {
    pub(crate) const fn new(directories: Vec<PathBuf>, over: Arc<OnceLock<Instant>>) -> Self {
        Self { directories, over }
    }

    /// Of work that nobody pays: what is started in it is not metered.
    pub(crate) fn none() -> Self {
        Self { directories: Vec::new(), over: Arc::default() }
    }

    /// A command that executes a program in this cgroup, to be given arguments and the rest, and started with this or
    /// with Tokio's `Command::from`. Its process is not to be metered as a [child](crate::Meter::child) as well.
    ///
    /// It is a shell until it is in the cgroup. One that cannot enter, or finds no such program, fails with a
    /// status other than 0 and a line on standard error.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        enter(&self.directories, program.as_ref())
    }
}

impl Drop for RequestCgroup {
    fn drop(&mut self) {
        // It is dropped once.
        let _ = self.over.set(Instant::now());
    }
}

/// In no directory it is the program itself.
fn enter(directories: &[PathBuf], program: &OsStr) -> Command {
    if directories.is_empty() {
        return Command::new(program);
    }
    // 0 is whoever writes it (cgroups(7)), and `echo` is the shell itself.
    let moves: String = directories.iter().map(|_| "echo 0 >\"$1\" && shift && ").collect();
    let mut command = Command::new("sh");
    command.arg("-c").arg(moves + "exec \"$@\"").arg("sh");
    command.args(directories.iter().map(|directory| directory.join(files::PROCESSES))).arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_becomes_a_shell_that_moves_itself_into_each_directory() {
        let command = enter(&["/a".into(), "/b c".into()], "git".as_ref());
        let words: Vec<_> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        let script = "echo 0 >\"$1\" && shift && echo 0 >\"$1\" && shift && exec \"$@\"";
        assert_eq!(words, ["-c", script, "sh", "/a/cgroup.procs", "/b c/cgroup.procs", "git"]);
        assert_eq!(RequestCgroup::none().command("git").get_program(), "git");
    }
}
