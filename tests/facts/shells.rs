//! The shell that runs the commands of Bash calls.

use std::env;
use std::fs;
use std::iter;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::session::Session;
use crate::support::{Turn, on_every_version};

on_every_version!(
    the_shell_is_the_first_of_these_that_seems_to_be_bash_or_zsh,
    what_startup_files_of_the_shell_do_to_path_does_not_count,
);

/// What the only command of a session prints.
fn printed(session: &Session, mut claude: Command) -> String {
    let output = claude.args(["--permission-mode=bypassPermissions", "go"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    session.api.last_conversation().last_result().unwrap().to_owned()
}

fn the_shell_is_the_first_of_these_that_seems_to_be_bash_or_zsh(version: &str) {
    let folder = tempfile::tempdir().unwrap();
    // Their names are all that counts, so no zsh is needed here.
    for name in ["path/zsh", "path/bash", "other/zsh", "other/bash", "other/dash", "like-zsh/dash"] {
        let link = folder.path().join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink("/bin/sh", link).unwrap();
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let before = env::var_os("PATH").unwrap();
    let folders = env::join_paths(iter::once(folder.path().join("path")).chain(env::split_paths(&before))).unwrap();
    for (claude_code_shell, shell, expected) in [
        ("", "", "path/zsh"),
        ("", "other/bash", "other/bash"),
        ("", "other/zsh", "other/zsh"),
        ("", "other/dash", "path/zsh"),
        ("", "like-zsh/dash", "like-zsh/dash"),
        ("", "none/bash", "path/bash"),
        ("", "none/zsh", "path/zsh"),
        ("other/zsh", "other/bash", "other/zsh"),
        ("other/dash", "other/bash", "other/bash"),
        ("none/zsh", "other/bash", "other/bash"),
    ] {
        let session = Session::new(version, Turn::bash("echo \"$0\""));
        let mut claude = session.command();
        claude.env_remove("SHELL").env("PATH", &folders);
        let named = [("CLAUDE_CODE_SHELL", claude_code_shell), ("SHELL", shell)];
        claude.envs(
            named.into_iter().filter(|(_, name)| !name.is_empty()).map(|(variable, name)| (variable, path(name))),
        );
        assert_eq!(printed(&session, claude), path(expected), "{claude_code_shell:?}, {shell:?}");
    }
}

/// Variables do: zsh reads one of these files before each command.
fn what_startup_files_of_the_shell_do_to_path_does_not_count(version: &str) {
    let session = Session::new(version, Turn::bash("echo \"${ZSH_VERSION:+zsh}|$FROM_ZSHENV|$PATH\""));
    for name in [".bashrc", ".bash_profile", ".profile", ".zprofile", ".zshrc", ".zlogin"] {
        session.write(name, "export PATH=/nowhere:$PATH\n");
    }
    session.write(".zshenv", "export PATH=/nowhere:$PATH FROM_ZSHENV=zsh\n");
    let claude = session.command();
    let path = claude.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path?.to_str()).unwrap();
    let (with, without) = (format!("zsh|zsh|{path}"), format!("||{path}"));
    let printed = printed(&session, claude);
    assert!(printed == with || printed == without, "{printed}");
}
