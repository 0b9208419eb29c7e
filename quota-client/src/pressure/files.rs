use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where pressure is read from.
pub(crate) trait Files {
    fn read(&self, file: &Path) -> io::Result<String>;

    /// The directories that are right below one.
    fn directories(&self, parent: &Path) -> io::Result<Vec<PathBuf>>;
}

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Machine;

impl Files for Machine {
    /// A mount point may have a name that is not UTF-8, which must not hide all the others.
    fn read(&self, file: &Path) -> io::Result<String> {
        fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn directories(&self, parent: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(parent)?.filter_map(|entry| {
            let entry = entry.ok()?;
            entry.file_type().is_ok_and(|kind| kind.is_dir()).then(|| entry.path())
        });
        Ok(entries.collect())
    }
}
