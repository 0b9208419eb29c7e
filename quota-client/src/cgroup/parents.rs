use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use super::enter;
use super::files::{CPU, Counter, MEMORY, PROCESSES, WEIGHTS, Weight, pids};
use crate::process::{Process, anonymous_memory};

/// What the names of cgroups begin with; then comes which process made it, and a number.
const PREFIX: &str = "quota-";

/// Of all cgroups that this process has made.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The directories in which cgroups are made, and what counts in them.
#[derive(Debug)]
pub(super) struct Parents {
    directories: Vec<PathBuf>,
    this: Process,
    layout: Arc<Layout>,
}

/// Where in a cgroup is what counts.
#[derive(Debug)]
struct Layout {
    cpu: Source,
    /// Without one, the processes are summed up.
    memory: Option<Source>,
    /// Of which directory, if it is to be set and can be.
    weight: Option<(usize, Weight)>,
}

#[derive(Clone, Copy, Debug)]
struct Source {
    /// Of which directory.
    of: usize,
    counter: Counter,
}

/// The cgroup of a request: a directory in each hierarchy.
#[derive(Debug)]
pub(crate) struct Directories {
    paths: Vec<PathBuf>,
    layout: Arc<Layout>,
}

impl Parents {
    /// Makes one, runs a process in it and removes it again.
    pub(super) fn probe<P: AsRef<Path>>(
        directories: impl IntoIterator<Item = P>,
        yields: bool,
    ) -> io::Result<Self> {
        let directories = directories.into_iter().map(|path| at(fs::canonicalize(&path), path.as_ref()));
        let directories: Vec<_> = directories.collect::<io::Result<_>>()?;
        let this = Process::of(std::process::id()).ok_or_else(|| io::Error::other("/proc cannot be read"))?;
        for directory in &directories {
            remove_stale(directory);
            // Only of v2, and only in vain where the controller is not to be had: without memory's, processes are summed up,
            // and without the CPU's there are no weights.
            for controller in ["+memory"].into_iter().chain(yields.then_some("+cpu")) {
                let _ = write(&directory.join("cgroup.subtree_control"), controller);
            }
        }
        let paths = make(&directories, this)?;
        let probed = Layout::probe(&paths, yields).and_then(|layout| run_in(&paths).map(|()| layout));
        let removed = remove(&paths);
        let layout = Arc::new(probed?);
        removed?;
        if yields && layout.weight.is_none() {
            tracing::info!(
                ?directories,
                "cgroups of requests have no CPU weight here: requests of accounts that are cut do not yield"
            );
        }
        Ok(Self { directories, this, layout })
    }

    pub(super) fn make(&self) -> io::Result<Directories> {
        let paths = make(&self.directories, self.this)?;
        Ok(Directories { paths, layout: Arc::clone(&self.layout) })
    }
}

impl Layout {
    fn probe(paths: &[PathBuf], yields: bool) -> io::Result<Self> {
        let find = |counters: &[Counter]| {
            let sources = paths
                .iter()
                .enumerate()
                .flat_map(|(of, _)| counters.iter().map(move |counter| Source { of, counter: *counter }));
            sources.into_iter().find(|source| source.read(paths).is_some())
        };
        let cpu = find(&CPU).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "none of the directories is a cgroup that counts CPU time",
            )
        })?;
        let weights =
            paths.iter().enumerate().flat_map(|(of, path)| WEIGHTS.map(|weight| (of, path, weight)));
        let is_there = |(_, path, weight): &(usize, &PathBuf, Weight)| {
            write(&path.join(weight.file), weight.whole).is_ok()
        };
        let weight = weights.filter(|_| yields).find(is_there).map(|(of, _, weight)| (of, weight));
        Ok(Self { cpu, memory: find(&MEMORY), weight })
    }
}

impl Source {
    fn read(self, paths: &[PathBuf]) -> Option<u64> {
        let file = paths.get(self.of)?.join(self.counter.file);
        (self.counter.parse)(&fs::read_to_string(file).ok()?)
    }
}

impl Directories {
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Who is in it; nobody where it is gone.
    pub(super) fn processes(&self) -> io::Result<Vec<u32>> {
        let Some(path) = self.paths.get(self.layout.cpu.of) else { return Ok(Vec::new()) };
        match fs::read_to_string(path.join(PROCESSES)) {
            Ok(text) => Ok(pids(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => at(Err(error), path),
        }
    }

    /// In microseconds since it was made.
    pub(super) fn cpu(&self) -> Option<u64> {
        self.layout.cpu.read(&self.paths)
    }

    /// Anonymous memory, in bytes, of those who are in it.
    pub(super) fn memory(&self, processes: &[u32]) -> Option<u64> {
        match self.layout.memory {
            Some(source) => source.read(&self.paths),
            None => Some(anonymous_memory(processes.iter().copied())),
        }
    }

    pub(super) fn has_weight(&self) -> bool {
        self.layout.weight.is_some()
    }

    /// From now on it yields the CPU to others that want it, or does not. Nothing where it has no weight or is gone.
    pub(super) fn weigh(&self, yields: bool) -> io::Result<()> {
        let Some((of, weight)) = self.layout.weight else { return Ok(()) };
        let Some(path) = self.paths.get(of) else { return Ok(()) };
        let file = path.join(weight.file);
        match write(&file, if yields { weight.tenth } else { weight.whole }) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => at(Err(error), &file),
            _ => Ok(()),
        }
    }

    /// Succeeds only where nobody is in it.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove(&self.paths)
    }
}

/// All or none.
fn make(parents: &[PathBuf], this: Process) -> io::Result<Vec<PathBuf>> {
    let name = format!("{PREFIX}{this}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let paths: Vec<_> = parents.iter().map(|parent| parent.join(&name)).collect();
    for path in &paths {
        if let Err(error) = at(fs::create_dir(path), path) {
            // What is removed was made a moment ago, and is empty.
            let _ = remove(&paths);
            return Err(error);
        }
    }
    Ok(paths)
}

/// Removes what is there.
fn remove(paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        match fs::remove_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return at(Err(error), path),
            _ => {}
        }
    }
    Ok(())
}

/// Whether processes can enter.
fn run_in(paths: &[PathBuf]) -> io::Result<()> {
    let output = enter(paths, "true".as_ref()).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("no process can enter a cgroup: {}", error.trim())))
}

/// What processes that have ended left behind. A cgroup in which somebody is cannot be removed, and is nothing to wait for.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.rsplit_once('-')?.0.parse::<Process>().ok());
        if maker.is_some_and(|maker| !maker.exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Into a file that is there.
fn write(file: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}

/// An error that says where.
fn at<T>(result: io::Result<T>, path: &Path) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}
