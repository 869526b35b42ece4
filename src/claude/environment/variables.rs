//! The environment of this process, or of another in which it could run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

use crate::claude::environment::credentials;

/// Variables by name. Many values are secrets.
#[derive(Clone, Default)]
pub(crate) struct Variables(BTreeMap<String, OsString>);

/// The variables that cron passes on: who the user is. It sets everything else itself.
const KEPT_BY_CRON: [&str; 3] = ["HOME", "LOGNAME", "USER"];
pub(crate) const SET_BY_CRON: [(&str, &str); 2] = [("PATH", "/usr/bin:/bin"), ("SHELL", "/bin/sh")];

/// Claude Code takes the first of these that seems to be bash or zsh as the shell of agents. Without one, it looks for either.
const NAME_SHELLS: [&str; 2] = ["CLAUDE_CODE_SHELL", "SHELL"];

impl Variables {
    /// The variables of this process. A name that is not UTF-8 is never looked up.
    pub(crate) fn of_process() -> Self {
        Self(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect())
    }

    /// The variables that cron sets for a command of the same user if the crontab sets none.
    pub(crate) fn under_cron(&self) -> Self {
        let kept = self.0.iter().filter(|(name, _)| KEPT_BY_CRON.contains(&name.as_str()));
        let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
        Self(kept.chain(SET_BY_CRON.map(|(name, value)| (name.to_owned(), value.into()))).collect())
    }

    /// A variable's value. An empty one counts as unset.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A variable's value, which may be empty.
    pub(crate) fn value(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }

    /// How a command changes the directory of the shell with which Claude Code runs the commands of agents.
    ///
    /// The user may have a function named `cd`. In bash and zsh, `builtin` bypasses it, whereas `command` of zsh looks for a
    /// program. A shell that is only taken for one of them, because of its folder, may not have `builtin`.
    pub(crate) fn change_directory(&self) -> &'static str {
        let is_taken = |shell: &OsStr| ["bash", "zsh"].iter().any(|name| shell.to_string_lossy().contains(name));
        let shell = NAME_SHELLS.iter().filter_map(|name| self.get(name)).find(|shell| is_taken(shell));
        let file = shell.and_then(|shell| Path::new(shell).file_name());
        if file.is_none_or(is_taken) { "builtin cd" } else { "command cd" }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The names of the variables that Claude Code considers set.
    pub(crate) fn set(&self) -> impl Iterator<Item = &str> {
        let is_set = |(name, value): &(&String, &OsString)| credentials::is_set(name, &value.to_string_lossy());
        self.0.iter().filter(is_set).map(|(name, _)| name.as_str())
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for Variables {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cron_knows_the_user_and_little_else() {
        let shell = [("HOME", "/home/ann"), ("LOGNAME", "ann"), ("PATH", "/home/ann/bin:/bin"), ("TOKEN", "secret")];
        let variables: Variables = shell.into_iter().collect();
        let cron = variables.under_cron();
        assert_eq!(cron.names().collect::<Vec<_>>(), ["HOME", "LOGNAME", "PATH", "SHELL"]);
        assert_eq!(cron.get("PATH"), Some(OsStr::new("/usr/bin:/bin")));
        assert!(!format!("{variables:?}").contains("secret"));
    }

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
            let variables: Variables =
                [("CLAUDE_CODE_SHELL", claude_code_shell), ("SHELL", shell)].into_iter().collect();
            assert_eq!(variables.change_directory(), expected, "{claude_code_shell:?}, {shell:?}");
        }
    }
}
