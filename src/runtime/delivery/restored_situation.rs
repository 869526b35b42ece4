//! An agent's situation, apart from its conversation. It is recorded when an attempt ends, and restored when the agent
//! continues.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::claude::installation::version::Version;
use crate::claude::stream::digest::Digest;
use crate::claude::stream::rights::{SKILL, SkillRules};
use crate::claude::transcript::session_facts::{self, Whereabouts};
use crate::core::agent::launch::Launch;
use crate::core::agent::situation::{self, Situation};
use crate::core::agent::starting_mode::{self, Beginning, Chosen};
use crate::core::chain::frame::Frame;
use crate::core::requests::agent_command::{self, Recognised, Surroundings};
use crate::core::requests::proposed_plan::PlanDecision;
use crate::core::requests::request::{Delivery, RequestKind};
use crate::runtime::programs::Program;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::Undelivered;

/// The situation of the agent of `frame` at the end of an attempt that printed `digest`. `began_with`: the permission mode
/// in which the attempt was started; `deliveries`: the results that it was given; `ends_turn`: whether it ended with a reply.
pub(crate) fn at_the_end(
    frame: &Frame,
    began_with: Option<&str>,
    digest: &Digest,
    transcript: Option<&Path>,
    deliveries: &[Delivery],
    ends_turn: bool,
) -> Result<Situation, RuntimeError> {
    let mode = starting_mode::last_mode(&frame.launch, began_with, digest.rights.modes.as_ref());
    let before = &frame.situation;
    let Whereabouts { shell, worktree } = match transcript {
        Some(transcript) => {
            let read = || session_facts::whereabouts(BufReader::new(File::open(transcript)?));
            read().map_err(while_trying("read the transcript"))?
        }
        None => Whereabouts { shell: before.shell.clone(), worktree: before.worktree.clone() },
    };
    let shell = shell_after_requests(digest, shell.as_deref().unwrap_or(&frame.cwd)).or(shell);
    let shell = shell.filter(|shell| !is_same(shell, &frame.cwd));
    let takes_result = digest.takes_result();
    let rules = rules_in_turn(before, digest, deliveries).filter(|_| !ends_turn).unwrap_or_default();
    Ok(Situation { mode, shell, worktree, rules, takes_result })
}

/// The permission rules that skills have brought into the turn. `None`: this version of Claude Code prints them, but does not allow
/// the calls, so none may be restored.
fn rules_in_turn(before: &Situation, digest: &Digest, deliveries: &[Delivery]) -> Option<Vec<String>> {
    let version = digest.version.as_deref().and_then(|version| version.parse::<Version>().ok());
    if version.is_some_and(|version| version < Version::HONOURS_SKILLS) {
        return None;
    }
    // If an earlier attempt made the call, its question says which tool it was.
    let is_of_skill =
        |delivery: &Delivery| matches!(&delivery.kind, RequestKind::Permission { tool, .. } if tool == SKILL);
    let was_asked =
        |call: &str| deliveries.iter().any(|given| given.call.as_deref() == Some(call) && is_of_skill(given));
    let mut situation = before.clone();
    for SkillRules { call, rules, made_before } in digest.rights.of_skills.iter().filter(|_| version.is_some()) {
        if !made_before || was_asked(call) {
            situation.add_rules(rules);
        }
    }
    Some(situation.rules)
}

/// Where the shell will be once the suspended calls have returned, if one of them changes its directory. `shell`: where it is
/// before.
fn shell_after_requests(digest: &Digest, shell: &Path) -> Option<PathBuf> {
    let (home, pwd) = (dirs::home_dir()?, shell.to_str()?);
    let around = Surroundings { pwd, home: home.to_str()? };
    let commands = digest.calls.open.iter().filter_map(|call| call.command.as_deref());
    let mut directories = commands.filter_map(|command| match agent_command::recognise(command, &around) {
        Recognised::Request(call) => call.directory,
        Recognised::Nothing | Recognised::Embedded(_) => None,
    });
    fs::canonicalize(directories.next_back()?).ok()
}

/// The situation of the agent of `frame` after losing the attempt that left it in `lost`.
pub(crate) fn after_loss(frame: &Frame, lost: Situation) -> Situation {
    let before = &frame.situation;
    let mode = starting_mode::after_loss(&frame.launch, before.mode.as_deref(), lost.mode);
    Situation { mode, ..before.clone() }
}

/// The situation of the agent of `frame` in a new session, which begins in its directory. Its mode and its rules are as
/// before.
pub(crate) fn in_new_session(frame: &Frame) -> Situation {
    Situation { worktree: None, takes_result: false, ..frame.situation.clone() }
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || fs::canonicalize(other).is_ok_and(|other| one == other)
}

/// The start of an attempt that restores the agent's situation.
#[derive(Clone, Debug)]
pub(crate) struct Restored {
    /// The launch options.
    pub(crate) launch: Launch,
    /// The permission mode, if it differs from the frame's launch options.
    pub(crate) mode: Option<String>,
    /// What the agent has lost, one line each.
    lost: Vec<String>,
    /// The line that says where its shell is. A command can return it to its former directory.
    moved: Option<String>,
    can_return: bool,
}

/// How the attempt of `frame` begins. `chosen`: the mode that a person chose for it.
pub(crate) fn restored(frame: &Frame, program: &Program, chosen: Option<Chosen<'_>>) -> Restored {
    let Situation { mode, shell, worktree, .. } = &frame.situation;
    let Beginning { mode, refused } = starting_mode::beginning(&frame.launch, mode.as_deref(), chosen);
    let launch = match &mode {
        Some(mode) => frame.launch.clone().in_mode(mode),
        None => frame.launch.clone(),
    };
    let lost_mode = refused.map(|was| situation::of_mode(&was, launch.permission_mode.as_deref()));
    let kept_worktree = worktree.as_deref().filter(|_| returns_to_worktree(frame, program));
    let lost_worktree = worktree.as_deref().filter(|_| kept_worktree.is_none());
    let lost_worktree = lost_worktree.map(|worktree| situation::of_worktree(worktree, !worktree.is_dir()));
    let can_return = shell.as_deref().is_some_and(Path::is_dir);
    let starts_in = kept_worktree.unwrap_or(&frame.cwd);
    let moved = shell.as_deref().filter(|shell| !program.tells_directory && *shell != starts_in);
    let moved = moved.map(|shell| situation::of_shell(shell, starts_in, !can_return));
    let lost = lost_mode.into_iter().chain(lost_worktree).collect();
    Restored { launch, mode, lost, moved, can_return }
}

/// Whether Claude Code returns the agent of `frame` to the worktree that it entered, if its session continues in place.
pub(crate) fn returns_to_worktree(frame: &Frame, program: &Program) -> bool {
    program.returns_to_worktrees && frame.situation.worktree.as_deref().is_some_and(Path::is_dir)
}

impl Restored {
    /// Adds lines about what the agent has lost.
    pub(crate) fn with_lost(mut self, lines: &[String]) -> Self {
        self.lost.extend_from_slice(lines);
        self
    }

    /// The notices for the agent. `by_command`: whether it first runs a command, which returns its shell to its former
    /// directory.
    pub(crate) fn notices(&self, by_command: bool) -> impl Iterator<Item = String> {
        let moved = self.moved.iter().filter(|_| !(by_command && self.can_return));
        self.lost.iter().chain(moved).cloned().collect::<Vec<_>>().into_iter()
    }
}

/// A mode that a person chose.
pub(crate) struct ChosenMode {
    mode: String,
    /// Whether the next attempt tells the agent about it.
    is_new: bool,
}

impl ChosenMode {
    pub(crate) fn as_chosen(&self) -> Chosen<'_> {
        Chosen { mode: &self.mode, is_new: self.is_new }
    }
}

/// The mode for the next attempt of a frame, which is given `undelivered`: the mode of the last approved plan.
pub(crate) fn chosen(undelivered: &Undelivered) -> Option<ChosenMode> {
    let approved = |delivery: &Delivery| match &delivery.kind {
        RequestKind::Plan(plan) => match plan.decided(delivery.result.text()) {
            Some(PlanDecision::Approved { mode }) => Some(mode),
            Some(PlanDecision::Refused { .. }) | None => None,
        },
        _ => None,
    };
    let new = undelivered.results.iter().rev().find_map(approved).map(|mode| ChosenMode { mode, is_new: true });
    new.or_else(|| undelivered.chosen_mode.clone().map(|mode| ChosenMode { mode, is_new: false }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::RequestId;
    use crate::core::requests::proposed_plan::ProposedPlan;
    use crate::core::requests::request::RequestResult;
    use crate::store::testing;

    /// What is restored for an agent that paused in this situation. `program`: what its `claude` restores itself.
    fn restored_from(situation: Situation, program: &Program) -> Restored {
        let (_temp, store) = testing::store();
        let frame = store.frame(store.root()).unwrap().unwrap();
        restored(&Frame { situation, ..frame }, program, None)
    }

    fn notices(restored: &Restored, by_command: bool) -> Vec<String> {
        restored.notices(by_command).collect()
    }

    #[test]
    fn an_agent_is_told_where_its_shell_was_unless_a_command_returns_it() {
        let temp = tempfile::tempdir().unwrap();
        let in_shell = |shell: &Path| Situation { shell: Some(shell.to_owned()), ..Situation::default() };
        let moved = restored_from(in_shell(temp.path()), &Program::old());
        assert_eq!((notices(&moved, false).len(), notices(&moved, true).len()), (1, 0));
        // No command returns it to a missing directory.
        let gone = restored_from(in_shell(Path::new("/nowhere")), &Program::old());
        assert_eq!((notices(&gone, false).len(), notices(&gone, true).len()), (1, 1));
        assert!(notices(&gone, true)[0].contains("which is gone"));
        let mut tells = Program::old();
        tells.tells_directory = true;
        assert_eq!(notices(&restored_from(in_shell(temp.path()), &tells), false), [""; 0]);
        assert_eq!(
            notices(&restored_from(in_shell(Path::new("/srv")), &Program::old()), false),
            [""; 0],
            "it starts there"
        );
        assert_eq!(notices(&restored_from(Situation::default(), &Program::old()), false), [""; 0]);
    }

    #[test]
    fn a_directory_is_the_same_by_any_name() {
        let temp = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(temp.path()).unwrap();
        let (folder, link) = (real.join("folder"), real.join("link"));
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(is_same(&folder, &folder) && is_same(&folder, &link) && is_same(&link, &link));
        assert!(!is_same(&real, &folder) && !is_same(&folder, Path::new("/nowhere")));
    }

    #[test]
    fn a_worktree_is_lost_if_claude_does_not_return_to_it_or_it_is_gone() {
        let temp = tempfile::tempdir().unwrap();
        let mut returns = Program::old();
        returns.returns_to_worktrees = true;
        let lost = |worktree: &Path, program: &Program| {
            let situation = Situation { worktree: Some(worktree.to_owned()), ..Situation::default() };
            notices(&restored_from(situation, program), true).concat()
        };
        assert_eq!(lost(temp.path(), &returns), "");
        assert!(lost(temp.path(), &Program::old()).contains("ExitWorktree"));
        assert!(lost(Path::new("/nowhere"), &returns).contains("which is gone"));
    }

    #[test]
    fn a_mode_that_the_agent_was_not_given_is_reported_but_not_restored() {
        let in_mode =
            |mode: &str| restored_from(Situation { mode: Some(mode.into()), ..Situation::default() }, &Program::old());
        let plan = in_mode("plan");
        assert_eq!((plan.mode.as_deref(), plan.launch.permission_mode.as_deref()), (Some("plan"), Some("plan")));
        assert_eq!(notices(&plan, false), [""; 0]);
        let wider = in_mode("bypassPermissions");
        assert_eq!((wider.mode.as_deref(), wider.launch.permission_mode.as_deref()), (None, None));
        assert!(notices(&wider, true).concat().contains("bypassPermissions"));
    }

    #[test]
    fn after_a_loss_everything_but_the_mode_is_as_before() {
        let (_temp, store) = testing::store();
        let before = Situation { shell: Some("/srv/a".into()), rules: vec!["Read".into()], ..Situation::default() };
        let frame = Frame { situation: before.clone(), ..store.frame(store.root()).unwrap().unwrap() };
        let lost =
            |mode: &str| Situation { mode: Some(mode.into()), shell: Some("/srv/b".into()), ..Situation::default() };
        assert_eq!(after_loss(&frame, lost("plan")), Situation { mode: Some("plan".into()), ..before.clone() });
        assert_eq!(after_loss(&frame, lost("bypassPermissions")), before);
    }

    #[test]
    fn rules_of_a_skill_count_in_the_attempt_that_used_it_or_that_a_person_allowed_it_in() {
        let (_temp, store) = testing::store();
        let frame = store.frame(store.root()).unwrap().unwrap();
        let rules = |made_before: bool, tool: &str, call: &str| {
            let skill = SkillRules { call: "t1".into(), rules: vec!["Bash(id)".into()], made_before };
            let mut digest = Digest { version: Some("2.1.300".into()), ..Digest::default() };
            digest.rights.of_skills.push(skill);
            let kind = RequestKind::Permission {
                tool: tool.into(),
                input: serde_json::Value::Null,
                reason: None,
                place: None,
            };
            let result = RequestResult::Text("allow".into());
            let given = Delivery { request: RequestId::random(), call: Some(call.into()), kind, result };
            at_the_end(&frame, None, &digest, None, &[given], false).unwrap().rules
        };
        assert_eq!(rules(false, "Bash", "t9"), ["Bash(id)"]);
        assert_eq!(rules(true, "Bash", "t1"), [""; 0]);
        assert_eq!(rules(true, SKILL, "t9"), [""; 0]);
        assert_eq!(rules(true, SKILL, "t1"), ["Bash(id)"]);
    }

    #[test]
    fn rules_of_a_skill_count_until_the_turn_ends_and_only_if_claude_honours_them() {
        let (_temp, store) = testing::store();
        let before = Situation { rules: vec!["Read".into()], ..Situation::default() };
        let frame = Frame { situation: before, ..store.frame(store.root()).unwrap().unwrap() };
        let rules = |version: Option<&str>, ends_turn: bool| {
            let skill = SkillRules { call: "t1".into(), rules: vec!["Bash(id)".into()], made_before: false };
            let mut digest = Digest { version: version.map(str::to_owned), ..Digest::default() };
            digest.rights.of_skills.push(skill);
            at_the_end(&frame, None, &digest, None, &[], ends_turn).unwrap().rules
        };
        assert_eq!(rules(Some("2.1.330"), false), ["Read", "Bash(id)"]);
        assert_eq!(rules(Some("2.1.330"), true), [""; 0]);
        assert_eq!(rules(Some("2.1.197"), false), [""; 0]);
        assert_eq!(rules(None, false), ["Read"], "it ended before it did anything");
    }

    fn answered(answer: &str) -> Delivery {
        let modes = vec!["default".to_owned(), "acceptEdits".to_owned()];
        let kind = RequestKind::Plan(ProposedPlan { text: None, file: None, modes });
        Delivery { request: RequestId::random(), call: None, kind, result: RequestResult::Text(answer.to_owned()) }
    }

    #[test]
    fn the_last_approved_plan_decides_the_mode() {
        let mode = |results: Vec<Delivery>, before: Option<&str>| {
            let undelivered = Undelivered { results, chosen_mode: before.map(str::to_owned), ..Undelivered::default() };
            chosen(&undelivered).map(|chosen| (chosen.mode, chosen.is_new))
        };
        let [edits, default, refused] = ["allow acceptEdits", "allow", "deny: too large"].map(answered);
        assert_eq!(mode(vec![], None), None);
        assert_eq!(mode(vec![], Some("default")), Some(("default".into(), false)));
        assert_eq!(mode(vec![edits.clone(), refused.clone()], Some("default")), Some(("acceptEdits".into(), true)));
        assert_eq!(mode(vec![edits, default], None), Some(("default".into(), true)));
        assert_eq!(mode(vec![refused], Some("default")), Some(("default".into(), false)));
    }
}
