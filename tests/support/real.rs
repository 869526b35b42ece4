//! A home folder for the real Claude Code, and an environment in which it only reaches the scripted API.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::shell::Shell;

/// A home folder with a project in it, deleted when dropped. Both paths are canonical, as Claude Code reports them.
pub struct RealHome {
    _folder: TempDir,
    home: PathBuf,
    project: PathBuf,
    url: String,
    path: OsString,
    /// The value of `SHELL`, if a shell was asked for.
    shell: Option<PathBuf>,
}

impl RealHome {
    /// An empty home whose programs talk to the API at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let home = folder.path().canonicalize().expect("the folder exists");
        let project = home.join("project");
        fs::create_dir(&project).expect("the folder is empty");
        let shell = Shell::of_this_run(&home.join("shells"));
        let path = env::var_os("PATH").unwrap_or_default();
        let made = Self { _folder: folder, home, project, url: url.into(), path, shell: None };
        match shell {
            Some(Shell { path, folder }) => Self { shell: Some(path), ..made.with_path(&folder) },
            None => made,
        }
    }

    /// The home folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The project, the working directory of every command.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Puts `folder` before everything else on `PATH`.
    #[must_use]
    pub fn with_path(mut self, folder: &Path) -> Self {
        let folders = [folder.to_path_buf()].into_iter().chain(env::split_paths(&self.path)).collect::<Vec<_>>();
        self.path = env::join_paths(folders).expect("a folder on PATH has no colon");
        self
    }

    /// Writes a file of the project, with the folders above it, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project.join(name);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the project can be written to");
        fs::write(&path, text).expect("the project can be written to");
        path
    }

    /// `program` in the project, with only the environment variables that Claude Code needs.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.project)
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", &self.path)
            .envs(self.shell.as_ref().map(|shell| ("SHELL", shell)))
            .env("ANTHROPIC_BASE_URL", &self.url)
            .env("ANTHROPIC_API_KEY", "dummy")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            // Containers run tests as root, for whom bypassPermissions is otherwise refused.
            .env("IS_SANDBOX", "1");
        command
    }

    /// The transcripts of all sessions, in the order of their paths.
    pub fn transcripts(&self) -> Vec<PathBuf> {
        let projects = entries(&self.home.join(".claude/projects"));
        let mut transcripts = projects.iter().flat_map(|project| entries(project)).collect::<Vec<_>>();
        transcripts.retain(|path| path.extension() == Some(OsStr::new("jsonl")));
        transcripts.sort();
        transcripts
    }

    /// The transcript of one session.
    pub fn transcript(&self, session: &str) -> Option<PathBuf> {
        self.transcripts().into_iter().find(|path| path.file_stem() == Some(OsStr::new(session)))
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    // A folder that Claude Code has not created yet is empty.
    fs::read_dir(folder).map_or_else(|_| Vec::new(), |found| found.flatten().map(|entry| entry.path()).collect())
}
