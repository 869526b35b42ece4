//! How launch options change: how a child's may differ from its parent's, and a person's changes to those of a chain.

use std::path::PathBuf;

use crate::core::agent::claude_args::{ClaudeArgs, FOR_CHILDREN, LIMITS, PROMPT_TOOL, PROMPTS, number};
use crate::core::agent::launch::{Launch, OnPermission};
use crate::core::agent::reply_schema::ReplySchema;

/// How a child's launch options should differ from its parent's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides {
    pub model: Option<String>,
    pub permission_mode: Option<String>,
    /// How calls that need an approval are handled.
    pub on_permission: Option<OnPermission>,
    /// How many agents of Claude Code's own it may start.
    pub native_agents: Option<u32>,
    pub args: ClaudeArgs,
    /// How many seconds it may run. It does not inherit its parent's limit.
    pub timeout: Option<u64>,
    /// The schema that its reply must match. It does not inherit its parent's.
    pub schema: Option<ReplySchema>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadLaunch {
    /// An agent may not give its child more rights than it has, and Claude Code lets agents read where they work.
    #[error("an agent that works in {} cannot start one outside it, in {}", own.display(), child.display())]
    Outside { own: PathBuf, child: PathBuf },
    /// An agent may not give its child more rights than it has.
    #[error("an agent cannot start another with wider permissions than its own ({0})")]
    Widens(String),
    /// A person's system prompt for a whole chain must not be removed by an agent.
    #[error("an agent cannot replace the system prompt of those above it ({0})")]
    ReplacesPrompt(String),
    /// A value that looks like an option is a mistake or an attempt to smuggle one in.
    #[error("the value of {0} begins with a dash or is missing")]
    DashedValue(String),
    /// The reply of an agent that hands off is that of another one.
    #[error("an agent whose reply has to fit a schema cannot hand off to one with another schema")]
    OtherSchema,
    /// The replies of several agents are not JSON.
    #[error("an agent whose reply has to fit a schema cannot hand off to several")]
    SeveralReplies,
}

impl Launch {
    /// The launch options of a child that this frame's agent asks for, which may not have more rights than its parent.
    pub(crate) fn child(&self, wanted: Overrides) -> Result<Self, BadLaunch> {
        if !self.is_unrestricted() {
            check_child_args(&wanted.args)?;
        }
        self.check_limits(&wanted.args)?;
        self.check_prompts(&wanted.args)?;
        if let Some(mode) = &wanted.permission_mode
            && !self.covers(mode)
        {
            return Err(BadLaunch::Widens(format!("--permission-mode {mode}")));
        }
        if wanted.on_permission == Some(OnPermission::Ask) && self.on_permission == OnPermission::Deny {
            return Err(BadLaunch::Widens("--on-permission ask".to_owned()));
        }
        if let (Some(own), Some(wanted)) = (self.native_agents, wanted.native_agents)
            && wanted > own
        {
            return Err(BadLaunch::Widens(format!("--native-agents {wanted}")));
        }
        let launch = Self {
            native_agents: wanted.native_agents.or(self.native_agents),
            model: wanted.model.or_else(|| self.model.clone()),
            permission_mode: wanted.permission_mode.or_else(|| self.permission_mode.clone()),
            on_permission: wanted.on_permission.unwrap_or(self.on_permission),
            args: self.args.and(&wanted.args),
            timeout: wanted.timeout,
            worktree: None,
            schema: wanted.schema,
            ..self.clone()
        };
        Ok(if self.native_questions { launch.with_native_questions() } else { launch })
    }

    /// The launch options of `count` agents to which this frame's agent hands off: their reply becomes its own.
    pub(crate) fn successors(&self, wanted: Overrides, count: usize) -> Result<Self, BadLaunch> {
        let Some(own) = &self.schema else { return self.child(wanted) };
        if wanted.schema.as_ref().is_some_and(|other| other != own) {
            return Err(BadLaunch::OtherSchema);
        }
        if count > 1 {
            return Err(BadLaunch::SeveralReplies);
        }
        self.child(Overrides { schema: Some(own.clone()), ..wanted })
    }

    fn check_prompts(&self, args: &ClaudeArgs) -> Result<(), BadLaunch> {
        let kind = |name: &str| name.trim_end_matches("-file").to_owned();
        let given: Vec<_> = PROMPTS.iter().filter(|name| self.args.has(name)).map(|name| kind(name)).collect();
        match args.pairs().find(|(name, _)| PROMPTS.contains(name) && given.contains(&kind(name))) {
            Some((name, _)) => Err(BadLaunch::ReplacesPrompt(name.to_owned())),
            None => Ok(()),
        }
    }

    /// If an option is repeated, `claude` uses the last value: a child could raise a person's limit.
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

/// Changes that a person makes to the launch options of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Absolute.
    pub claude: Option<PathBuf>,
    pub model: Option<String>,
    pub permission_mode: Option<String>,
    /// Absolute, with links resolved.
    pub questions_dir: Option<PathBuf>,
    /// Replaces all earlier arguments for `claude`.
    pub args: Option<ClaudeArgs>,
}

impl Launch {
    /// The repaired options of a frame. It keeps its own differences from `top`, the first agent of its chain.
    pub(crate) fn repaired(self, top: &Self, repair: &Repair) -> Self {
        fn other<T: PartialEq>(own: T, top: &T, new: Option<T>) -> T {
            if own == *top { new.unwrap_or(own) } else { own }
        }
        let Repair { claude, model, permission_mode, questions_dir, args } = repair.clone();
        let args = match (args, self.args.behind(&top.args)) {
            (Some(args), Some(own)) => args.and(&own),
            _ => self.args.clone(),
        };
        let repaired = Self {
            claude: other(self.claude, &top.claude, claude),
            model: other(self.model, &top.model, model.map(Some)),
            permission_mode: other(self.permission_mode, &top.permission_mode, permission_mode.map(Some)),
            questions_dir: other(self.questions_dir, &top.questions_dir, questions_dir.map(Some)),
            args,
            ..self
        };
        // A tool that its conversation did not begin with is not added; one that would receive questions of other agents is
        // removed.
        Self { native_questions: self.native_questions && !repaired.args.has(PROMPT_TOOL), ..repaired }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::child_worktree::Worktree;

    fn args(words: &[&str]) -> ClaudeArgs {
        ClaudeArgs::from_recorded(words)
    }

    fn wanted(mode: Option<&str>, words: &[&str]) -> Overrides {
        Overrides { permission_mode: mode.map(str::to_owned), args: args(words), ..Overrides::default() }
    }

    #[test]
    fn a_child_may_start_no_more_native_agents_than_its_parent() {
        let wanted = |native_agents| Overrides { native_agents, ..Overrides::default() };
        let of = |own, most| {
            let parent = Launch { native_agents: own, ..Launch::default() };
            parent.child(wanted(most)).map(|child| child.native_agents)
        };
        assert_eq!([of(None, None), of(None, Some(9)), of(Some(2), None)], [Ok(None), Ok(Some(9)), Ok(Some(2))]);
        assert_eq!([of(Some(2), Some(2)), of(Some(2), Some(0))], [Ok(Some(2)), Ok(Some(0))]);
        assert!(matches!(of(Some(2), Some(3)), Err(BadLaunch::Widens(what)) if what == "--native-agents 3"));
        assert!(of(Some(0), Some(1)).is_err());
    }

    #[test]
    fn a_child_inherits_what_it_does_not_override() {
        let parent = Launch {
            model: Some("claude-opus-4-8".into()),
            permission_mode: Some("acceptEdits".into()),
            args: args(&["--max-turns=9"]),
            ..Launch::default()
        };
        assert_eq!(parent.child(Overrides::default()), Ok(parent.clone()));
        let limited = Launch { timeout: Some(60), ..parent.clone() };
        assert_eq!(limited.child(Overrides::default()), Ok(parent.clone()), "its own time is not its child's");
        let child = parent.child(wanted(Some("plan"), &["--effort=low"])).unwrap();
        assert_eq!(child.permission_mode.as_deref(), Some("plan"));
        assert_eq!(child.args.words(), ["--max-turns=9", "--effort=low"]);
        let worktree = Worktree {
            remote: None,
            repository: "/r/.git".into(),
            path: "/w".into(),
            branch: "b".into(),
            base: "c".into(),
        };
        let apart = Launch { worktree: Some(worktree), ..parent.clone() };
        assert_eq!(
            apart.child(Overrides::default()),
            Ok(parent),
            "it works there too, but the worktree is not its own"
        );
    }

    #[test]
    fn a_child_adds_to_the_system_prompt_and_replaces_nothing_of_it() {
        let free = |words: &[&str]| Launch {
            permission_mode: Some("bypassPermissions".into()),
            args: args(words),
            ..Launch::default()
        };
        let child = free(&["--append-system-prompt=a"]).child(wanted(None, &["--append-system-prompt=b"])).unwrap();
        assert_eq!(child.args.with_joined("--append-system-prompt").words(), ["--append-system-prompt=a\n\nb"]);
        for (theirs, own) in [
            ("--system-prompt=a", "--system-prompt=b"),
            ("--system-prompt=a", "--system-prompt-file=b"),
            ("--system-prompt-file=a", "--system-prompt=b"),
            ("--append-system-prompt-file=a", "--append-system-prompt-file=b"),
        ] {
            let refused = free(&[theirs]).child(wanted(None, &[own]));
            assert!(matches!(refused, Err(BadLaunch::ReplacesPrompt(_))), "{theirs} {own}: {refused:?}");
        }
        assert!(free(&["--append-system-prompt=a"]).child(wanted(None, &["--system-prompt=b"])).is_ok());
    }

    #[test]
    fn a_child_gets_no_wider_permissions() {
        let parent = Launch::default();
        assert!(parent.child(wanted(Some("acceptEdits"), &[])).is_err());
        assert!(parent.child(wanted(Some("some-mode-of-next-year"), &[])).is_err());
        assert!(parent.child(wanted(None, &["--dangerously-skip-permissions"])).is_err());
        assert!(parent.child(wanted(None, &["--allowedTools=Bash"])).is_err());
        assert!(parent.child(wanted(None, &["--max-turns=3", "--effort=low"])).is_ok());
        let odd = Launch { permission_mode: Some("manual".into()), ..Launch::default() };
        assert!(odd.child(wanted(Some("bypassPermissions"), &[])).is_err());
        assert!(odd.child(wanted(Some("manual"), &[])).is_ok());
        let free = Launch { args: args(&["--dangerously-skip-permissions"]), ..Launch::default() };
        assert!(free.child(wanted(Some("bypassPermissions"), &["--add-dir=/"])).is_ok());
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
    fn who_hands_off_passes_its_schema_on() {
        let schema = |text: &str| ReplySchema::from_text(text).ok();
        let wanted = |schema: Option<ReplySchema>| Overrides { schema, ..Overrides::default() };
        let free = Launch::default();
        let bound = Launch { schema: schema(r#"{"type": "object", "title": "A"}"#), ..Launch::default() };
        assert_eq!(bound.child(wanted(None)).unwrap().schema, None, "it is only its own");
        assert_eq!(bound.child(wanted(schema("true"))).unwrap().schema, schema("true"));
        for (caller, own, count, expected) in [
            (&free, None, 2, Ok(None)),
            (&free, schema("true"), 2, Ok(schema("true"))),
            (&bound, None, 1, Ok(bound.schema.clone())),
            (&bound, schema(r#"{"title":"A","type":"object"}"#), 1, Ok(bound.schema.clone())),
            (&bound, schema("true"), 1, Err(BadLaunch::OtherSchema)),
            (&bound, None, 2, Err(BadLaunch::SeveralReplies)),
        ] {
            let launch = caller.successors(wanted(own.clone()), count);
            assert_eq!(launch.map(|launch| launch.schema), expected, "{own:?}, {count}");
        }
    }

    #[test]
    fn a_child_raises_no_limit() {
        let limited = Launch { args: args(&["--max-turns=9", "--max-budget-usd=1.5"]), ..Launch::default() };
        let free = Launch { permission_mode: Some("bypassPermissions".into()), ..limited.clone() };
        for parent in [limited, free] {
            assert!(parent.child(wanted(None, &["--max-turns=9", "--max-budget-usd=0.5"])).is_ok());
            assert!(parent.child(wanted(None, &["--max-turns=10"])).is_err());
            assert!(parent.child(wanted(None, &["--max-budget-usd=2"])).is_err());
        }
    }

    #[test]
    fn newer_releases_have_another_name_for_the_default_mode() {
        assert!(Launch::default().child(wanted(Some("manual"), &[])).is_ok());
        let manual = Launch { permission_mode: Some("manual".into()), ..Launch::default() };
        assert!(manual.child(wanted(Some("default"), &[])).is_ok());
        assert!(manual.child(wanted(Some("acceptEdits"), &[])).is_err());
    }

    #[test]
    fn a_child_is_given_no_value_that_looks_like_an_option() {
        let parent = Launch::default();
        for word in ["--disallowedTools=--settings={}", "--append-system-prompt=--bare", "--effort=-", "--effort"] {
            let refused = parent.child(wanted(None, &[word])).unwrap_err();
            assert!(matches!(refused, BadLaunch::DashedValue(_)), "{word}");
        }
    }

    #[test]
    fn a_child_has_native_questions_if_its_parent_has_and_nobody_else_would_get_them() {
        assert!(!Launch::default().child(Overrides::default()).unwrap().native_questions);
        let free = Launch { args: args(&["--dangerously-skip-permissions"]), ..Launch::default() };
        let free = free.with_native_questions();
        assert!(free.child(Overrides::default()).unwrap().native_questions);
        assert!(!free.child(wanted(None, &["--permission-prompt-tool=x"])).unwrap().native_questions);
    }

    #[test]
    fn a_repair_is_for_those_who_have_what_the_first_agent_has() {
        let top = Launch { model: Some("opus".into()), args: args(&["--nonsense"]), ..Launch::default() };
        let repair = Repair {
            model: Some("haiku".into()),
            permission_mode: Some("plan".into()),
            args: Some(args(&["--max-turns=5"])),
            claude: Some("/new/claude".into()),
            questions_dir: Some("/q".into()),
        };
        let child = Launch { args: args(&["--nonsense", "--effort=low"]), ..top.clone() };
        let repaired = child.repaired(&top, &repair);
        assert_eq!(repaired.args.words(), ["--max-turns=5", "--effort=low"]);
        assert_eq!((repaired.model.as_deref(), repaired.permission_mode.as_deref()), (Some("haiku"), Some("plan")));
        assert_eq!(
            (Some(repaired.claude), repaired.questions_dir),
            (repair.claude.clone(), repair.questions_dir.clone())
        );
        let own = Launch { model: Some("sonnet".into()), permission_mode: Some("dontAsk".into()), ..top.clone() };
        let repaired = own.clone().repaired(&top, &repair);
        assert_eq!((repaired.model, repaired.permission_mode), (own.model, own.permission_mode));
        assert_eq!(top.clone().repaired(&top, &Repair::default()), top);
    }
}
