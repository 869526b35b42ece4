//! Checks of a `claude` and its environment: one function for each check, from facts to findings.

use std::path::{Path, PathBuf};

use crate::claude::doctor::surroundings::{Convention, DoctorFacts};
use crate::claude::environment::memory_files::CLAUDE_MD;
use crate::claude::installation::program::ProgramError;
use crate::claude::installation::version::Version;
use crate::claude::settings::mcp_policy::Policy;
use crate::claude::settings::settings_file::{ClaudeSettings, SettingsFile};
use crate::core::housekeeping::doctor_finding::Finding;
use crate::core::requests::convention;

/// Whether there is a program that can be used. `how`: how it was found; `answer`: what it printed for `--version`.
pub(crate) fn program(how: &str, found: Result<(&Path, &str), &ProgramError>) -> Finding {
    let (path, answer) = match found {
        Ok(found) => found,
        Err(error) => return Finding::problem("claude", format!("{error} ({how})"), INSTALL),
    };
    let shown = path.display();
    match (answer.parse::<Version>(), answer.contains("Claude Code")) {
        (Ok(version), true) => Finding::ok("claude", format!("{shown} is Claude Code {version} ({how})")),
        (Ok(version), false) => Finding::warning(
            "claude",
            format!("{shown} ({how}) reports version {version}, but not that it is Claude Code"),
            INSTALL,
        ),
        (Err(_), true) => Finding::warning(
            "claude",
            format!("{shown} ({how}) does not report its version, so calls are not suspended"),
            "install a release of Claude Code",
        ),
        (Err(_), false) => Finding::problem("claude", format!("{shown} ({how}) is not Claude Code"), INSTALL),
    }
}

/// What the version supports, and whether it was tested.
pub(crate) fn version(version: Version) -> Finding {
    let name = "version";
    if version < Version::SUSPENDS {
        let message = format!(
            "agents can pause only with signals: suspending calls needs {}, and this is {version}",
            Version::SUSPENDS
        );
        return Finding::warning(name, message, "run claude update, then agent-cli doctor");
    }
    if version > Version::NEWEST_TESTED {
        let message = format!("{version} suspends calls; agent-cli was tested up to {}", Version::NEWEST_TESTED);
        return Finding::ok(name, message);
    }
    Finding::ok(name, "calls can be suspended: agents wait inside a tool call, without a process")
}

/// How this version differs from the newest one that was tested. agent-cli takes every difference into account.
pub(crate) fn differences(version: Version) -> Vec<&'static str> {
    let known = [
        (Version::SUSPENDS, "calls cannot be suspended"),
        (Version::FINDS_SESSIONS_ANYWHERE, "sessions are found only from their own working directory"),
        (Version::TOTAL_COST_ACCUMULATES, "the cost of a resumed run does not include what the session cost before"),
    ];
    known.into_iter().filter(|(since, _)| version < *since).map(|(_, difference)| difference).collect()
}

/// Whether `PATH` contains exactly one `claude`. `found`: those in `PATH`, each with the file that it resolves to.
pub(crate) fn in_path(found: &[PathBuf], is_named: bool) -> Option<Finding> {
    let list = found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    match found {
        [] | [_] => None,
        _ if is_named => {
            Some(Finding::ok("path", format!("PATH contains several claude programs, none of which is used: {list}")))
        }
        [first, ..] => Some(Finding::warning(
            "path",
            format!("PATH contains several claude programs; the first one is used: {list}"),
            format!("choose one with --claude PATH or AGENT_CLI_CLAUDE={}", first.display()),
        )),
    }
}

/// Whether there are credentials. Only a request could tell whether they are accepted.
pub(crate) fn login(around: &DoctorFacts) -> Finding {
    let name = "login";
    let hint = "run claude and log in, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN";
    match (around.logins.as_slice(), around.login_may_hide) {
        ([], None) => Finding::problem(name, "no login found", hint),
        ([], Some(place)) => Finding::warning(name, format!("no login found; {place}"), hint),
        (found, _) => Finding::ok(name, format!("found {} (not tested)", found.join(", "))),
    }
}

/// Variables that agents do not get: those that they do not inherit, and those that settings would set.
pub(crate) fn variables(around: &DoctorFacts) -> Vec<Finding> {
    let name = "environment";
    let mut findings = Vec::new();
    if !around.dropped.is_empty() {
        let message = format!("agents do not inherit {}, which could break a chain", around.dropped.join(", "));
        let hint = "agents inherit only the variables listed in docs/protocol.md; unset the others";
        findings.push(Finding::warning(name, message, hint));
    }
    for file in &around.settings {
        let Ok(ClaudeSettings { breaking, .. }) = &file.content else { continue };
        if breaking.is_empty() {
            continue;
        }
        let (names, path) = (breaking.join(", "), file.path.display());
        findings.push(if file.managed {
            let message = format!("{path} sets {names}, which breaks chains and cannot be overridden");
            Finding::problem(name, message, "ask the administrator of this machine")
        } else {
            let message = format!("{path} sets {names}, which would break chains: agents run without it");
            Finding::warning(name, message, format!("remove it from {path}"))
        });
    }
    if findings.is_empty() {
        vec![Finding::ok(name, "agents inherit every variable that was set on purpose")]
    } else {
        findings
    }
}

/// Settings files that Claude Code silently ignores.
pub(crate) fn settings(files: &[SettingsFile]) -> Vec<Finding> {
    let name = "settings";
    let broken = files.iter().filter_map(|file| Some((&file.path, file.content.as_ref().err()?)));
    let findings: Vec<_> = broken
        .map(|(path, why)| {
            let message = format!("{} {why}: Claude Code silently ignores the whole file", path.display());
            Finding::warning(name, message, format!("fix {}", path.display()))
        })
        .collect();
    let read = files.len();
    if findings.is_empty() { vec![Finding::ok(name, format!("readable settings files: {read}"))] } else { findings }
}

/// Whether settings let the hook of this program run.
pub(crate) fn hooks(around: &DoctorFacts) -> Finding {
    match hooks_switched_off(around) {
        None => Finding::ok("hooks", "no settings disable hooks"),
        Some(switch) => Finding::warning(
            "hooks",
            format!("{switch}: calls are not suspended, agents pause with signals"),
            "remove it to suspend calls; signals work too",
        ),
    }
}

/// What disables hooks from the command line, if anything. The setting with the highest precedence decides.
pub(crate) fn hooks_switched_off(around: &DoctorFacts) -> Option<String> {
    let only_managed = valid(around).find(|(file, settings)| file.managed && settings.allow_managed_hooks_only);
    let disabled = valid(around).find(|(_, settings)| settings.disable_all_hooks.is_some());
    let disabled = disabled.filter(|(_, settings)| settings.disable_all_hooks == Some(true));
    let named = |switch: &str, file: &SettingsFile| format!("{switch} is set in {}", file.path.display());
    only_managed
        .map(|(file, _)| named("allowManagedHooksOnly", file))
        .or_else(|| disabled.map(|(file, _)| named("disableAllHooks", file)))
}

/// How long Claude Code keeps the transcripts that chains continue from.
pub(crate) fn retention(around: &DoctorFacts) -> Finding {
    let name = "retention";
    let set = valid(around).find_map(|(file, settings)| Some((file, settings.cleanup_period_days?)));
    match set {
        Some((file, days)) if days < SHORT_RETENTION => Finding::warning(
            name,
            format!(
                "Claude Code deletes transcripts after {days} days; chains that wait longer continue from copies kept by agent-cli"
            ),
            format!("raise cleanupPeriodDays in {}", file.path.display()),
        ),
        Some((_, days)) => {
            Finding::ok(name, format!("Claude Code keeps transcripts for {days} days; agent-cli keeps copies"))
        }
        None => Finding::ok(name, "Claude Code keeps transcripts for its default time; agent-cli keeps copies"),
    }
}

/// Rules that deny what every chain needs.
pub(crate) fn rules(around: &DoctorFacts) -> Vec<Finding> {
    let name = "permissions";
    let found = valid(around).flat_map(|(file, settings)| settings.denied.iter().map(move |rule| (file, rule)));
    let findings: Vec<_> = found
        .filter(|(_, rule)| denies_requests(rule))
        .map(|(file, rule)| {
            let message = format!("the rule {rule} in {} denies agent-cli commands to agents", file.path.display());
            Finding::warning(name, message, "remove or narrow the rule")
        })
        .collect();
    if findings.is_empty() { vec![Finding::ok(name, "no rule denies agent-cli commands")] } else { findings }
}

/// Whether agents get the permission mode that the environment asks for.
pub(crate) fn permission_mode(around: &DoctorFacts, mode: Option<&str>) -> Finding {
    let name = "permission-mode";
    let shown =
        mode.map_or("Claude Code's default permission mode".to_owned(), |mode| format!("permission mode {mode}"));
    if mode != Some("bypassPermissions") {
        return Finding::ok(name, format!("chains start in {shown}, unless an option sets another"));
    }
    if around.refuses_bypass {
        return Finding::problem(
            name,
            "AGENT_CLI_PERMISSION_MODE=bypassPermissions is refused by claude for root",
            "run as another user, or set IS_SANDBOX=1 in a container",
        );
    }
    match valid(around).find(|(_, settings)| settings.disable_bypass) {
        Some((file, _)) => Finding::warning(
            name,
            format!(
                "AGENT_CLI_PERMISSION_MODE=bypassPermissions has no effect: disableBypassPermissionsMode is set in {}, and claude silently uses the mode default",
                file.path.display()
            ),
            "set AGENT_CLI_PERMISSION_MODE=acceptEdits, or remove disableBypassPermissionsMode",
        ),
        None => Finding::ok(name, format!("chains start in {shown}, unless an option sets another")),
    }
}

/// What a policy takes from agents.
pub(crate) fn approvals(Policy { file, remedy }: &Policy) -> Finding {
    let message = format!(
        "{} forbids the MCP server agent-cli: calls that need an approval are denied, and --on-permission ask is refused",
        file.display()
    );
    Finding::warning("approvals", message, *remedy)
}

/// Whether agents are told the words with which instruction files start others.
pub(crate) fn convention(around: &DoctorFacts, cwd: &Path) -> Finding {
    let (name, word) = ("convention", convention::SPAWN);
    let file = cwd.join(CLAUDE_MD);
    let missing = |what: String| Finding::warning(name, what, "agent-cli init writes it");
    match &around.convention {
        Convention::Present(file) => Finding::ok(name, format!("{} defines {word}", file.display())),
        Convention::Absent => missing(format!("{} does not define {word}", file.display())),
        Convention::NoFile => missing(format!("{} does not exist, so nothing defines {word}", file.display())),
        Convention::Unknown => Finding::ok(name, format!("not all instructions could be read: one may define {word}")),
    }
}

const INSTALL: &str = "install Claude Code, or name it with --claude PATH or AGENT_CLI_CLAUDE";

/// In days. A person may well take longer to answer.
const SHORT_RETENTION: i64 = 30;

/// The valid files, the highest precedence first.
fn valid(around: &DoctorFacts) -> impl Iterator<Item = (&SettingsFile, &ClaudeSettings)> {
    around.settings.iter().filter_map(|file| Some((file, file.content.as_ref().ok()?)))
}

/// Whether a rule matches requests. `cat` returns the result of a suspended call.
fn denies_requests(rule: &str) -> bool {
    let Some(rest) = rule.trim().strip_prefix("Bash") else { return false };
    let Some(command) = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else { return rest.is_empty() };
    let words = command.trim_start_matches('*').trim_end_matches(['*', ':', ' ']);
    words.is_empty() || words.contains("agent-cli") || words == "cat"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::housekeeping::doctor_finding::Status;

    /// Managed, local, project and user settings; an empty text stands for a missing file.
    fn around(texts: [&str; 4]) -> DoctorFacts {
        let paths = ["/managed.json", "/local.json", "/project.json", "/user.json"];
        let files = paths.into_iter().zip(texts).filter(|(_, text)| !text.is_empty());
        let settings = files.map(|(path, text)| SettingsFile {
            path: path.into(),
            managed: path == "/managed.json",
            content: ClaudeSettings::parse(text),
        });
        DoctorFacts { settings: settings.collect(), ..DoctorFacts::default() }
    }

    #[test]
    fn a_program_is_claude_code_when_it_says_so() {
        let status = |answer| program("found by PATH", Ok((Path::new("/claude"), answer))).status.name();
        let answers = ["2.1.330 (Claude Code)", "2.1.330", "nightly (Claude Code)", "GNU bash"];
        assert_eq!(answers.map(status), ["ok", "warning", "warning", "problem"]);
        let hangs = program("found by PATH", Err(&ProgramError::NoAnswer("/claude".into())));
        assert_eq!(hangs.status, Status::Problem);
        assert_eq!(hangs.message, "/claude --version did not answer within 30 seconds (found by PATH)");
    }

    #[test]
    fn what_a_version_can_do_is_reported() {
        assert_eq!(version(Version(2, 1, 88)).status, Status::Warning);
        assert_eq!(version(Version::SUSPENDS).status, Status::Ok);
        assert!(version(Version(2, 1, 333)).message.contains("tested up to 2.1.332"));
        assert_eq!(differences(Version(2, 1, 197)).len(), 2);
        assert_eq!(differences(Version::NEWEST_TESTED), Vec::<&str>::new());
    }

    #[test]
    fn several_programs_in_path_matter_when_none_is_named() {
        let found = ["/a/claude", "/b/claude"].map(PathBuf::from);
        assert_eq!(in_path(&found[..1], false), None);
        assert_eq!(in_path(&found, false).unwrap().status, Status::Warning);
        assert_eq!(in_path(&found, true).unwrap().status, Status::Ok);
    }

    #[test]
    fn a_login_may_be_there_unseen() {
        let status = |logins: &[&str], login_may_hide| {
            let logins = logins.iter().map(|name| (*name).to_owned()).collect();
            login(&DoctorFacts { logins, login_may_hide, ..DoctorFacts::default() }).status.name()
        };
        assert_eq!(status(&["apiKeyHelper in /user.json"], None), "ok");
        assert_eq!(status(&[], Some("the keychain cannot be checked")), "warning");
        assert_eq!(status(&[], None), "problem");
    }

    #[test]
    fn hooks_are_switched_off_by_the_strongest_file_that_speaks() {
        let (on, off) = ("{\"disableAllHooks\": false}", "{\"disableAllHooks\": true}");
        let switch = |texts| hooks_switched_off(&around(texts));
        assert_eq!(switch(["", "", on, off]), None);
        assert_eq!(switch(["", off, on, ""]).unwrap(), "disableAllHooks is set in /local.json");
        assert_eq!(switch(["", "", "", off]).unwrap(), "disableAllHooks is set in /user.json");
        // Only an administrator may change what an administrator has set.
        let only = "{\"allowManagedHooksOnly\": true}";
        assert_eq!(switch(["", only, only, only]), None);
        assert_eq!(switch([only, "", "", ""]).unwrap(), "allowManagedHooksOnly is set in /managed.json");
        // Claude Code ignores an invalid file.
        assert_eq!(switch(["", "{\"disableAllHooks\": true, \"cleanupPeriodDays\": 0}", "", ""]), None);
        assert_eq!(hooks(&around(["", off, "", ""])).status, Status::Warning);
        assert_eq!(hooks(&around([""; 4])).status, Status::Ok);
    }

    #[test]
    fn a_short_retention_is_reported() {
        let status = |texts| retention(&around(texts)).status.name();
        let (short, long) = ("{\"cleanupPeriodDays\": 7}", "{\"cleanupPeriodDays\": 365}");
        assert_eq!([["", "", "", short], ["", "", long, short], [""; 4]].map(status), ["warning", "ok", "ok"]);
    }

    #[test]
    fn rules_that_hit_requests_are_known() {
        let hits = ["Bash", "Bash(*)", "Bash(:*)", "Bash(agent-cli:*)", "Bash(*agent-cli ask *)", "Bash(cat:*)"];
        let misses = ["Read(//etc/**)", "Bash(rm:*)", "BashOutput", "Bash(category:*)"];
        assert!(hits.into_iter().all(denies_requests));
        assert!(!misses.into_iter().any(denies_requests));
        let found = rules(&around(["", "", "{\"permissions\": {\"deny\": [\"Bash\"], \"ask\": [\"Bash(*)\"]}}", ""]));
        assert_eq!(found.iter().map(|found| found.status).collect::<Vec<_>>(), [Status::Warning; 2]);
    }

    #[test]
    fn a_mode_that_is_not_granted_is_reported() {
        let disabled = around(["", "", "", "{\"permissions\": {\"disableBypassPermissionsMode\": \"disable\"}}"]);
        let root = DoctorFacts { refuses_bypass: true, ..DoctorFacts::default() };
        let bypass = Some("bypassPermissions");
        assert_eq!(permission_mode(&root, bypass).status, Status::Problem);
        assert_eq!(permission_mode(&root, Some("acceptEdits")).status, Status::Ok);
        assert_eq!(permission_mode(&disabled, bypass).status, Status::Warning);
        assert_eq!(permission_mode(&DoctorFacts::default(), bypass).status, Status::Ok);
    }
}
