use std::io;
use std::path::{Component, Path, PathBuf};

/// The bare repositories below a folder.
pub(crate) struct Repositories {
    /// Without symbolic links.
    root: PathBuf,
}

/// A bare repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    pub(crate) path: PathBuf,
    /// Its path below the root: one name for each, whatever links lead to it.
    pub(crate) id: String,
}

impl Repositories {
    pub(crate) fn below(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "the root must be a folder"));
        }
        Ok(Self { root })
    }

    /// The repository that is called so, if there is one below the root: with or without `.git` at its end, never
    /// by `..` nor a link that leads out. Reads the file system.
    pub(crate) fn find(&self, name: &str) -> Option<Repository> {
        let name = Path::new(name);
        if !name.components().all(|part| matches!(part, Component::Normal(_))) {
            return None;
        }
        let path = self.root.join(name);
        let path = path.canonicalize().or_else(|_| with_git(&path).canonicalize()).ok()?;
        let id = path.strip_prefix(&self.root).ok()?.to_str()?.to_owned();
        (!id.is_empty() && is_bare(&path)).then_some(Repository { path, id })
    }
}

fn with_git(path: &Path) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(".git");
    path.into()
}

/// What git looks for too; see gitrepository-layout(5).
fn is_bare(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn bare(path: &Path) {
        for folder in ["objects", "refs"] {
            fs::create_dir_all(path.join(folder)).unwrap();
        }
        fs::write(path.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn only_bare_repositories_below_the_root_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        bare(&root.join("group/project.git"));
        bare(&folder.path().join("outside.git"));
        fs::create_dir(root.join("group/empty.git")).unwrap();
        symlink("../outside.git", root.join("out.git")).unwrap();
        symlink("group/project.git", root.join("alias.git")).unwrap();
        let repositories = Repositories::below(&root).unwrap();
        let id = |name| repositories.find(name).map(|repository| repository.id);

        for name in ["group/project.git", "group/project", "group//project.git/", "alias.git", "alias"] {
            assert_eq!(id(name).as_deref(), Some("group/project.git"), "{name}");
        }
        for name in [
            "",
            ".",
            "/",
            "..",
            "../outside.git",
            "group/../../outside.git",
            "out.git",
            "group/empty.git",
            "group",
            "group/project.git/objects",
            "nothing",
            "group/project.git\0",
        ] {
            assert_eq!(id(name), None, "{name:?}");
        }
        let absolute = folder.path().join("outside.git");
        assert_eq!(id(absolute.to_str().unwrap()), None);
    }

    #[test]
    fn a_root_that_is_itself_a_repository_is_not_served() {
        let folder = tempfile::tempdir().unwrap();
        bare(folder.path());
        assert_eq!(Repositories::below(folder.path()).unwrap().find(""), None);
    }
}
