//! The list of settings.

use crate::app::config::value::{Kind, SettingValue};

/// A setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The key, with its table: `spawn.model`.
    pub key: &'static str,
    pub kind: Kind,
    /// The value if the setting is not set.
    pub default: Option<&'static str>,
    /// The environment variable that sets it.
    pub variable: Option<&'static str>,
    pub in_project: InProject,
    /// A short description.
    pub help: &'static str,
}

/// When an untrusted project file's value takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InProject {
    /// Always: it grants no rights and raises no limit.
    Always,
    /// If it is at most the value of the layers below.
    AtMost,
    /// If it is a permission mode that allows no more.
    NarrowerMode,
    /// If it is this value.
    Only(&'static str),
    /// Never: it names a command to run, or affects what agents may do.
    Trusted,
    /// Never, even if the user trusts the file: it affects all chains of the user.
    Never,
}

pub(crate) const CLAUDE: Setting =
    Setting::new("claude", Kind::Path, InProject::Trusted, "the claude program of new chains")
        .variable("AGENT_CLI_CLAUDE");

pub(crate) const STATE_DIR: Setting =
    Setting::new("state-dir", Kind::Path, InProject::Never, "where chains are kept").variable("AGENT_CLI_STATE_DIR");

pub(crate) const STORE: Setting = Setting::new(
    "store",
    Kind::Text,
    InProject::Never,
    "the PostgreSQL server that records the chains, instead of a file",
)
.variable("AGENT_CLI_STORE");

pub(crate) const LABELS: Setting =
    Setting::new("labels", Kind::Labels, InProject::Never, "the labels of this host, for spawn --on");

pub(crate) const SHARED_DIRECTORIES: Setting = Setting::new(
    "shared-directories",
    Kind::Directories,
    InProject::Never,
    "the directories that are the same on all hosts of a server",
);

pub(crate) const LEASE: Setting = Setting::new(
    "lease",
    Kind::RunningTime,
    InProject::Never,
    "how long the lease of this host lasts; when it has ended, others may take its chains",
)
.or("60s");

pub(crate) const COLOR: Setting =
    Setting::new("color", Kind::OneOf(&["auto", "always", "never"]), InProject::Always, "when to use colours")
        .or("auto");

pub(crate) const LOG: Setting =
    Setting::new("log", Kind::Text, InProject::Always, "the filter of the log").variable("AGENT_CLI_LOG");

pub(crate) const TRACES: Setting = Setting::new(
    "traces",
    Kind::Text,
    InProject::Never,
    "the OpenTelemetry collector that gets a span for each attempt",
)
.variable("AGENT_CLI_TRACES");

pub(crate) const STOP_GRACE: Setting = Setting::new(
    "stop-grace",
    Kind::Duration,
    InProject::AtMost,
    "how long the tool of a stopped agent may take to finish",
)
.or("60s")
.variable("AGENT_CLI_STOP_GRACE");

pub(crate) const LINGER: Setting = Setting::new(
    "linger",
    Kind::Duration,
    InProject::AtMost,
    "how long an agent stays in a call whose result is expected soon",
)
.or("20s")
.variable("AGENT_CLI_LINGER");

pub(crate) const MAX_PARALLEL_TOTAL: Setting = Setting::new(
    "max-parallel-total",
    Kind::Count,
    InProject::AtMost,
    "how many agents resume --all and watch run at once",
)
.or("4");

pub(crate) const MODEL: Setting = Setting::new("spawn.model", Kind::Text, InProject::Always, "the model");

pub(crate) const PERMISSION_MODE: Setting =
    Setting::new("spawn.permission-mode", Kind::Text, InProject::NarrowerMode, "the permission mode")
        .variable("AGENT_CLI_PERMISSION_MODE");

pub(crate) const ON_PERMISSION: Setting = Setting::new(
    "spawn.on-permission",
    Kind::OneOf(&["deny", "ask"]),
    InProject::Only("deny"),
    "what happens when a call needs an approval",
)
.or("deny");

pub(crate) const TIMEOUT: Setting =
    Setting::new("spawn.timeout", Kind::RunningTime, InProject::AtMost, "how long an agent may run in all");

pub(crate) const WORKTREE: Setting = Setting::new(
    "spawn.worktree",
    Kind::Switch,
    InProject::Only("true"),
    "whether each agent gets its own git worktree",
)
.or("false");

pub(crate) const REMOTE: Setting =
    Setting::new("spawn.remote", Kind::Text, InProject::Trusted, "the git remote to which worktrees are pushed");

pub(crate) const QUESTIONS_DIR: Setting =
    Setting::new("spawn.questions-dir", Kind::Path, InProject::Trusted, "the folder whose files are questions");

pub(crate) const NO_HOOKS: Setting = Setting::new(
    "spawn.no-hooks",
    Kind::Switch,
    InProject::Trusted,
    "whether agents pause by signals instead of inside calls",
)
.or("false");

pub(crate) const NO_STALE_CHECK: Setting = Setting::new(
    "spawn.no-stale-check",
    Kind::Switch,
    InProject::Trusted,
    "whether agents are not told which files changed",
)
.or("false");

pub(crate) const CLAUDE_ARGS: Setting =
    Setting::new("spawn.claude-args", Kind::Words, InProject::Trusted, "arguments for claude, as after --");

pub(crate) const BACKGROUND_GRACE: Setting = Setting::new(
    "spawn.background-grace",
    Kind::Duration,
    InProject::AtMost,
    "how long background work may continue after a reply",
)
.or("10m")
.variable("AGENT_CLI_BACKGROUND_GRACE");

pub(crate) const QUESTIONS_EXPIRE: Setting =
    Setting::new("spawn.questions-expire", Kind::Duration, InProject::AtMost, "after how long a question expires")
        .variable("AGENT_CLI_QUESTIONS_EXPIRE");

pub(crate) const QUESTIONS_PER_HOUR: Setting = Setting::new(
    "spawn.questions-per-hour",
    Kind::Count,
    InProject::AtMost,
    "how many unanswered questions a chain may ask within an hour",
)
.or("200")
.variable("AGENT_CLI_QUESTIONS_PER_HOUR");

pub(crate) const MAX_DEPTH: Setting =
    Setting::new("limits.max-depth", Kind::Count, InProject::AtMost, "how deep agents may be nested").or("64");

pub(crate) const MAX_AGENTS: Setting =
    Setting::new("limits.max-agents", Kind::Count, InProject::AtMost, "how many agents a chain may have").or("256");

pub(crate) const MAX_PARALLEL: Setting = Setting::new(
    "limits.max-parallel",
    Kind::Count,
    InProject::AtMost,
    "how many agents of a chain may run at the same time",
)
.or("4");

pub(crate) const NATIVE_AGENTS: Setting = Setting::new(
    "limits.native-agents",
    Kind::CountOrOff,
    InProject::AtMost,
    "how many of Claude Code's own agents each agent may start",
);

pub(crate) const MAX_BUDGET_USD: Setting =
    Setting::new("limits.max-budget-usd", Kind::Dollars, InProject::AtMost, "what a chain may spend, in US dollars");

pub(crate) const WARN_ABOVE_USD: Setting = Setting::new(
    "warn-above-usd",
    Kind::Dollars,
    InProject::AtMost,
    "above which cost resume warns that a conversation is no longer cached",
)
.or("1");

pub(crate) const PRICES: Setting =
    Setting::new("prices", Kind::Prices, InProject::Trusted, "what models cost, in US dollars for a million tokens");

pub(crate) const STALL_AFTER: Setting = Setting::new(
    "limits.stall-after",
    Kind::Duration,
    InProject::Always,
    "after how long a silent agent is shown as stalled",
)
.or("10m");

pub(crate) const ON_TIMEOUT: Setting =
    Setting::new("on.timeout", Kind::RunningTime, InProject::Never, "how long a command of [on] may take").or("30s");

/// Defines the setting for an event's command.
const fn command(key: &'static str, help: &'static str) -> Setting {
    Setting::new(key, Kind::Command, InProject::Never, help)
}

/// All settings, in the order in which they are listed.
pub(crate) const SETTINGS: &[Setting] = &[
    CLAUDE,
    STATE_DIR,
    STORE,
    LABELS,
    SHARED_DIRECTORIES,
    LEASE,
    COLOR,
    LOG,
    TRACES,
    STOP_GRACE,
    LINGER,
    MAX_PARALLEL_TOTAL,
    WARN_ABOVE_USD,
    PRICES,
    MODEL,
    PERMISSION_MODE,
    ON_PERMISSION,
    TIMEOUT,
    WORKTREE,
    REMOTE,
    QUESTIONS_DIR,
    NO_HOOKS,
    NO_STALE_CHECK,
    CLAUDE_ARGS,
    BACKGROUND_GRACE,
    QUESTIONS_EXPIRE,
    QUESTIONS_PER_HOUR,
    MAX_DEPTH,
    MAX_AGENTS,
    MAX_PARALLEL,
    NATIVE_AGENTS,
    MAX_BUDGET_USD,
    STALL_AFTER,
    command("on.question", "run when an agent asks a question"),
    command("on.approval", "run when a call or a plan needs an approval"),
    command("on.done", "run when a chain is done"),
    command("on.failed", "run when a chain has failed"),
    command("on.limit", "run when an agent reaches a usage limit"),
    command("on.stalled", "run when a running agent has been silent for long"),
    command("on.budget", "run when a chain has spent its budget"),
    ON_TIMEOUT,
];

impl Setting {
    const fn new(key: &'static str, kind: Kind, in_project: InProject, help: &'static str) -> Self {
        Self { key, kind, default: None, variable: None, in_project, help }
    }

    const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    const fn variable(self, name: &'static str) -> Self {
        Self { variable: Some(name), ..self }
    }

    /// The setting with this key.
    pub(crate) fn named(key: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }

    /// The default as a value.
    pub(crate) fn default_value(&self) -> Option<SettingValue> {
        self.default.and_then(|text| SettingValue::from_text(self.kind, text).ok())
    }

    /// The existing key that is most similar to an unknown key.
    pub(crate) fn similar_to(key: &str) -> Option<&'static str> {
        const ALIKE: f64 = 0.75;
        let last = |key: &'static str| key.rsplit('.').next().unwrap_or(key);
        let likeness =
            |known: &'static str| strsim::jaro_winkler(known, key).max(strsim::jaro_winkler(last(known), key));
        let best = SETTINGS.iter().map(|setting| (likeness(setting.key), setting.key));
        best.filter(|(likeness, _)| *likeness > ALIKE)
            .max_by(|one, other| one.0.total_cmp(&other.0))
            .map(|(_, key)| key)
    }
}

#[cfg(test)]
mod tests;
