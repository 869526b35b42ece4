//! The paths in the state directory. Everything in it is private to its owner, whatever the umask.

pub(crate) mod attempt_files;
pub(crate) mod server_file;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::failpoint::{self, Moment, Step};
use crate::store::error::{Result, StoreError};
use crate::store::files::durable::{Durability, TEMPORARY, make_private, open_private, replace};
use crate::store::files::entries::canonical;

/// The suffix of files that record an agent's surroundings.
pub(crate) const SEEN: &str = ".seen.json";
/// The copy of a conversation for a command that a person was shown, who may run it later.
pub(crate) const OPENED: &str = "opened.jsonl";

/// The folder with a folder for each frame.
const FRAMES: &str = "frames";
/// The file that is locked as long as a process runs a chain.
const DRIVING: &str = "driving.lock";
/// The file with a frame's output.
const OUTPUT: &str = "out.ndjson";
/// The suffix of its other name.
const OUTPUT_SUFFIX: &str = ".ndjson";
/// The prefix of files that contain a result.
const RESULT: &str = "result-";

/// The state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    path: PathBuf,
}

/// The directory of the second names of frames' output files.
const LEASES: &str = "leases";

impl StateDir {
    /// The state directory at `path`, which need not exist.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| StoreError::io(path, error))?;
        let path = canonical(&path);
        if path.to_str().is_none() {
            return Err(StoreError::NotUtf8(path));
        }
        Ok(Self { path })
    }

    /// `agent-cli` in the platform's directory for state, or in the one for data if there is none for state.
    pub(crate) fn default_path() -> Option<PathBuf> {
        Some(dirs::state_dir().or_else(dirs::data_local_dir)?.join("agent-cli"))
    }

    /// Like [`Self::default_path`], for a process that knows the home directory but no other variable, as under cron.
    pub(crate) fn default_path_without_variables() -> Option<PathBuf> {
        if dirs::state_dir().is_none() {
            return Self::default_path();
        }
        Some(dirs::home_dir()?.join(".local/state/agent-cli"))
    }

    /// Its path: absolute and without symbolic links, so that it is unique.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Everything in the directory but the worktrees of agents, which are the agents' own places: paths, each with a pattern for
    /// what else begins like its name.
    pub(crate) fn records(&self) -> Vec<(PathBuf, &'static str)> {
        let others = [FRAMES, LEASES, Self::PLUGIN].map(|folder| self.path.join(folder)).into_iter();
        let others = others.chain([self.trusted_configs(), self.host_file(), self.lease_end(), self.page()]);
        let others = others.chain([self.attending(), self.watching()]).map(|path| (path, ""));
        [(self.database(), "*"), (self.server_file(), "*")].into_iter().chain(others).collect()
    }

    /// The folder with the files of the plugin for Claude Code.
    pub(crate) const PLUGIN: &str = "plugin";

    /// The records of the server of the page: its address, and which browsers have logged in.
    pub(crate) fn page(&self) -> PathBuf {
        self.path.join("page")
    }

    /// The list of project files that the user trusts.
    pub(crate) fn trusted_configs(&self) -> PathBuf {
        self.path.join("trusted-configs")
    }

    /// The database.
    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("agent-cli.db")
    }

    /// The name of the directory of agents' worktrees.
    const WORKTREES: &str = "worktrees";

    /// The directory of agents' worktrees, which need not exist. Canonical, because git and Claude Code report canonical paths.
    pub(crate) fn worktrees(&self) -> io::Result<PathBuf> {
        Ok(self.path.canonicalize()?.join(Self::WORKTREES))
    }

    /// The directory of a frame, which need not exist.
    pub(crate) fn frame_path(&self, frame: FrameId) -> PathBuf {
        self.path.join(FRAMES).join(frame.to_string())
    }

    /// The directory of a frame, created if it does not exist.
    pub(crate) fn frame_dir(&self, frame: FrameId) -> io::Result<PathBuf> {
        let path = self.frame_path(frame);
        make_private(&path)?;
        Ok(path)
    }

    /// Everything that `claude` printed for a frame, attempt after attempt. It is also the frame's [`Lease`].
    ///
    /// [`Lease`]: crate::store::Lease
    pub(crate) fn output(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join(OUTPUT)
    }

    /// The file that is locked as long as a process runs the chain of a root.
    pub(crate) fn driving(&self, root: FrameId) -> PathBuf {
        self.frame_path(root).join(DRIVING)
    }

    /// The file that is locked as long as a process runs the commands that an agent waits for.
    pub(crate) fn commands(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join("commands.lock")
    }

    /// The file that is locked as long as a session follows the chain of a root.
    pub(crate) fn followed(&self, root: FrameId) -> PathBuf {
        self.frame_path(root).join("followed.lock")
    }

    /// The file that is locked as long as a process runs the chain of a root and will ask the person at its terminal.
    pub(crate) fn asks_later(&self, root: FrameId) -> PathBuf {
        self.frame_path(root).join("asks-later.lock")
    }

    /// The file that is locked as long as a process shows questions to a person.
    pub(crate) fn attending(&self) -> PathBuf {
        self.path.join("attending.lock")
    }

    /// The file that is locked as long as a process continues every chain as soon as it can continue.
    pub(crate) fn watching(&self) -> PathBuf {
        self.path.join("watching.lock")
    }

    /// Whether this is the path of a file in any state directory that only processes that run agents, and their agents, keep locked.
    pub(crate) fn is_lock_of_runner(path: &Path) -> bool {
        let mut names = path.iter().rev().map(|name| name.to_str().unwrap_or_default());
        let mut next = || names.next().unwrap_or_default();
        // Linux marks the name of a file that was removed.
        let name = next();
        let name = name.strip_suffix(" (deleted)").unwrap_or(name);
        let (folder, above) = (next(), next());
        match folder {
            LEASES => name.strip_suffix(OUTPUT_SUFFIX).is_some_and(|frame| frame.parse::<FrameId>().is_ok()),
            frame => above == FRAMES && frame.parse::<FrameId>().is_ok() && [DRIVING, OUTPUT].contains(&name),
        }
    }

    /// Another name of the file with a frame's output, which survives if an agent removes its frame's directory.
    pub(crate) fn lease_file(&self, frame: FrameId) -> PathBuf {
        self.path.join(LEASES).join(format!("{frame}{OUTPUT_SUFFIX}"))
    }

    /// The path of `claude`'s output for a frame, by whichever of its names exists.
    pub(crate) fn printed(&self, frame: FrameId) -> PathBuf {
        Some(self.lease_file(frame)).filter(|path| path.exists()).unwrap_or_else(|| self.output(frame))
    }

    /// Opens a frame's output under both of its names, and creates it if it does not exist. Restores a removed name.
    pub(crate) fn open_output(&self, frame: FrameId) -> io::Result<File> {
        let (name, other) = (self.output(frame), self.lease_file(frame));
        self.frame_dir(frame)?;
        make_private(&self.path.join(LEASES))?;
        match fs::hard_link(&name, &other) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // This file system has no hard links.
            Err(_) => return open_private(&name),
        }
        let file = open_private(&other)?;
        let named = fs::symlink_metadata(&name).ok().map(|found| (found.dev(), found.ino()));
        let opened = file.metadata()?;
        if named != Some((opened.dev(), opened.ino())) {
            let fresh = name.with_file_name(format!("{}{TEMPORARY}", Uuid::new_v4()));
            let named = fs::hard_link(&other, &fresh).and_then(|()| fs::rename(&fresh, &name));
            // If another process was first, both names already refer to the same file, and `rename` leaves them in place.
            let _ = fs::remove_file(&fresh);
            named?;
        }
        Ok(file)
    }

    /// What `claude` wrote to its standard error for a frame.
    pub(crate) fn errors(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join("err.log")
    }

    /// [`StateDir::errors`], opened for appending, and created if it does not exist.
    pub(crate) fn open_errors(&self, frame: FrameId) -> io::Result<File> {
        failpoint::around(Step::ErrorLog, || {
            self.frame_dir(frame)?;
            failpoint::room(Step::ErrorLog)?;
            open_private(&self.errors(frame))
        })
    }

    /// The copy of the conversation that a frame continues from.
    pub(crate) fn checkpoint(&self, frame: FrameId, attempt: AttemptId) -> PathBuf {
        self.frame_path(frame).join(format!("{attempt}.jsonl"))
    }

    /// The surroundings of the agent when that attempt ended.
    pub(crate) fn seen(&self, frame: FrameId, attempt: AttemptId) -> PathBuf {
        self.frame_path(frame).join(format!("{attempt}{SEEN}"))
    }

    /// A copy of the checkpoint with results added to it. Claude Code only accepts files that end in `.jsonl`.
    pub(crate) fn answered(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join("answered.jsonl")
    }

    /// The copy of an agent's conversation that a person opened last.
    pub(crate) fn opened(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join(OPENED)
    }

    /// The file that notes the states of a frame's worktree that its remote has.
    pub(crate) fn pushed(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join("pushed")
    }

    /// The result of a request, while the call that it suspended returns it.
    pub(crate) fn result(&self, frame: FrameId, request: RequestId) -> PathBuf {
        self.frame_path(frame).join(format!("{RESULT}{request}{TEMPORARY}"))
    }

    /// The frame whose result has this path, and the path without links: one that leads to the folder may change.
    pub(crate) fn result_of(&self, path: &Path) -> Option<(FrameId, PathBuf)> {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let request = name.strip_prefix(RESULT).and_then(|name| name.strip_suffix(TEMPORARY)).unwrap_or_default();
        request.parse::<RequestId>().ok()?;
        let folder = path.parent()?.canonicalize().ok()?;
        let frame = folder.file_name().and_then(OsStr::to_str)?.parse().ok()?;
        (folder == self.frame_path(frame)).then(|| (frame, folder.join(name)))
    }

    /// A file without a name that contains `text`, opened for reading, for `claude`'s standard input.
    ///
    /// A pipe would be cut short if the runner died.
    pub(crate) fn prompt_file(&self, frame: FrameId, text: &str) -> io::Result<File> {
        failpoint::around(Step::Prompt, || {
            let folder = self.frame_dir(frame)?;
            let mut written = tempfile::Builder::new().prefix("prompt-").suffix(TEMPORARY).tempfile_in(folder)?;
            failpoint::room(Step::Prompt)?;
            written.write_all(text.as_bytes())?;
            failpoint::at(Step::Prompt, Moment::Within);
            let file = File::open(written.path())?;
            written.close()?;
            Ok(file)
        })
    }

    /// Writes a file of a frame that an attempt can write again. Readers see the complete new file, or the previous one.
    pub(crate) fn write(&self, step: Step, path: &Path, content: &[u8]) -> io::Result<()> {
        replace(step, path, Durability::Process, |file| file.write_all(content))
    }

    pub(crate) fn create(&self) -> Result<()> {
        let broken = |error| StoreError::io(&self.path, error);
        match fs::metadata(&self.path) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(StoreError::NotADirectory(self.path.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => make_private(&self.path).map_err(broken),
            Err(error) => Err(broken(error)),
        }
    }

    pub(crate) fn database_log(&self) -> PathBuf {
        self.path.join("agent-cli.db-wal")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::store::files::durable::{PRIVATE, PRIVATE_DIR};

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
    fn a_result_is_known_by_the_folder_that_its_path_leads_to() {
        let temp = tempfile::tempdir().unwrap();
        let [dir, other] = ["state", "other"].map(|name| StateDir::new(&temp.path().join(name)).unwrap());
        let frame = FrameId::random();
        let result = dir.result(frame, RequestId::random());
        assert_eq!(dir.result_of(&result), None, "its folder does not exist");
        dir.frame_dir(frame).unwrap();
        other.frame_dir(frame).unwrap();
        assert_eq!(dir.result_of(&result), Some((frame, result.clone())));
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert_eq!(dir.result_of(&link.join(result.strip_prefix(dir.path()).unwrap())), Some((frame, result.clone())));
        // A link in the place of a folder of results leads elsewhere.
        let linked = FrameId::random();
        std::os::unix::fs::symlink(other.frame_path(frame), dir.frame_path(linked)).unwrap();
        let elsewhere = [other.result(frame, RequestId::random()), dir.result(linked, RequestId::random())];
        let close = [result.with_file_name("result-.tmp"), temp.path().join(result.file_name().unwrap())];
        let others = [dir.settings(frame), "/etc/passwd".into(), "/".into(), "".into()];
        for path in elsewhere.into_iter().chain(close).chain(others) {
            assert_eq!(dir.result_of(&path), None, "{}", path.display());
        }
    }

    #[test]
    fn the_locks_of_runners_are_known_by_their_paths() {
        let (dir, frame) = (StateDir::new(Path::new("/state")).unwrap(), FrameId::random());
        let locks = [dir.driving(frame), dir.output(frame), dir.lease_file(frame)];
        for path in locks {
            assert!(StateDir::is_lock_of_runner(&path), "{}", path.display());
            assert!(StateDir::is_lock_of_runner(&PathBuf::from(format!("{} (deleted)", path.display()))));
        }
        let others = [dir.attending(), dir.watching(), dir.asks_later(frame), dir.database(), dir.commands(frame)];
        for path in others.into_iter().chain(["/driving.lock".into(), "/frames/x/driving.lock".into(), "/".into()]) {
            assert!(!StateDir::is_lock_of_runner(&path), "{}", path.display());
        }
    }

    #[test]
    fn what_a_user_names_is_made_absolute() {
        let dir = StateDir::new(Path::new("state")).unwrap();
        assert_eq!(dir.path(), std::env::current_dir().unwrap().join("state"));
        assert!(StateDir::new(Path::new("")).is_err());
    }
}
