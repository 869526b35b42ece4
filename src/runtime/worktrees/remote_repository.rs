//! A repository of its own for the commands that talk to a remote.
//!
//! It has the objects and the references of an agent's repository, and the person's settings as they apply there. Nothing that an agent
//! can write into its repository (settings, `remotes`, `branches`, hooks) decides where such a command connects to, what it sends there,
//! or what it runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::claude::environment::regular_file;
use crate::runtime::worktrees::git::{Git, GitError, Place, persons_settings};

#[derive(Debug)]
pub(crate) struct RemoteRepository {
    folder: TempDir,
    settings: Vec<(String, String)>,
    /// Those of the agent's repository.
    objects: PathBuf,
}

impl RemoteRepository {
    /// One with the objects of `repository`, which is a directory of git.
    pub(crate) fn new(repository: &Path) -> Result<Self, GitError> {
        let of_repository = |arguments: &[&str]| Git::new(Place::Of(repository), arguments).text();
        let own = Self {
            folder: tempfile::Builder::new().prefix("agent-cli-").tempdir()?,
            settings: persons_settings(repository)?,
            objects: repository.join("objects"),
        };
        let format = format!("--object-format={}", of_repository(&["rev-parse", "--show-object-format"])?);
        Git::alone(own.folder.path(), &[], &["init", "--bare", "--quiet", "--template=", &format]).text()?;
        // With them, a fetch gets only what is missing.
        let references = of_repository(&["for-each-ref", "--sort=refname", "--format=%(objectname) %(refname)"])?;
        fs::write(own.folder.path().join("packed-refs"), format!("# pack-refs with: sorted\n{references}\n"))?;
        match regular_file::copy(&repository.join("shallow"), &own.folder.path().join("shallow")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(own),
        }
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> Git {
        Git::alone(self.folder.path(), &self.settings, arguments).env("GIT_OBJECT_DIRECTORY", &self.objects)
    }
}
