//! How a frame's `claude` is started: recorded once, repeated at every attempt.
//!
//! Claude Code restores none of this when a session is resumed, and a different model or a different set of tools would
//! change the beginning of every request, which the prompt cache then no longer knows.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::core::agent::claude_args::{BadArgument, ClaudeArgs, number};
use crate::core::agent::{permission_mode, worktree::Worktree};

/// The launch options of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The program that was found when the frame was made. Cron's `PATH` may not lead to it.
    pub claude: PathBuf,
    /// `--model`: as the user gave it, until the first attempt has told which model that is.
    pub model: Option<String>,
    /// `--permission-mode`.
    pub permission_mode: Option<String>,
    /// The user's own arguments for `claude`.
    pub args: ClaudeArgs,
    /// Whether the user wants no hooks: agents then pause with signals.
    #[serde(default)]
    pub no_hooks: bool,
    /// Whether the agent is not told what changed while it waited.
    #[serde(default)]
    pub no_stale_check: bool,
    /// Whether agents have Claude Code's own tool for questions. It changes the list of tools, and with it the beginning of
    /// every request, so a frame keeps what it began with.
    #[serde(default)]
    pub native_questions: bool,
    /// What becomes of calls that need an approval.
    #[serde(default)]
    pub on_permission: OnPermission,
    /// `PATH` of the shell that made the frame, so that its agents find the same programs under cron.
    pub path: Option<String>,
    /// `CLAUDE_CONFIG_DIR` of the shell that made the frame: Claude Code keeps sessions there.
    pub config_dir: Option<PathBuf>,
    /// What else of the environment of that shell its agents see wherever they go on, and is not set there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// For how many seconds what runs beside an agent that has replied may go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_grace: Option<u64>,
    /// The worktree that is made for this agent alone. A child works in it too, unless it asks for its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
}

/// What becomes of a call that needs an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnPermission {
    /// It is denied, as by plain `claude -p`.
    #[default]
    Deny,
    /// A person is asked, and the agent pauses until there is an answer.
    Ask,
}

/// What a person changes in the launch options of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Another program. Absolute.
    pub claude: Option<PathBuf>,
    /// Another model.
    pub model: Option<String>,
    /// Another permission mode.
    pub permission_mode: Option<String>,
    /// Other arguments for `claude`, in the place of all that were given.
    pub args: Option<ClaudeArgs>,
}

/// What a child may ask to have otherwise than its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Another model.
    pub model: Option<String>,
    /// Another permission mode.
    pub permission_mode: Option<String>,
    /// Another way with calls that need an approval.
    pub on_permission: Option<OnPermission>,
    /// More arguments for `claude`.
    pub args: ClaudeArgs,
}

/// Why launch options are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLaunch {
    /// Arguments for `claude` that nobody may give.
    #[error(transparent)]
    Argument(#[from] BadArgument),
    /// An agent may not give its child more rights than it has: Claude Code lets agents read where they work.
    #[error("an agent that works in {} cannot start another outside of it, in {}", own.display(), child.display())]
    Outside {
        /// Where the agent works.
        own: PathBuf,
        /// Where its child would work.
        child: PathBuf,
    },
    /// An agent may not give its child more rights than it has.
    #[error("an agent cannot start another with wider permissions than its own ({0})")]
    Widens(String),
    /// A value that looks like an option is none, or an attempt to pass one by.
    #[error("the value of {0} begins with a dash or is missing")]
    DashedValue(String),
}

/// Arguments with one value that let no child do more than its parent. Whatever else there is, a person gives the root.
const FOR_CHILDREN: [&str; 6] =
    ["--append-system-prompt", "--disallowedTools", "--effort", "--fallback-model", "--max-budget-usd", "--max-turns"];

/// Limits of which a child may not have a higher one than its parent.
const LIMITS: [&str; 2] = ["--max-budget-usd", "--max-turns"];

/// Lets an agent do everything, whatever its permission mode.
const SKIP_PERMISSIONS: &str = "--dangerously-skip-permissions";
/// The option that lets an agent come to the mode in which it may do all, and before 2.1.300 do all in plan mode, too.
const MAY_SKIP_PERMISSIONS: &str = "--allow-dangerously-skip-permissions";

/// The option with which a user lets a tool of their own decide on approvals. Questions would go there too.
const PROMPT_TOOL: &str = "--permission-prompt-tool";

impl Launch {
    /// The same options for a frame that has not begun, with Claude Code's own tool for questions where it can serve.
    #[must_use]
    pub fn with_native_questions(self) -> Self {
        let native_questions = !self.no_hooks && !self.args.has(PROMPT_TOOL);
        Self { native_questions, ..self }
    }

    /// The same for a fork of a conversation that was held with or without that tool: one that begins with other tools
    /// has nothing in common with it for the prompt cache. Approvals that are asked about need the tool all the same.
    #[must_use]
    pub fn forking(self, native_questions: bool) -> Self {
        let keeps = native_questions || self.on_permission == OnPermission::Ask;
        Self { native_questions: self.native_questions && keeps, ..self }
    }

    /// The same options in another permission mode. One switch would overrule any mode: another in its place leaves the agent
    /// the same rights in that mode.
    #[must_use]
    pub fn in_mode(self, mode: &str) -> Self {
        let args = match self.is_unrestricted() && mode != permission_mode::UNRESTRICTED {
            true => self.args.without(SKIP_PERMISSIONS).and(&ClaudeArgs::switch(MAY_SKIP_PERMISSIONS)),
            false => self.args,
        };
        Self { permission_mode: Some(mode.to_owned()), args, ..self }
    }

    /// The launch options of a child that this frame's agent asks for.
    ///
    /// # Errors
    ///
    /// [`BadLaunch`] where the child would get more rights than its parent has, or arguments are not for users.
    pub fn child(&self, wanted: Overrides) -> Result<Self, BadLaunch> {
        if !self.is_unrestricted() {
            check_child_args(&wanted.args)?;
        }
        self.check_limits(&wanted.args)?;
        if let Some(mode) = &wanted.permission_mode
            && !self.covers(mode)
        {
            return Err(BadLaunch::Widens(format!("--permission-mode {mode}")));
        }
        if wanted.on_permission == Some(OnPermission::Ask) && self.on_permission == OnPermission::Deny {
            return Err(BadLaunch::Widens("--on-permission ask".to_owned()));
        }
        let launch = Self {
            model: wanted.model.or_else(|| self.model.clone()),
            permission_mode: wanted.permission_mode.or_else(|| self.permission_mode.clone()),
            on_permission: wanted.on_permission.unwrap_or(self.on_permission),
            args: self.args.and(&wanted.args),
            worktree: None,
            ..self.clone()
        };
        Ok(if self.native_questions { launch.with_native_questions() } else { launch })
    }

    /// The same options, repaired, for a frame that has from `top`, the first agent of its chain, what it did not ask to have
    /// otherwise. What it asked for stays.
    #[must_use]
    pub fn repaired(self, top: &Self, repair: &Repair) -> Self {
        fn other<T: PartialEq>(own: T, top: &T, new: Option<T>) -> T {
            if own == *top { new.unwrap_or(own) } else { own }
        }
        let Repair { claude, model, permission_mode, args } = repair.clone();
        let args = match (args, self.args.behind(&top.args)) {
            (Some(args), Some(own)) => args.and(&own),
            _ => self.args.clone(),
        };
        let repaired = Self {
            claude: other(self.claude, &top.claude, claude),
            model: other(self.model, &top.model, model.map(Some)),
            permission_mode: other(self.permission_mode, &top.permission_mode, permission_mode.map(Some)),
            args,
            ..self
        };
        // A tool that its conversation did not begin with is not added; one that would get others' questions goes.
        Self { native_questions: self.native_questions && !repaired.args.has(PROMPT_TOOL), ..repaired }
    }

    /// Whether this frame's agent may do everything, so that nothing can be wider.
    #[must_use]
    pub fn is_unrestricted(&self) -> bool {
        self.permission_mode.as_deref() == Some(permission_mode::UNRESTRICTED) || self.args.has(SKIP_PERMISSIONS)
    }

    /// Whether an agent in `mode` may do no more than this frame's.
    pub(crate) fn covers(&self, mode: &str) -> bool {
        self.is_unrestricted()
            || permission_mode::covers(self.permission_mode.as_deref().unwrap_or(permission_mode::DEFAULT), mode)
    }

    /// Of two values `claude` takes the last: a child could raise what a person has limited.
    fn check_limits(&self, args: &ClaudeArgs) -> Result<(), BadLaunch> {
        let limit = |name| self.args.last(name).and_then(number);
        for (name, value) in args.pairs().filter(|(name, _)| LIMITS.contains(name)) {
            let wanted = value.and_then(number).unwrap_or(f64::INFINITY);
            if limit(name).is_some_and(|limit| wanted > limit) {
                return Err(BadLaunch::Widens(format!("{name} {}", value.unwrap_or_default())));
            }
        }
        Ok(())
    }
}

fn check_child_args(args: &ClaudeArgs) -> Result<(), BadLaunch> {
    for (name, value) in args.pairs() {
        if !FOR_CHILDREN.contains(&name) {
            return Err(BadLaunch::Widens(name.to_owned()));
        }
        if value.is_none_or(|value| value.starts_with('-')) {
            return Err(BadLaunch::DashedValue(name.to_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> ClaudeArgs {
        ClaudeArgs::parse(words).unwrap()
    }

    fn wanted(mode: Option<&str>, args: &[&str]) -> Overrides {
        Overrides {
            permission_mode: mode.map(str::to_owned),
            args: ClaudeArgs::parse(args).unwrap(),
            ..Overrides::default()
        }
    }

    #[test]
    fn a_child_inherits_what_it_does_not_override() {
        let parent = Launch {
            model: Some("claude-opus-4-8".into()),
            permission_mode: Some("acceptEdits".into()),
            args: args(&["--max-turns", "9"]),
            ..Launch::default()
        };
        assert_eq!(parent.child(Overrides::default()), Ok(parent.clone()));
        let child = parent.child(wanted(Some("plan"), &["--effort", "low"])).unwrap();
        assert_eq!(child.permission_mode.as_deref(), Some("plan"));
        assert_eq!(child.args.words(), ["--max-turns=9", "--effort=low"]);
        let worktree =
            Worktree { repository: "/r/.git".into(), path: "/w".into(), branch: "b".into(), base: "c".into() };
        let apart = Launch { worktree: Some(worktree), ..parent.clone() };
        assert_eq!(
            apart.child(Overrides::default()),
            Ok(parent),
            "it works there too, but the worktree is not its own"
        );
    }

    #[test]
    fn a_child_gets_no_wider_permissions() {
        let parent = Launch::default();
        assert!(parent.child(wanted(Some("acceptEdits"), &[])).is_err());
        assert!(parent.child(wanted(Some("some-mode-of-next-year"), &[])).is_err());
        assert!(parent.child(wanted(None, &["--dangerously-skip-permissions"])).is_err());
        assert!(parent.child(wanted(None, &["--allowedTools=Bash"])).is_err());
        assert!(parent.child(wanted(None, &["--max-turns=3", "--effort", "low"])).is_ok());
        let odd = Launch { permission_mode: Some("manual".into()), ..Launch::default() };
        assert!(odd.child(wanted(Some("bypassPermissions"), &[])).is_err());
        assert!(odd.child(wanted(Some("manual"), &[])).is_ok());
        let free = Launch { args: args(&["--dangerously-skip-permissions"]), ..Launch::default() };
        assert!(free.child(wanted(Some("bypassPermissions"), &["--add-dir", "/"])).is_ok());
    }

    #[test]
    fn a_child_asks_for_permissions_only_where_its_parent_does() {
        let wanted = |on_permission| Overrides { on_permission, ..Overrides::default() };
        let asking = Launch { on_permission: OnPermission::Ask, ..Launch::default() };
        let of = |parent: &Launch, on| parent.child(wanted(on)).map(|child| child.on_permission);
        assert_eq!(of(&asking, None), Ok(OnPermission::Ask));
        assert_eq!(of(&asking, Some(OnPermission::Deny)), Ok(OnPermission::Deny));
        assert_eq!(of(&Launch::default(), None), Ok(OnPermission::Deny));
        assert!(of(&Launch::default(), Some(OnPermission::Ask)).is_err());
    }

    #[test]
    fn a_frame_has_native_questions_unless_somebody_else_would_get_them() {
        let launch = |no_hooks, words: &[&str]| {
            Launch { no_hooks, args: args(words), ..Launch::default() }.with_native_questions().native_questions
        };
        assert!(launch(false, &["--effort", "low"]));
        assert!(!launch(true, &[]));
        assert!(!launch(false, &["--permission-prompt-tool", "mcp__me__decide"]));
        assert!(!launch(false, &["--permission-prompt-tool=mcp__me__decide"]));

        let older = Launch::default();
        assert!(!older.child(Overrides::default()).unwrap().native_questions);
        let free = Launch { args: args(&["--dangerously-skip-permissions"]), ..Launch::default() };
        let free = free.with_native_questions();
        assert!(free.child(Overrides::default()).unwrap().native_questions);
        assert!(free.clone().forking(true).native_questions && !free.clone().forking(false).native_questions);
        assert!(Launch { on_permission: OnPermission::Ask, ..free.clone() }.forking(false).native_questions);
        assert!(!free.child(wanted(None, &["--permission-prompt-tool=x"])).unwrap().native_questions);
    }

    #[test]
    fn a_value_is_never_taken_for_an_option() {
        let smuggled = |words: &[&str]| Launch { args: args(words), ..Launch::default() };
        assert!(!smuggled(&["--append-system-prompt", "--dangerously-skip-permissions"]).is_unrestricted());
        assert!(smuggled(&["--dangerously-skip-permissions"]).is_unrestricted());
        let asks = smuggled(&["--append-system-prompt", "--permission-prompt-tool"]).with_native_questions();
        assert!(asks.native_questions);
        let parent = Launch::default();
        for words in
            [&["--disallowedTools", "--settings={}"][..], &["--append-system-prompt=--bare"], &["--effort", "-"]]
        {
            let refused = parent.child(wanted(None, words)).unwrap_err();
            assert!(matches!(refused, BadLaunch::DashedValue(_)), "{words:?}");
        }
    }

    #[test]
    fn another_mode_is_not_overruled_by_a_switch() {
        let edits =
            Launch { permission_mode: Some("acceptEdits".into()), args: args(&["--effort=low"]), ..Launch::default() };
        let planning = Launch { permission_mode: Some("plan".into()), ..edits.clone() };
        assert_eq!(edits.in_mode("plan"), planning);
        let free = Launch { args: args(&["--dangerously-skip-permissions", "--effort=low"]), ..Launch::default() };
        let by_mode = Launch {
            permission_mode: Some("bypassPermissions".into()),
            args: args(&["--effort=low"]),
            ..Launch::default()
        };
        for free in [free, by_mode] {
            let planning = free.clone().in_mode("plan");
            assert_eq!(planning.permission_mode.as_deref(), Some("plan"));
            assert_eq!(planning.args.words(), ["--effort=low", "--allow-dangerously-skip-permissions"]);
            assert_eq!(free.clone().in_mode("bypassPermissions").args, free.args);
        }
    }

    #[test]
    fn a_child_raises_no_limit() {
        let limited = Launch { args: args(&["--max-turns=9", "--max-budget-usd=1.5"]), ..Launch::default() };
        let free = Launch { permission_mode: Some("bypassPermissions".into()), ..limited.clone() };
        for parent in [limited, free] {
            assert!(parent.child(wanted(None, &["--max-turns=9", "--max-budget-usd", "0.5"])).is_ok());
            assert!(parent.child(wanted(None, &["--max-turns=10"])).is_err());
            assert!(parent.child(wanted(None, &["--max-budget-usd=2"])).is_err());
        }
    }

    #[test]
    fn a_repair_is_for_those_who_have_what_the_first_agent_has() {
        let top = Launch { model: Some("opus".into()), args: args(&["--nonsense"]), ..Launch::default() };
        let repair = Repair {
            model: Some("haiku".into()),
            permission_mode: Some("plan".into()),
            args: Some(args(&["--max-turns=5"])),
            claude: None,
        };
        let child = top.child(wanted(None, &["--effort=low"])).unwrap();
        let repaired = child.repaired(&top, &repair);
        assert_eq!(repaired.args.words(), ["--max-turns=5", "--effort=low"]);
        assert_eq!((repaired.model.as_deref(), repaired.permission_mode.as_deref()), (Some("haiku"), Some("plan")));
        let own = Launch { model: Some("sonnet".into()), permission_mode: Some("dontAsk".into()), ..top.clone() };
        let repaired = own.clone().repaired(&top, &repair);
        assert_eq!((repaired.model, repaired.permission_mode), (own.model, own.permission_mode));
        assert_eq!(top.clone().repaired(&top, &Repair::default()), top);
    }

    #[test]
    fn newer_releases_have_another_name_for_the_default_mode() {
        assert!(Launch::default().child(wanted(Some("manual"), &[])).is_ok());
        let manual = Launch { permission_mode: Some("manual".into()), ..Launch::default() };
        assert!(manual.child(wanted(Some("default"), &[])).is_ok());
        assert!(manual.child(wanted(Some("acceptEdits"), &[])).is_err());
    }
}
