//! Programs that run as children of a test.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;
use std::{io, thread};

use rustix::process::{Pid, kill_process};
use tempfile::TempDir;

pub use rustix::process::Signal;

use crate::wait::{PATIENCE, until};

/// A program to start, with its arguments and environment.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    command: Command,
}

impl Program {
    /// A program by its path, or by its name in `PATH`.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    pub fn new(name: impl AsRef<OsStr>) -> Self {
        let name = name.as_ref();
        let path = find(name).unwrap_or_else(|| panic!("{} is not installed", name.display()));
        let command = with_parent(&path);
        Self { path, command }
    }

    /// A binary of this workspace, such as `quota-server`, as it was built last: nothing is built here. It inherits
    /// no setting of the service from the tests' environment.
    ///
    /// # Panics
    ///
    /// Panics if it was not built.
    pub fn of_workspace(name: &str) -> Self {
        let path = workspace_binary(name);
        assert!(path.is_file(), "{} is missing: run `cargo build --workspace` first", path.display());
        let mut program = Self::new(path);
        for (key, _) in env::vars_os() {
            if key.as_encoded_bytes().starts_with(b"QUOTA_") {
                program.command.env_remove(key);
            }
        }
        program
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Starts it, with no standard input.
    pub fn start(mut self) -> Process {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = |name| File::create(folder.path().join(name)).expect("a file for the output");
        self.command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        let name = self.path.file_name().unwrap_or_default().to_owned();
        let child = spawn(self.command)
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}", name.display()));
        Process { name, child, folder }
    }
}

/// A running program, its output captured. Killed when dropped, and when the test's process ends in whatever way.
#[derive(Debug)]
pub struct Process {
    name: OsString,
    child: Child,
    folder: TempDir,
}

impl Process {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has in memory, in KiB.
    pub fn resident(&self) -> u64 {
        self.memory("VmRSS")
    }

    /// The most that it has had in memory, in KiB.
    pub fn peak(&self) -> u64 {
        self.memory("VmHWM")
    }

    fn memory(&self, of: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("a running process");
        let line = status.lines().find_map(|line| line.strip_prefix(of)).expect("a line for it");
        line.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().expect("a number")
    }

    /// What it wrote to its standard output so far.
    pub fn stdout(&self) -> String {
        self.captured("stdout")
    }

    /// What it wrote to its standard error so far.
    pub fn stderr(&self) -> String {
        self.captured("stderr")
    }

    /// Waits for a complete line that contains `text`, on standard output or standard error, and returns it. A line
    /// written before the call counts.
    ///
    /// # Panics
    ///
    /// Panics with the output if the program ends without it, or does not write it within [`PATIENCE`].
    pub async fn wait_for_line(&mut self, text: &str) -> String {
        let what = format!("{} writes a line with {text:?}", self.name.display());
        until(PATIENCE, &what, async || {
            // Asked first: what the program wrote before its end is then complete.
            let ended = self.exit_status();
            let line = [self.stdout(), self.stderr()].iter().find_map(|output| line_with(output, text));
            if let (Some(status), None) = (ended, &line) {
                panic!(
                    "{} ended ({status}) without a line with {text:?}\n{}",
                    self.name.display(),
                    self.output()
                );
            }
            line
        })
        .await
    }

    /// Freezes it (SIGSTOP): its connections stay open, and nothing answers.
    ///
    /// # Panics
    ///
    /// Panics if the program has ended; so does [`Process::resume`].
    pub fn pause(&mut self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on after a pause.
    pub fn resume(&mut self) {
        self.signal(Signal::CONT);
    }

    /// Sends a signal.
    ///
    /// # Panics
    ///
    /// Panics if the program has ended.
    pub fn signal(&mut self, signal: Signal) {
        if let Some(status) = self.exit_status() {
            panic!("{} has ended ({status})\n{}", self.name.display(), self.output());
        }
        kill_process(Pid::from_child(&self.child), signal).expect("a signal to one's own child");
    }

    /// How the program ended; none while it runs.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the state of one's own child")
    }

    /// Waits until the program has ended by itself.
    ///
    /// # Panics
    ///
    /// Panics if it has not within [`PATIENCE`].
    pub async fn wait_for_exit(&mut self) -> ExitStatus {
        self.wait_for_exit_within(PATIENCE).await
    }

    /// The same for a program that needs longer.
    ///
    /// # Panics
    ///
    /// Panics if it has not ended within `patience`.
    pub async fn wait_for_exit_within(&mut self, patience: Duration) -> ExitStatus {
        let what = format!("{} ends", self.name.display());
        until(patience, &what, async || self.exit_status()).await
    }

    /// Blocks until the program has ended by itself, for whoever cannot await: `Drop`.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("the state of one's own child")
    }

    /// Kills it (SIGKILL) and waits for its end; nothing if it has ended.
    pub fn kill(&mut self) {
        self.child.kill().expect("a signal to one's own child");
        self.wait();
    }

    /// Both outputs, for the message of a failing test.
    pub(crate) fn output(&self) -> String {
        format!("stdout:\n{}\nstderr:\n{}", self.stdout(), self.stderr())
    }

    fn captured(&self, stream: &str) -> String {
        let bytes = fs::read(self.folder.path().join(stream)).expect("the captured output");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("--- {} wrote\n{}", self.name.display(), self.output());
        }
    }
}

fn line_with(output: &str, text: &str) -> Option<String> {
    let (complete, _) = output.rsplit_once('\n')?;
    complete.lines().find(|line| line.contains(text)).map(str::to_owned)
}

/// Where the program is, if it is there.
pub(crate) fn find(name: impl AsRef<Path>) -> Option<PathBuf> {
    let name = name.as_ref();
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// What cargo says, else in the folder of this build, `target/<profile>`: there are binaries, and tests in `deps`.
fn workspace_binary(name: &str) -> PathBuf {
    if let Some(path) = env::var_os(format!("CARGO_BIN_EXE_{name}")) {
        return path.into();
    }
    let own = env::current_exe().expect("the path of this executable");
    let folder = own.parent().expect("a folder");
    let build = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    build.expect("the folder of a build").join(name)
}

/// Through `setpriv` where there is one (Linux), the kernel kills the child when its parent is gone.
fn with_parent(path: &Path) -> Command {
    let Some(setpriv) = find("setpriv") else { return Command::new(path) };
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(path);
    command
}

/// Starts `command` from a thread that lives as long as the process: to the kernel, the parent of a child is the
/// *thread* that started it, and a test's thread may end before the child is to.
fn spawn(command: Command) -> io::Result<Child> {
    type Order = (Command, mpsc::SyncSender<io::Result<Child>>);
    static SPAWNER: OnceLock<mpsc::SyncSender<Order>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, orders) = mpsc::sync_channel::<Order>(0);
        thread::spawn(move || {
            for (mut command, reply) in orders {
                reply.send(command.spawn()).ok();
            }
        });
        sender
    });
    let (reply, child) = mpsc::sync_channel(1);
    spawner.send((command, reply)).expect("the thread lives as long as the process");
    child.recv().expect("the thread answers every order")
}
