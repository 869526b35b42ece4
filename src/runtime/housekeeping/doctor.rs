//! Checks everything that chains need, and reports problems. It makes no API request and starts nothing but `claude --version`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::claude::doctor::checks;
use crate::claude::doctor::plugin;
use crate::claude::doctor::surroundings::{self, DoctorFacts};
use crate::claude::environment::agent_variables;
use crate::claude::environment::config_dir::{CONFIG_DIR, config_dir_of};
use crate::claude::environment::variables::Variables;
use crate::claude::installation::program::{self, ProgramError};
use crate::claude::installation::version::Version;
use crate::claude::settings::mcp_policy;
use crate::core::agent::launch::Launch;
use crate::core::housekeeping::doctor_finding::{Finding, Status};
use crate::runtime::housekeeping::cron::{self, Crontab};
use crate::runtime::notifications;
use crate::runtime::notifications::config_file::{BadConfig, ConfigFile};
use crate::runtime::recovery::room;
use crate::runtime::steering::afresh_advice::{self, AfreshAdvice};
use crate::store::usability;
use crate::store::{Caller, Observed, RecordedPause, RecordedProgram};

/// What to check.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    /// The `claude` that the user names.
    pub claude: Option<&'a Path>,
    /// How it is named, or else where it is searched for.
    pub found_by: &'static str,
    /// The working directory of agents. Absolute.
    pub cwd: &'a Path,
    /// The state directory. Absolute.
    pub state_dir: &'a Path,
    /// Whether a person chose it.
    pub state_dir_is_named: bool,
    /// The permission mode of roots that are started without one.
    pub permission_mode: Option<&'a str>,
    /// The executable of agent-cli.
    pub own_program: &'a Path,
    /// The agent in whose tool call this runs.
    pub caller: Option<Caller>,
    /// Whether cron should resume this shell's chains.
    pub under_cron: bool,
    /// The config file.
    pub config: Result<Option<ConfigFile>, BadConfig>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DoctorReport {
    /// The `claude` that chains run.
    pub claude: Claude,
    pub checks: Vec<Finding>,
    /// The crontab entry, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<Crontab>,
}

/// A `claude` and what it supports.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Claude {
    /// Its path; `None`: it was not found.
    pub path: Option<PathBuf>,
    /// How it was found: `--claude`, `AGENT_CLI_CLAUDE` or `PATH`; of an agent's `chain`.
    pub found_by: &'static str,
    /// Whether it can be used.
    pub usable: bool,
    /// Its version; `None`: it reports none.
    pub version: Option<String>,
    /// Whether new sessions and forks can get an id.
    pub sessions_by_id: bool,
    /// Whether calls can be suspended.
    pub suspended_calls: bool,
    /// Whether Claude Code's own questions can be suspended and answered.
    pub native_questions: bool,
    /// How this version differs from the newest tested one. agent-cli takes every difference into account.
    pub differences: Vec<&'static str>,
}

pub(crate) async fn examine(case: &Case<'_>) -> DoctorReport {
    let shell = Variables::of_process();
    let path = shell.get("PATH");
    // Chains record the claude, the PATH, the configuration directory and more of the shell that started them.
    let config_dir = shell.get(CONFIG_DIR).map(PathBuf::from);
    let recorded = Launch { config_dir, environment: agent_variables::to_record(&shell), ..Launch::default() };
    let here = surroundings::look(case.cwd, &shell, &recorded);
    let (claude, mut checks) = claude(case, path).await;
    let (around, crontab) = if case.under_cron {
        let there = surroundings::look(case.cwd, &shell.under_cron(), &recorded);
        checks.extend(cron::findings(case.state_dir, &shell, &here, &there));
        (there, Some(cron::crontab(case.state_dir, case.own_program, &here)))
    } else {
        checks.extend(checks::in_path(&program::all_in_path(path), case.claude.is_some()));
        checks.push(checks::login(&here));
        checks.extend(checks::variables(&here));
        (here, None)
    };
    checks.extend(checks::settings(&around.settings));
    checks.push(checks::hooks(&around));
    checks.push(checks::retention(&around));
    checks.extend(checks::rules(&around));
    checks.push(checks::permission_mode(&around, case.permission_mode));
    checks.extend(mcp_policy::forbidding(case.cwd, &recorded).as_ref().map(checks::approvals));
    checks.push(checks::convention(&around, case.cwd));
    if !case.under_cron {
        checks.push(own_program(case.own_program, program::in_path("agent-cli", path).ok().as_deref()));
        checks.extend(plugin::findings(case.cwd, &shell, &around.settings, &recorded));
    }
    checks.extend(case.caller.map(inside));
    checks.extend(usability::findings(case.state_dir, case.state_dir_is_named));
    checks.extend(config_dir_of(None, &recorded).and_then(|folder| room_in(&folder)));
    let (store, database) = usability::open(case.state_dir);
    checks.push(database);
    if case.caller.is_none() {
        checks.extend(notifications::config_check::findings(&case.config, store.as_ref(), case.under_cron, &shell));
    }
    // An agent must not learn about chains that it did not start.
    if let Some(store) = store.filter(|_| case.caller.is_none()) {
        let Observed { programs, pauses, unrecorded, waiting } =
            store.housekeeping().observed(PAUSES).unwrap_or_default();
        checks.extend(lost_turns(unrecorded));
        checks.extend(to_start_afresh(&afresh_advice::of_agents(&store, &waiting).unwrap_or_default()));
        let other = if case.under_cron { cron::claude(&shell.under_cron()).is_some() } else { claude.usable };
        checks.extend(programs.iter().map(|known| recorded_program(known, modified(&known.path), other)));
        checks.extend(pauses_of(&pauses, claude.suspended_calls, &around));
    }
    DoctorReport { claude, checks, cron: crontab }
}

/// Claude Code reports nothing when its disk is full, and its sessions are lost.
fn room_in(folder: &Path) -> Option<Finding> {
    let (name, left) = ("claude-space", room::left(folder)?);
    let shown = folder.display();
    if let Some(why) = room::unwritable(&folder.join("projects")) {
        let message = format!("Claude Code cannot keep conversations in its folder, {shown}: {why}");
        return Some(Finding::problem("claude-folder", message, room::remedy(folder)));
    }
    if left < usability::LITTLE_SPACE {
        let message = format!("the disk of Claude Code's folder, {shown}, has {} MB left", left >> 20);
        let hint = "free some space: what Claude Code cannot record is done and billed again";
        return Some(if room::is_full(folder) {
            Finding::problem(name, message, hint)
        } else {
            Finding::warning(name, message, hint)
        });
    }
    Some(Finding::ok(name, format!("the disk of Claude Code's folder, {shown}, has enough space")))
}

/// Turns that Claude Code had no room to record.
fn lost_turns(agents: u64) -> Option<Finding> {
    let message = match agents {
        0 => return None,
        1 => "claude could not record the last turn of 1 agent, which does it again".to_owned(),
        more => format!("claude could not record the last turns of {more} agents, which do them again"),
    };
    let hint = "free some space on the disk of Claude Code's folder first; agent-cli fsck names them";
    Some(Finding::warning("lost-turns", message, hint))
}

/// Agents whose conversations are too long or stale.
fn to_start_afresh(advice: &[AfreshAdvice]) -> Vec<Finding> {
    const MOST: usize = 5;
    let finding = |advice: &AfreshAdvice| {
        let message = format!("{} should start afresh: {}", advice.agent.short(), advice.reason.in_words());
        Finding::warning(
            "conversations",
            message,
            format!("{} continues it in a new session, with a summary", advice.command()),
        )
    };
    advice.iter().take(MOST).map(finding).collect()
}

/// How many of the last requests are checked.
const PAUSES: u32 = 10;

async fn claude(case: &Case<'_>, path: Option<&OsStr>) -> (Claude, Vec<Finding>) {
    let located = program::locate(case.claude, None, path);
    let asked = match &located {
        Ok(program) => Some(program::ask_version(program).await),
        Err(_) => None,
    };
    let found = match (&located, &asked) {
        (Err(error), _) | (_, Some(Err(error))) => Err(error),
        (Ok(program), Some(Ok(answer))) => Ok((program.as_path(), answer.as_str())),
        (Ok(program), None) => Ok((program.as_path(), "")),
    };
    let refused = found.ok().and_then(|(program, answer)| program::check(program, answer).err());
    let how = format!("found by {}", case.found_by);
    let finding = checks::program(&how, refused.as_ref().map_or(found, Err));
    let version = found.ok().and_then(|(_, answer)| answer.parse::<Version>().ok());
    let can = |since: Version| version.is_some_and(|version| version >= since);
    let differences = version.map(checks::differences).unwrap_or_default();
    let claude = Claude {
        path: located.as_ref().ok().cloned(),
        found_by: case.found_by,
        usable: finding.status < Status::Problem,
        version: version.map(|version| version.to_string()),
        sessions_by_id: can(Version::OLDEST),
        suspended_calls: can(Version::SUSPENDS),
        native_questions: can(Version::SUSPENDS),
        differences,
    };
    let about = version.filter(|_| refused.is_none()).map(checks::version);
    (claude, std::iter::once(finding).chain(about).collect())
}

fn modified(program: &Path) -> Result<jiff::Timestamp, ProgramError> {
    program::locate(Some(program), None, None).and_then(|program| program::modified(&program))
}

/// Whether the program that open chains were started with still exists. `other`: whether another one can replace it.
fn recorded_program(known: &RecordedProgram, found: Result<jiff::Timestamp, ProgramError>, other: bool) -> Finding {
    let name = "recorded-claude";
    let path = known.path.display();
    let hint = "agent-cli resume ID --claude PATH sets another";
    let chains = match known.chains {
        1 => "1 open chain was".to_owned(),
        several => format!("{several} open chains were"),
    };
    match (found, &known.known) {
        (Err(error), _) if other => {
            Finding::warning(name, format!("{error}: {chains} started with it, and continue with another"), hint)
        }
        (Err(error), _) => {
            Finding::problem(name, format!("{error}: {chains} started with it, and there is no other"), hint)
        }
        (Ok(modified), Some((version, then))) if modified != *then => {
            Finding::ok(name, format!("{path}, with which {chains} started, was changed; it was {version}"))
        }
        (Ok(_), _) => Finding::ok(name, format!("{path}, with which {chains} started, is unchanged")),
    }
}

/// Whether a shell finds agent-cli. Agents always find it.
fn own_program(own: &Path, found: Option<&Path>) -> Finding {
    let name = "agent-cli";
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let add = || format!("add {} to PATH", own.parent().unwrap_or(Path::new("/")).display());
    match found {
        None => Finding::warning(name, "agent-cli is not in PATH: only agents find it", add()),
        Some(found) if real(found) == real(own) => Finding::ok(name, format!("{} is in PATH", found.display())),
        Some(found) => Finding::warning(
            name,
            format!("{} is in PATH, but agents use this program, {}", found.display(), own.display()),
            format!("{} before the other one, or use the other one", add()),
        ),
    }
}

fn inside(caller: Caller) -> Finding {
    Finding::warning(
        "caller",
        format!("agent {} started this command, so these checks see its environment", caller.frame.short()),
        "if no agent did: unset AGENT_CLI_AGENT_ID AGENT_CLI_ATTEMPT",
    )
}

/// Whether hooks run at all, judged by the last requests.
fn pauses_of(pauses: &[RecordedPause], can_suspend: bool, around: &DoctorFacts) -> Option<Finding> {
    let name = "pauses";
    let all = pauses.len();
    let suspended = pauses.iter().filter(|pause| pause.suspended).count();
    if all == 0 {
        return None;
    }
    let counts = format!("{suspended} of the last {all} requests suspended their call");
    if suspended > 0 {
        return Some(Finding::ok(name, counts));
    }
    let without = |pause: &RecordedPause| pause.launch.no_hooks || pause.launch.args.has("--bare");
    if pauses.iter().all(without) {
        return Some(Finding::ok(name, format!("{counts}: their chains were started with --no-hooks or --bare")));
    }
    let why = if !can_suspend {
        "this claude cannot suspend calls".to_owned()
    } else {
        checks::hooks_switched_off(around).unwrap_or_else(|| "no setting that disables hooks was found".to_owned())
    };
    Some(Finding::warning(
        name,
        format!("{counts}: {why}"),
        "signals work too; a call is suspended if agent-cli is the whole command, without a pipe or a list",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::settings::settings_file::SettingsFile;
    use crate::core::agent::launch::Launch;

    #[test]
    fn a_recorded_program_that_is_gone_is_a_problem_only_without_another() {
        let gone = || Err(ProgramError::NoSuchFile("/old/claude".into()));
        let at = |second| jiff::Timestamp::from_second(second).unwrap();
        let known = RecordedProgram { path: "/old/claude".into(), chains: 2, known: Some(("2.1.197".into(), at(7))) };
        assert_eq!(recorded_program(&known, gone(), true).status, Status::Warning);
        assert_eq!(recorded_program(&known, gone(), false).status, Status::Problem);
        assert!(recorded_program(&known, Ok(at(8)), true).message.ends_with("was changed; it was 2.1.197"));
        assert!(recorded_program(&known, Ok(at(7)), true).message.ends_with("is unchanged"));
    }

    #[test]
    fn the_program_in_path_may_be_another() {
        let folder = tempfile::tempdir().unwrap();
        let [own, other] = ["agent-cli", "other"].map(|name| folder.path().join(name));
        fs::write(&own, "").unwrap();
        fs::write(&other, "").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let status = |found| own_program(&own, found).status;
        assert_eq!(
            [status(Some(&link)), status(Some(&other)), status(None)].map(Status::name),
            ["ok", "warning", "warning"]
        );
    }

    #[test]
    fn what_became_of_requests_is_reported_with_the_reason() {
        let pause = |suspended, no_hooks| RecordedPause { suspended, launch: Launch { no_hooks, ..Launch::default() } };
        let message = |pauses: &[RecordedPause], can, around: &DoctorFacts| {
            pauses_of(pauses, can, around).map(|found| found.message)
        };
        let plain = DoctorFacts::default();
        assert_eq!(message(&[], true, &plain), None);
        let some = [pause(true, false), pause(false, false)];
        assert_eq!(message(&some, true, &plain).unwrap(), "1 of the last 2 requests suspended their call");
        let why = |pauses: &[RecordedPause], can, around: &DoctorFacts| {
            message(pauses, can, around).unwrap().split_once(": ").unwrap().1.to_owned()
        };
        let none = [pause(false, false)];
        assert_eq!(why(&[pause(false, true)], true, &plain), "their chains were started with --no-hooks or --bare");
        assert_eq!(why(&none, false, &plain), "this claude cannot suspend calls");
        assert_eq!(why(&none, true, &plain), "no setting that disables hooks was found");
        let content = crate::claude::settings::settings_file::ClaudeSettings::parse("{\"disableAllHooks\": true}");
        let settings = vec![SettingsFile { path: "/s.json".into(), managed: false, content }];
        assert_eq!(why(&none, true, &DoctorFacts { settings, ..plain }), "disableAllHooks is set in /s.json");
    }
}
