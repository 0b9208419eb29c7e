//! Pressure stalls (the kernel's `Documentation/accounting/psi.rst`).

use std::path::Path;

use super::cgroup::Cgroups;
use super::files::Files;
use super::measured::{Figure, Measured, read, read_if_there};
use super::value;

/// Of the process's cgroup in v2, or of the machine where it has none that tells. `resource` is `cpu`, `memory` or
/// `io`.
pub(super) fn measure(files: &impl Files, cgroups: &Cgroups, resource: &str) -> Measured {
    let own = cgroups.unified.as_ref().and_then(|hierarchy| hierarchy.levels.first());
    let own = own.map(|level| level.join(format!("{resource}.pressure")));
    if let Some(file) = own
        && let Some(text) = read_if_there(files, &file)?
    {
        return Ok(Figure { value: value::stalled(&file, &text)?, source: file });
    }
    let file = Path::new("/proc/pressure").join(resource);
    Ok(Figure { value: value::stalled(&file, &read(files, &file)?)?, source: file })
}
