//! Where things lie in the state directory. Everything in it is for its owner only, whatever the umask.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{Result, StoreError};
use crate::core::id::{FrameId, RequestId, SessionId};
use crate::crash::{self, Moment, Step};

/// The permissions of every file in the state directory.
pub(super) const PRIVATE: u32 = 0o600;
/// The permissions of the state directory and those in it.
pub(super) const PRIVATE_DIR: u32 = 0o700;
/// How names of files end that only live within a call. They are left over when the process is killed.
pub(super) const TEMPORARY: &str = ".tmp";

/// How the names of files end that hold what lay around an agent.
pub(super) const SEEN: &str = ".seen.json";

/// The state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// The state directory at `path`, which need not exist.
    ///
    /// # Errors
    ///
    /// The path is empty, is not valid UTF-8, or the current directory is gone.
    pub fn new(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| StoreError::io(path, error))?;
        super::codec::path_text(&path)?;
        Ok(Self { path })
    }

    /// The state directory that a user named, or the platform's.
    ///
    /// # Errors
    ///
    /// The platform names none, or [`StateDir::new`] refuses it.
    pub fn resolve(explicit: Option<PathBuf>) -> Result<Self> {
        let path = explicit.or_else(Self::default_path).ok_or(StoreError::NoStateDir)?;
        Self::new(&path)
    }

    /// The platform's directory for state, or for data where it has none for state, and `agent-cli` in it.
    #[must_use]
    pub fn default_path() -> Option<PathBuf> {
        Some(dirs::state_dir().or_else(dirs::data_local_dir)?.join("agent-cli"))
    }

    /// Where it is. Absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.path.join("agent-cli.db")
    }

    /// Where worktrees lie that are made for agents, which need not exist. Canonical: git and Claude Code report it so.
    ///
    /// # Errors
    ///
    /// The state directory does not exist.
    pub fn worktrees(&self) -> io::Result<PathBuf> {
        Ok(self.path.canonicalize()?.join("worktrees"))
    }

    /// The directory of a frame, which need not exist.
    #[must_use]
    pub fn frame_path(&self, frame: FrameId) -> PathBuf {
        self.path.join("frames").join(frame.to_string())
    }

    /// The directory of a frame, created when it is absent.
    ///
    /// # Errors
    ///
    /// It cannot be created.
    pub fn frame_dir(&self, frame: FrameId) -> io::Result<PathBuf> {
        let path = self.frame_path(frame);
        make_private(&path)?;
        Ok(path)
    }

    /// Everything that `claude` printed for a frame, attempt after attempt. It is also the frame's [`Lease`].
    ///
    /// [`Lease`]: super::Lease
    #[must_use]
    pub fn output(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join("out.ndjson")
    }

    /// What `claude` wrote to its standard error for a frame.
    #[must_use]
    pub fn errors(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join("err.log")
    }

    /// [`StateDir::errors`], created when it is absent and opened for appending.
    ///
    /// # Errors
    ///
    /// It cannot be created or opened.
    pub fn open_errors(&self, frame: FrameId) -> io::Result<File> {
        crash::around(Step::ErrorLog, || {
            self.frame_dir(frame)?;
            crash::room(Step::ErrorLog)?;
            open_private(&self.errors(frame))
        })
    }

    /// The copy of a session that a frame continues from.
    #[must_use]
    pub fn checkpoint(&self, frame: FrameId, session: SessionId) -> PathBuf {
        self.frame_path(frame).join(format!("{session}.jsonl"))
    }

    /// What lay around the agent when that session ended.
    pub(crate) fn seen(&self, frame: FrameId, session: SessionId) -> PathBuf {
        self.frame_path(frame).join(format!("{session}{SEEN}"))
    }

    /// A copy of the checkpoint with results added to it. Claude Code takes only files that end in `.jsonl`.
    #[must_use]
    pub fn answered(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join("answered.jsonl")
    }

    /// The settings that a frame's `claude` is given.
    #[must_use]
    pub fn settings(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join("settings.json")
    }

    /// The file that leads a frame's `claude` to the tool that decides on approvals.
    #[must_use]
    pub fn permission_tool(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join("permission-tool.json")
    }

    /// The result of a request, while the call that it suspended returns it.
    #[must_use]
    pub fn result(&self, frame: FrameId, request: RequestId) -> PathBuf {
        self.frame_path(frame).join(format!("result-{request}{TEMPORARY}"))
    }

    /// A file without a name that holds `text`, opened for reading: `claude`'s standard input.
    ///
    /// A pipe would be cut short when the runner dies; this cannot be.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn prompt_file(&self, frame: FrameId, text: &str) -> io::Result<File> {
        crash::around(Step::Prompt, || {
            let path = self.frame_dir(frame)?.join(format!("prompt-{}{TEMPORARY}", Uuid::new_v4()));
            let written = written(Step::Prompt, &path, text.as_bytes()).and_then(|()| File::open(&path));
            let removed = fs::remove_file(&path);
            let file = written?;
            removed.map(|()| file)
        })
    }

    /// Writes a file of a frame as a `step` of its own. Whoever opens it meets all of it, or what was there before.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, step: Step, path: &Path, content: &[u8]) -> io::Result<()> {
        crash::around(step, || {
            let fresh = path.with_file_name(format!("{}{TEMPORARY}", Uuid::new_v4()));
            let moved = written(step, &fresh, content).and_then(|()| fs::rename(&fresh, path));
            if moved.is_err() {
                let _ = fs::remove_file(&fresh);
            }
            moved
        })
    }

    pub(super) fn create(&self) -> Result<()> {
        let broken = |error| StoreError::io(&self.path, error);
        match fs::metadata(&self.path) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(StoreError::NotADirectory(self.path.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => make_private(&self.path).map_err(broken),
            Err(error) => Err(broken(error)),
        }
    }

    pub(super) fn database_log(&self) -> PathBuf {
        self.path.join("agent-cli.db-wal")
    }
}

/// Opens a file for reading and appending, created with the right permissions when it is absent.
pub(super) fn open_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(PRIVATE).open(path)?;
    restrict(file)
}

/// Creates a file with the right permissions.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)?;
    restrict(file)
}

/// Creates a file and writes all of it.
fn written(step: Step, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = create_private(path)?;
    crash::room(step)?;
    file.write_all(content)?;
    crash::at(step, Moment::Within);
    Ok(())
}

/// Creates a directory with the right permissions, and those above it. One that exists stays as it is.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(PRIVATE_DIR))
}

/// The umask may have taken permissions away, even from the owner.
fn restrict(file: File) -> io::Result<File> {
    if file.metadata()?.permissions().mode() & 0o777 != PRIVATE {
        file.set_permissions(Permissions::from_mode(PRIVATE))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_prompt_has_no_name_and_is_read_from_its_start() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::new(temp.path()).unwrap();
        let frame = FrameId::random();
        let text = "SGN_RESUME\n".repeat(100_000);
        let mut file = dir.prompt_file(frame, &text).unwrap();
        assert_eq!(fs::read_dir(dir.frame_path(frame)).unwrap().count(), 0);
        let mut read = String::new();
        file.read_to_string(&mut read).unwrap();
        assert!(read == text);
        assert!(file.write_all(b"x").is_err());
    }

    #[test]
    fn the_directory_and_the_files_of_a_frame_are_private() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::new(temp.path()).unwrap();
        let frame = FrameId::random();
        let errors = dir.open_errors(frame).unwrap();
        assert_eq!(errors.metadata().unwrap().permissions().mode() & 0o777, PRIVATE);
        for path in [dir.frame_path(frame), temp.path().join("frames")] {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, PRIVATE_DIR, "{}", path.display());
        }
    }

    #[test]
    fn what_a_user_names_is_made_absolute() {
        let dir = StateDir::resolve(Some(PathBuf::from("state"))).unwrap();
        assert_eq!(dir.path(), std::env::current_dir().unwrap().join("state"));
        assert!(StateDir::new(Path::new("")).is_err());
    }
}
