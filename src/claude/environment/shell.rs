//! The shell that Claude Code runs the commands of agents with.

use std::ffi::OsStr;
use std::path::Path;

use crate::claude::environment::variables::Variables;

/// The first of these that seems to be bash or zsh is taken. Without one, Claude Code looks for either.
const NAMED_BY: [&str; 2] = ["CLAUDE_CODE_SHELL", "SHELL"];

/// How a command changes the directory of that shell.
///
/// The user may have a function named `cd`. In bash and zsh, `builtin` bypasses it, whereas `command` of zsh looks for a program. A
/// shell that is only taken for one of them, because of the folder that it is in, may not have `builtin`.
pub(crate) fn change_directory(variables: &Variables) -> &'static str {
    let mut named = NAMED_BY.iter().filter_map(|name| variables.get(name));
    let file = named.find(|shell| seems_to_be_one(shell)).and_then(|shell| Path::new(shell).file_name());
    if file.is_none_or(seems_to_be_one) { "builtin cd" } else { "command cd" }
}

fn seems_to_be_one(shell: &OsStr) -> bool {
    let shell = shell.to_string_lossy();
    ["bash", "zsh"].iter().any(|name| shell.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_only_seems_to_be_bash_or_zsh_has_no_builtin() {
        for (claude_code_shell, shell, expected) in [
            ("", "", "builtin cd"),
            ("", "/bin/zsh", "builtin cd"),
            ("", "/usr/local/bin/bash-5.2", "builtin cd"),
            ("", "/bin/dash", "builtin cd"),
            ("", "/opt/bash/dash", "command cd"),
            ("/opt/zsh/ksh", "/bin/bash", "command cd"),
            ("/bin/dash", "/opt/bash/dash", "command cd"),
            ("/bin/zsh", "/opt/bash/dash", "builtin cd"),
        ] {
            let variables = [("CLAUDE_CODE_SHELL", claude_code_shell), ("SHELL", shell)].into_iter().collect();
            assert_eq!(change_directory(&variables), expected, "{claude_code_shell:?}, {shell:?}");
        }
    }
}
