//! Checks everything that chains depend on.

use std::path::{Path, PathBuf};

use crate::app::Asker;
use crate::app::error::{AppError, Refusal};
use crate::runtime::block_on;
use crate::runtime::housekeeping::doctor::{Case, DoctorReport, examine};
use crate::runtime::notifications::config_file::{BadConfig, ConfigFile};
use crate::store::{StateDir, Store, StoreError};

#[derive(Debug)]
pub(crate) struct Input<'a> {
    /// The directory in which agents would work. Absolute.
    pub(crate) cwd: &'a Path,
    /// The state directory. Absolute.
    pub(crate) state_dir: &'a Path,
    /// Whether a person chose the state directory.
    pub(crate) state_dir_is_named: bool,
    /// The `claude` that an option names.
    pub(crate) claude: Option<PathBuf>,
    /// The `claude` that an environment variable names, and the variable.
    pub(crate) default_claude: (Option<PathBuf>, &'static str),
    /// The default permission mode of new chains.
    pub(crate) permission_mode: Option<&'a str>,
    /// The executable of agent-cli.
    pub(crate) own_program: &'a Path,
    /// Whether to check that cron could resume chains started from this shell.
    pub(crate) under_cron: bool,
    pub(crate) config: Result<Option<ConfigFile>, BadConfig>,
}

pub(crate) fn doctor(asker: &Asker, input: Input<'_>) -> Result<DoctorReport, AppError> {
    let (claude, found_by) = program(asker, &input)?;
    let case = Case {
        claude: claude.as_deref(),
        found_by,
        cwd: input.cwd,
        state_dir: input.state_dir,
        state_dir_is_named: input.state_dir_is_named,
        permission_mode: input.permission_mode,
        own_program: input.own_program,
        caller: asker.agent,
        under_cron: input.under_cron,
        config: input.config,
    };
    let examined = block_on(examine(&case));
    Ok(examined.map_err(|error| Refusal::failure(format!("failed to start the runner: {error}")))?)
}

/// Returns the `claude` to check, and the option or variable that named it, or the search path.
fn program(asker: &Asker, input: &Input<'_>) -> Result<(Option<PathBuf>, &'static str), AppError> {
    let (by_variable, variable) = &input.default_claude;
    let named = match (&input.claude, by_variable) {
        (Some(claude), _) => Some((claude.clone(), "--claude")),
        (None, Some(claude)) => Some((claude.clone(), *variable)),
        (None, None) => None,
    };
    let Some(of_chain) = of_chain(asker, input.state_dir)? else {
        return Ok(named.map_or((None, "PATH"), |(claude, how)| (Some(claude), how)));
    };
    // A permission rule for calls of agent-cli must not let an agent run any program.
    if named.is_some_and(|(claude, _)| claude != of_chain) {
        let refusal = Refusal::new("agents cannot choose the claude program that doctor runs");
        return Err(refusal.hint(format!("leave --claude out and {variable} unset")).into());
    }
    Ok((Some(of_chain), "chain"))
}

/// The `claude` of the calling agent. `None` if the caller is not an agent of this state directory.
fn of_chain(asker: &Asker, state_dir: &Path) -> Result<Option<PathBuf>, StoreError> {
    let Some(caller) = asker.agent else { return Ok(None) };
    if !Store::exists(&StateDir::new(state_dir)?) {
        return Ok(None);
    }
    Ok(Store::open(state_dir)?.frame(caller.frame)?.map(|frame| frame.launch.claude))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::launch::Launch;
    use crate::store::NewFrame;
    use crate::store::testing::{new, store};

    #[test]
    fn an_agent_does_not_choose_the_program() {
        let (temp, store) = store();
        let launch = Launch { claude: "/bin/claude".into(), ..Launch::default() };
        let caller = store.start(store.create_root(&NewFrame { launch, ..new("a task") }).unwrap());
        let agent = Asker { agent: Some(caller), ..Asker::default() };
        let elsewhere = temp.path().join("elsewhere");
        let named = |asker: &Asker, state_dir: &Path, option: Option<&str>, variable: Option<&str>| {
            let input = Input {
                cwd: Path::new("/"),
                state_dir,
                state_dir_is_named: false,
                claude: option.map(PathBuf::from),
                default_claude: (variable.map(PathBuf::from), "VARIABLE"),
                permission_mode: None,
                own_program: Path::new("/bin/agent-cli"),
                under_cron: false,
                config: Ok(None),
            };
            let found = program(asker, &input).map_err(|error| error.to_string());
            found.map(|(claude, how)| (claude.map(|claude| claude.display().to_string()), how))
        };
        let (person, here) = (Asker::default(), store.dir().path());
        let found = |claude: &str, how| Ok((Some(claude.to_owned()), how));
        assert_eq!(named(&person, here, None, None), Ok((None, "PATH")));
        assert_eq!(named(&person, here, None, Some("/b")), found("/b", "VARIABLE"));
        assert_eq!(named(&person, here, Some("/a"), Some("/b")), found("/a", "--claude"));
        assert_eq!(named(&agent, here, None, None), found("/bin/claude", "chain"));
        assert_eq!(named(&agent, here, Some("/bin/claude"), Some("/b")), found("/bin/claude", "chain"));
        for (option, variable) in [(Some("/a"), None), (None, Some("/b")), (Some("/a"), Some("/bin/claude"))] {
            let refused = named(&agent, here, option, variable).unwrap_err();
            assert_eq!(refused, "agents cannot choose the claude program that doctor runs");
        }
        assert_eq!(named(&agent, &elsewhere, Some("/a"), None), found("/a", "--claude"), "an agent of another one");
        assert!(!elsewhere.exists());
    }
}
