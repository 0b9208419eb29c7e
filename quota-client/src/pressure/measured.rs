//! What was read, or why it was not. What is absent is not healthy.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::files::Files;
use super::signal::Signal;

/// A signal's value, or why there is none.
pub(super) type Measured = Result<Figure, Absent>;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    /// A share, 0 to 1, or a count.
    pub(super) value: f64,
    /// What it is of: a cgroup's directory, or a file of the machine.
    pub(super) source: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// There is nothing to measure: no limit, no such setting, or nothing yet to compare with.
    Unset,
    /// It is not there. A failure where it was there before; else this kernel does not have it.
    Missing(String),
    /// It is there, and cannot be read or understood.
    Failed(String),
}

/// What a machine told at one time.
#[derive(Clone, Debug)]
pub(super) struct Measurements {
    signals: [Measured; Signal::ALL.len()],
    /// What may be used; none where it is not known.
    pub(super) cpu_millicores: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
}

impl Measurements {
    pub(super) fn all(absent: &Absent) -> Self {
        Self {
            signals: std::array::from_fn(|_| Err(absent.clone())),
            cpu_millicores: None,
            memory_bytes: None,
        }
    }

    pub(super) fn of(&self, signal: Signal) -> &Measured {
        &self.signals[signal as usize]
    }

    pub(super) fn set(&mut self, signal: Signal, measured: Measured) {
        self.signals[signal as usize] = measured;
    }
}

impl Absent {
    /// A kernel that was started without pressure stalls lets them be opened and does not support reading them. Of a
    /// cgroup that is removed, an open file has no device.
    pub(super) fn unread(file: &Path, error: &io::Error) -> Self {
        let reason = format!("{}: {error}", file.display());
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::OPNOTSUPP | Errno::NODEV) => Self::Missing(reason),
            _ => Self::Failed(reason),
        }
    }

    pub(super) fn garbage(file: &Path, text: &str) -> Self {
        /// Enough to see what it is.
        const SHOWN: usize = 80;
        let text: String = text.chars().take(SHOWN).collect();
        Self::Failed(format!("{}: {text:?} is not understood", file.display()))
    }

    pub(super) fn no_field(file: &Path, name: &str) -> Self {
        Self::Missing(format!("{} has no {name}", file.display()))
    }
}

pub(super) fn read(files: &impl Files, file: &Path) -> Result<String, Absent> {
    files.read(file).map_err(|error| Absent::unread(file, &error))
}

/// None where there is no such file: in a hierarchy's root, and in v2 where the parent does not hand the controller
/// down.
pub(super) fn read_if_there(files: &impl Files, file: &Path) -> Result<Option<String>, Absent> {
    match files.read(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Absent::unread(file, &error)),
    }
}

/// What one has of another. Of nothing, anything is all.
pub(super) fn share(used: f64, of: f64, source: &Path) -> Figure {
    let value = if of > 0.0 { (used / of).clamp(0.0, 1.0) } else { f64::from(used > 0.0) };
    Figure { value, source: source.to_owned() }
}

/// The nearer to its limit of two. What is not known of one is not known of both, since that one may be the nearer.
pub(super) fn nearer(one: Measured, other: Measured) -> Measured {
    match (one, other) {
        (Err(Absent::Unset), other) | (other, Err(Absent::Unset)) => other,
        (Ok(one), Ok(other)) => Ok(if other.value > one.value { other } else { one }),
        (Err(absent), _) | (_, Err(absent)) => Err(absent),
    }
}
