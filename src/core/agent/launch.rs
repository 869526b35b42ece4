//! How a frame's `claude` is started: recorded once, repeated at every attempt.
//!
//! Claude Code restores none of this when a session is resumed. A different model or set of tools would change the beginning of
//! every request and miss the prompt cache.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::core::agent::child_worktree::Worktree;
use crate::core::agent::claude_args::{ClaudeArgs, MAY_SKIP_PERMISSIONS, PROMPT_TOOL, SKIP_PERMISSIONS};
use crate::core::agent::permission_mode;
use crate::core::agent::reply_schema::ReplySchema;

/// Everything that determines how an agent's `claude` is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Launch {
    /// The program found when the agent was created. Cron's `PATH` may not lead to it.
    pub claude: PathBuf,
    /// `--model`: as the user gave it until the first attempt has shown which model that is.
    pub model: Option<String>,
    /// `--permission-mode`.
    pub permission_mode: Option<String>,
    /// Arguments that the user gave for `claude`.
    pub args: ClaudeArgs,
    /// Whether the user wants no hooks. Agents then pause with signals.
    #[serde(default)]
    pub no_hooks: bool,
    /// Whether the agent is not told about stale files.
    #[serde(default)]
    pub no_stale_check: bool,
    /// Whether agents have Claude Code's own tool for questions. It changes the list of tools, and with it the
    /// beginning of every request, so an agent keeps the setting it began with.
    #[serde(default)]
    pub native_questions: bool,
    /// How many agents of Claude Code's own it may start in all its attempts together; `None`: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_agents: Option<u32>,
    /// How calls that need an approval are handled.
    #[serde(default)]
    pub on_permission: OnPermission,
    /// `PATH` of the shell that created the agent, so that its agents find the same programs under cron.
    pub path: Option<String>,
    /// `CLAUDE_CONFIG_DIR` of the shell that created the agent: Claude Code keeps sessions there.
    pub config_dir: Option<PathBuf>,
    /// Other variables from that shell's environment that its agents see wherever they resume, unless they are set
    /// there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// How many seconds background work may continue after the agent has replied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_grace: Option<u64>,
    /// After how many seconds a question of its agent expires without its own expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions_expire: Option<u64>,
    /// How many unanswered questions its chain may ask within an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions_per_hour: Option<u64>,
    /// How many seconds it may run in all its attempts together, not counting waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// The folder whose files are questions of its agents, if a person has named one. Absolute, with links resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions_dir: Option<PathBuf>,
    /// The worktree created for this agent alone. A child works in it, too, unless it asks for its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The schema that its replies must match; `None`: any text is allowed. A child does not inherit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "serde_json::Value"))]
    pub schema: Option<ReplySchema>,
}

/// How a call that needs an approval is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum OnPermission {
    /// It is denied, as by plain `claude -p`.
    #[default]
    Deny,
    /// A person is asked, and the agent pauses until there is an answer.
    Ask,
}

impl Launch {
    /// The same options for a frame that has not begun, with Claude Code's own tool for questions where it is useful.
    pub(crate) fn with_native_questions(self) -> Self {
        let native_questions = !self.no_hooks && !self.args.has(PROMPT_TOOL);
        Self { native_questions, ..self }
    }

    /// The same options for a fork of a conversation that was held with or without that tool: a fork with other tools would
    /// miss the prompt cache. Asking about approvals needs the tool in any case.
    pub(crate) fn forking(self, native_questions: bool) -> Self {
        let keeps = native_questions || self.on_permission == OnPermission::Ask;
        Self { native_questions: self.native_questions && keeps, ..self }
    }

    /// The same options in another permission mode. A switch that overrides every mode is replaced by one that grants
    /// the same rights within that mode.
    pub(crate) fn in_mode(self, mode: &str) -> Self {
        let args = if self.is_unrestricted() && mode != permission_mode::UNRESTRICTED {
            self.args.without(SKIP_PERMISSIONS).and(&ClaudeArgs::switch(MAY_SKIP_PERMISSIONS))
        } else {
            self.args
        };
        Self { permission_mode: Some(mode.to_owned()), args, ..self }
    }

    /// Whether this frame's agent may do everything, so that nothing can be wider.
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.permission_mode.as_deref() == Some(permission_mode::UNRESTRICTED) || self.args.has(SKIP_PERMISSIONS)
    }

    /// Whether an agent in `mode` may do no more than this frame's agent.
    pub(crate) fn covers(&self, mode: &str) -> bool {
        self.is_unrestricted()
            || permission_mode::covers(self.permission_mode.as_deref().unwrap_or(permission_mode::DEFAULT), mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> ClaudeArgs {
        ClaudeArgs::from_recorded(words)
    }

    fn launch_with(words: &[&str]) -> Launch {
        Launch { args: args(words), ..Launch::default() }
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
    fn a_frame_has_native_questions_unless_somebody_else_would_get_them() {
        let launch = |no_hooks, words: &[&str]| {
            Launch { no_hooks, args: args(words), ..Launch::default() }.with_native_questions().native_questions
        };
        assert!(launch(false, &["--effort=low"]));
        assert!(!launch(true, &[]));
        assert!(!launch(false, &["--permission-prompt-tool=mcp__me__decide"]));
        let free = launch_with(&["--dangerously-skip-permissions"]);
        let free = free.with_native_questions();
        assert!(free.clone().forking(true).native_questions && !free.clone().forking(false).native_questions);
        assert!(Launch { on_permission: OnPermission::Ask, ..free }.forking(false).native_questions);
    }

    #[test]
    fn a_value_is_never_taken_for_an_option() {
        assert!(!launch_with(&["--append-system-prompt=--dangerously-skip-permissions"]).is_unrestricted());
        assert!(launch_with(&["--dangerously-skip-permissions"]).is_unrestricted());
        let asks = launch_with(&["--append-system-prompt=--permission-prompt-tool"]).with_native_questions();
        assert!(asks.native_questions);
    }
}
