//! The part of `doctor` about cron: what cron would not find, and a crontab line that works.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::claude::doctor::crontab;
use crate::claude::doctor::surroundings::DoctorFacts;
use crate::claude::environment::agent_variables;
use crate::claude::environment::config_dir::CONFIG_DIR;
use crate::claude::environment::variables::Variables;
use crate::claude::installation::program;
use crate::claude::invocation::STATE_DIR;
use crate::core::housekeeping::doctor_finding::Finding;
use crate::core::text::shell::quoted;
use crate::store::StateDir;

/// The crontab entry.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Crontab {
    /// A line that continues every chain that can continue.
    pub line: String,
    /// The variables that exist only in this shell and that agents may need.
    pub variables: Vec<String>,
}

/// Findings about what this shell sees and cron does not. `here` is what this shell sees, `there` what cron would see.
pub(crate) fn findings(state_dir: &Path, shell: &Variables, here: &DoctorFacts, there: &DoctorFacts) -> Vec<Finding> {
    let cron = shell.under_cron();
    let path = cron.get("PATH").unwrap_or_default();
    let config_dir = shell.get(CONFIG_DIR).and_then(|dir| std::path::absolute(dir).ok());
    let recorded = agent_variables::to_record(shell);
    let mut findings = vec![
        crontab::path(path, claude(&cron).as_deref()),
        crontab::login(here, there),
        crontab::variables(here, &agent_variables::that_matter(&recorded)),
    ];
    findings.extend(crontab::configuration(config_dir.as_deref().map(Path::as_os_str)));
    findings.extend(other_state_dir(state_dir, StateDir::default_path_without_variables().as_deref()));
    findings
}

/// The `claude` that cron finds.
pub(crate) fn claude(cron: &Variables) -> Option<PathBuf> {
    program::locate(None, None, cron.get("PATH")).ok()
}

/// Reports chains in a place where cron does not look.
fn other_state_dir(own: &Path, default: Option<&Path>) -> Option<Finding> {
    let own_shown = own.display();
    let elsewhere = match default {
        Some(default) if are_one(default, own) => return None,
        Some(default) => format!("in {}", default.display()),
        None => "nowhere".to_owned(),
    };
    Some(Finding::problem(
        "state-directory",
        format!("this shell keeps chains in {own_shown}, but cron would look for them {elsewhere}"),
        format!("put {STATE_DIR}={} into the line of the crontab", word(own.as_os_str())),
    ))
}

/// Whether both name the same state directory.
fn are_one(one: &Path, other: &Path) -> bool {
    let real = |path| StateDir::new(path).ok().map(|dir| dir.path().to_owned());
    one == other || real(one).is_some_and(|dir| Some(dir) == real(other))
}

/// A complete crontab line.
pub(crate) fn crontab(state_dir: &Path, own_program: &Path, here: &DoctorFacts) -> Crontab {
    let default = StateDir::default_path_without_variables();
    let is_elsewhere = !default.is_some_and(|default| are_one(&default, state_dir));
    let variable = is_elsewhere.then(|| format!("{STATE_DIR}={} ", word(state_dir.as_os_str())));
    let log = dirs::home_dir().unwrap_or_else(|| state_dir.to_owned()).join("chain.log");
    let (program, log) = (word(own_program.as_os_str()), word(log.as_os_str()));
    let line = format!("*/5 * * * * {}{program} resume --all >> {log} 2>&1", variable.unwrap_or_default());
    Crontab { line, variables: here.only_here.clone() }
}

/// A word of a command in a crontab, where a percent sign is a line break even inside quotation marks.
fn word(text: &OsStr) -> String {
    let text = text.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@".contains(c);
    if text.chars().all(is_plain) {
        return text.into_owned();
    }
    // Inside quotation marks, the shell would keep the backslash that cron needs.
    quoted(&text).replace('%', "'\\%'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::doctor::surroundings;
    use crate::core::agent::launch::Launch;
    use crate::core::housekeeping::doctor_finding::Status;

    #[test]
    fn cron_looks_where_nothing_is_named() {
        let own = Path::new("/state");
        assert_eq!(other_state_dir(own, Some(own)), None);
        let found = other_state_dir(own, Some(Path::new("/home/ann/.local/state/agent-cli"))).unwrap();
        assert_eq!(found.status, Status::Problem);
        assert_eq!(
            found.message,
            "this shell keeps chains in /state, but cron would look for them in /home/ann/.local/state/agent-cli"
        );
    }

    #[test]
    fn every_difference_between_this_shell_and_cron_is_a_finding() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().as_os_str();
        let shell = [("HOME", home), ("PATH", OsStr::new("/usr/bin:/bin")), (CONFIG_DIR, home)];
        let shell: Variables = shell.into_iter().collect();
        let look = |variables: &Variables| surroundings::look(temp.path(), variables, &Launch::default());
        let found = findings(&temp.path().join("state"), &shell, &look(&shell), &look(&shell.under_cron()));
        let names: Vec<_> = found.iter().map(|finding| finding.name).collect();
        assert_eq!(names, ["path", "login", "environment", "configuration", "state-directory"]);
    }

    #[test]
    fn cron_has_a_claude_only_where_it_looks() {
        let temp = tempfile::tempdir().unwrap();
        let cron = |path: &OsStr| claude(&[("PATH", path)].into_iter().collect());
        assert_eq!(cron(temp.path().as_os_str()), None);
        let program = temp.path().join("claude");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(cron(temp.path().as_os_str()), Some(program.canonicalize().unwrap()));
    }

    /// cron turns `\%` into `%` before it starts the shell.
    #[test]
    fn a_shell_under_cron_reads_each_word_as_it_is() {
        for text in ["/home/ann/agent-cli", "/a b/c", "/50%/it's", "/$HOME/`x`"] {
            let command = format!("printf %s {}", word(OsStr::new(text)).replace("\\%", "%"));
            let said = std::process::Command::new("/bin/sh").args(["-c", &command]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), text);
        }
        assert!(!word(OsStr::new("/50%")).replace("\\%", "").contains('%'));
    }
}
