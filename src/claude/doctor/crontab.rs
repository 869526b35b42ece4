//! Checks of a chain that cron resumes: one function for each check, from facts to findings.

use std::ffi::OsStr;
use std::path::Path;

use crate::claude::doctor::checks;
use crate::claude::doctor::surroundings::DoctorFacts;
use crate::core::housekeeping::doctor_finding::Finding;

/// Whether there is a login without this shell's variables. `here`: what this shell sees; `there`: what cron would see.
pub(crate) fn login(here: &DoctorFacts, there: &DoctorFacts) -> Finding {
    let name = "login";
    if !here.login_only_here.is_empty() {
        return Finding::problem(
            name,
            only_here(&here.login_only_here),
            format!("{}, or into the crontab", put_into(here)),
        );
    }
    match here.login_variables.as_slice() {
        [] if there.logins.is_empty() => Finding {
            hint: Some(format!(
                "run claude and log in, or, for ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN, {}, or into the crontab",
                put_into(here)
            )),
            ..checks::login(there)
        },
        [] => checks::login(there),
        names => Finding::warning(
            name,
            format!(
                "this shell logs in with {}, but cron would log in with {}",
                names.join(", "),
                there.logins.join(", ")
            ),
            format!("to keep the login of this shell, {}, or into the crontab", put_into(here)),
        ),
    }
}

/// Reports that these variables are the only login.
pub(crate) fn only_here(names: &[String]) -> String {
    format!("the login exists only in this shell's environment ({})", names.join(", "))
}

/// Where to set variables that a chain needs wherever it is resumed.
pub(crate) fn put_into(around: &DoctorFacts) -> String {
    let settings = around.user_settings.as_deref().unwrap_or(Path::new("~/.claude/settings.json"));
    format!("put it into \"env\" in {}", settings.display())
}

/// Which other variables of this shell agents would miss. `recorded`: the variables that matter to them and that chains have
/// recorded.
pub(crate) fn variables(here: &DoctorFacts, recorded: &[&str]) -> Finding {
    let name = "environment";
    let is_login = |name: &String| here.login_variables.contains(name) || here.login_only_here.contains(name);
    let missing: Vec<_> = here.only_here.iter().filter(|name| !is_login(name)).map(String::as_str).collect();
    if missing.is_empty() {
        let others = "no other variable of this shell matters to agents";
        return Finding::ok(
            name,
            match recorded {
                [] => others.to_owned(),
                names => format!("chains keep {}, which a spawn from cron would not have; {others}", names.join(", ")),
            },
        );
    }
    let message = format!("only this shell's environment has {}", missing.join(", "));
    Finding::warning(name, message, format!("{}, or into the crontab, if agents need it", put_into(here)))
}

/// Whether cron's `PATH` contains a `claude`. Recorded chains name theirs.
pub(crate) fn path(path: &OsStr, found: Option<&Path>) -> Finding {
    let (name, path) = ("path", path.display());
    match found {
        Some(found) => {
            Finding::ok(name, format!("cron finds {} for new chains; existing chains record theirs", found.display()))
        }
        None => Finding::warning(
            name,
            format!("cron's PATH ({path}) has no claude, which only a new chain needs"),
            "a spawn from cron needs --claude PATH; resume uses the one that the chain was started with",
        ),
    }
}

/// Whether chains would find this shell's configuration directory.
pub(crate) fn configuration(named: Option<&OsStr>) -> Option<Finding> {
    let named = named?.display();
    Some(Finding::warning(
        "configuration",
        format!(
            "CLAUDE_CONFIG_DIR is set to {named} only in this shell: chains keep it, but a spawn from cron would not have it"
        ),
        format!("for a spawn from cron put CLAUDE_CONFIG_DIR={named} into the crontab"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::housekeeping::doctor_finding::Status;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_login_of_the_shell_is_a_problem_where_cron_has_none() {
        let key = || names(&["ANTHROPIC_API_KEY"]);
        let here = DoctorFacts { login_variables: key(), login_only_here: key(), ..DoctorFacts::default() };
        let hidden = DoctorFacts { login_may_hide: Some("unseen"), ..DoctorFacts::default() };
        assert_eq!(login(&here, &DoctorFacts::default()).status, Status::Problem);
        assert_eq!(login(&here, &hidden).status, Status::Problem);
        let kept = DoctorFacts { logins: names(&["/credentials"]), ..DoctorFacts::default() };
        let here = DoctorFacts { login_variables: key(), ..DoctorFacts::default() };
        let found = login(&here, &kept);
        assert_eq!(found.status, Status::Warning);
        assert_eq!(found.message, "this shell logs in with ANTHROPIC_API_KEY, but cron would log in with /credentials");
        assert_eq!(login(&DoctorFacts::default(), &kept).status, Status::Ok);
        assert_eq!(login(&DoctorFacts::default(), &DoctorFacts::default()).status, Status::Problem);
    }

    #[test]
    fn what_is_said_of_the_login_is_not_said_again() {
        let here = DoctorFacts {
            login_variables: names(&["ANTHROPIC_API_KEY"]),
            only_here: names(&["ANTHROPIC_API_KEY", "HTTPS_PROXY"]),
            ..DoctorFacts::default()
        };
        assert_eq!(variables(&here, &[]).message, "only this shell's environment has HTTPS_PROXY");
        let here = DoctorFacts { only_here: names(&["ANTHROPIC_API_KEY"]), ..here };
        assert_eq!(variables(&here, &[]).status, Status::Ok);
        let found = variables(&here, &["ANTHROPIC_BASE_URL"]);
        assert!(found.message.starts_with("chains keep ANTHROPIC_BASE_URL, which a spawn from cron"), "{found:?}");
    }
}
