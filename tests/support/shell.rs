//! The shell that Claude Code runs the commands of agents with.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const VARIABLE: &str = "AGENT_CLI_TEST_SHELL";

/// The folder of a shell that Claude Code would not take by its name: a path with `bash` in it is enough for it.
const AS_BASH: &str = "as-bash";

/// A shell that was asked for, instead of the first that Claude Code finds.
pub(super) struct Shell {
    /// The value of `SHELL`.
    pub(super) path: PathBuf,
    /// What has to be in front of `PATH`, for programs that run `sh`.
    pub(super) folder: PathBuf,
}

impl Shell {
    /// The shell that the variable names, with its links in `folder`.
    ///
    /// # Panics
    ///
    /// When the variable names a shell that it does not know, or that is not installed.
    pub(super) fn of_this_run(folder: &Path) -> Option<Self> {
        let name = match env::var(VARIABLE).as_deref() {
            Err(env::VarError::NotPresent) => return None,
            Ok(name @ ("bash" | "zsh" | "dash")) => name.to_owned(),
            other => panic!("{VARIABLE} is bash, zsh, dash or not set at all, but not {other:?}"),
        };
        let path = env::var_os("PATH").unwrap_or_default();
        let installed = env::split_paths(&path).map(|folder| folder.join(&name)).find(|program| program.is_file());
        let installed = installed.unwrap_or_else(|| panic!("{VARIABLE} is {name}, which is not in PATH"));
        let link = |link: PathBuf| {
            fs::create_dir_all(link.parent().expect("a file is in a folder")).expect("the folder can be made");
            symlink(&installed, &link).expect("the folder is empty");
            link
        };
        link(folder.join("sh"));
        let path = if name == "dash" { link(folder.join(AS_BASH).join(&name)) } else { installed.clone() };
        Some(Self { path, folder: folder.to_owned() })
    }
}
