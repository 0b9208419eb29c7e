use std::path::{Component, Path, PathBuf};
use std::{fs, io};

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
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("--root {}: {error}", root.display()));
        let root = root.canonicalize().map_err(named)?;
        fs::read_dir(&root).map_err(named)?;
        Ok(Self { root })
    }

    /// The repository that is called so, if there is one below the root: with or without `.git` at its end, never
    /// by `..` nor a link that leads out. What is inside of a repository is none, whatever it looks like: whoever may
    /// push chooses the names of its references, and so of folders in it. Reads the file system.
    pub(crate) fn find(&self, name: &str) -> Option<Repository> {
        let name = Path::new(name);
        if !name.components().all(|part| matches!(part, Component::Normal(_))) {
            return None;
        }
        let path = self.root.join(name);
        let path = path.canonicalize().or_else(|_| with_git(&path).canonicalize()).ok()?;
        let id = path.strip_prefix(&self.root).ok()?.to_str()?.to_owned();
        let mut above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.root));
        (!id.is_empty() && is_bare(&path) && !above.any(is_bare)).then_some(Repository { path, id })
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
        // As the references heads/x/HEAD, heads/x/objects/o and heads/x/refs/r make it.
        bare(&root.join("group/project.git/refs/heads/x"));
        symlink("group/project.git/refs/heads/x", root.join("inside.git")).unwrap();
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
            "group/project.git/refs/heads/x",
            "inside.git",
            "nothing",
            "group/project.git\0",
        ] {
            assert_eq!(id(name), None, "{name:?}");
        }
        let absolute = folder.path().join("outside.git");
        assert_eq!(id(absolute.to_str().unwrap()), None);
    }

    #[test]
    fn a_root_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for name in ["file", "nothing"] {
            let root = folder.path().join(name);
            let error = Repositories::below(&root).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--root {}: ", root.display())), "{error}");
        }
    }

    #[test]
    fn a_root_that_is_itself_a_repository_is_not_served() {
        let folder = tempfile::tempdir().unwrap();
        bare(folder.path());
        bare(&folder.path().join("refs/heads/x"));
        let repositories = Repositories::below(folder.path()).unwrap();
        assert_eq!((repositories.find(""), repositories.find("refs/heads/x")), (None, None));
    }
}
