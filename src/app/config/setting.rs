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

pub(crate) const CLAUDE: Setting = Setting {
    key: "claude",
    kind: Kind::Path,
    default: None,
    variable: Some("AGENT_CLI_CLAUDE"),
    in_project: InProject::Trusted,
    help: "the claude program of new chains",
};

pub(crate) const STATE_DIR: Setting = Setting {
    key: "state-dir",
    kind: Kind::Path,
    default: None,
    variable: Some("AGENT_CLI_STATE_DIR"),
    in_project: InProject::Never,
    help: "where chains are kept",
};

pub(crate) const STORE: Setting = Setting {
    key: "store",
    kind: Kind::Text,
    default: None,
    variable: Some("AGENT_CLI_STORE"),
    in_project: InProject::Never,
    help: "the PostgreSQL server that records the chains, instead of a file",
};

pub(crate) const LABELS: Setting = Setting {
    key: "labels",
    kind: Kind::Words,
    default: None,
    variable: None,
    in_project: InProject::Never,
    help: "the labels of this host, for spawn --on",
};

pub(crate) const SHARED_DIRECTORIES: Setting = Setting {
    key: "shared-directories",
    kind: Kind::Words,
    default: None,
    variable: None,
    in_project: InProject::Never,
    help: "the directories that are the same on all hosts of a server",
};

pub(crate) const LEASE: Setting = Setting {
    key: "lease",
    kind: Kind::RunningTime,
    default: Some("60s"),
    variable: None,
    in_project: InProject::Never,
    help: "how long the lease of this host lasts; when it has ended, others may take its chains",
};

pub(crate) const COLOR: Setting = Setting {
    key: "color",
    kind: Kind::OneOf(&["auto", "always", "never"]),
    default: Some("auto"),
    variable: None,
    in_project: InProject::Always,
    help: "when to use colours",
};

pub(crate) const LOG: Setting = Setting {
    key: "log",
    kind: Kind::Text,
    default: None,
    variable: Some("AGENT_CLI_LOG"),
    in_project: InProject::Always,
    help: "the filter of the log",
};

pub(crate) const TRACES: Setting = Setting {
    key: "traces",
    kind: Kind::Text,
    default: None,
    variable: Some("AGENT_CLI_TRACES"),
    in_project: InProject::Never,
    help: "the OpenTelemetry collector that gets a span for each attempt",
};

pub(crate) const STOP_GRACE: Setting = Setting {
    key: "stop-grace",
    kind: Kind::Duration,
    default: Some("60s"),
    variable: Some("AGENT_CLI_STOP_GRACE"),
    in_project: InProject::AtMost,
    help: "how long the tool of a stopped agent may take to finish",
};

pub(crate) const LINGER: Setting = Setting {
    key: "linger",
    kind: Kind::Duration,
    default: Some("20s"),
    variable: Some("AGENT_CLI_LINGER"),
    in_project: InProject::AtMost,
    help: "how long an agent stays in a call whose result is expected soon",
};

pub(crate) const MAX_PARALLEL_TOTAL: Setting = Setting {
    key: "max-parallel-total",
    kind: Kind::Count,
    default: Some("4"),
    variable: None,
    in_project: InProject::AtMost,
    help: "how many agents resume --all and watch run at once",
};

pub(crate) const MODEL: Setting = Setting {
    key: "spawn.model",
    kind: Kind::Text,
    default: None,
    variable: None,
    in_project: InProject::Always,
    help: "the model",
};

pub(crate) const PERMISSION_MODE: Setting = Setting {
    key: "spawn.permission-mode",
    kind: Kind::Text,
    default: None,
    variable: Some("AGENT_CLI_PERMISSION_MODE"),
    in_project: InProject::NarrowerMode,
    help: "the permission mode",
};

pub(crate) const ON_PERMISSION: Setting = Setting {
    key: "spawn.on-permission",
    kind: Kind::OneOf(&["deny", "ask"]),
    default: Some("deny"),
    variable: None,
    in_project: InProject::Only("deny"),
    help: "what happens when a call needs an approval",
};

pub(crate) const TIMEOUT: Setting = Setting {
    key: "spawn.timeout",
    kind: Kind::RunningTime,
    default: None,
    variable: None,
    in_project: InProject::AtMost,
    help: "how long an agent may run in all",
};

pub(crate) const WORKTREE: Setting = Setting {
    key: "spawn.worktree",
    kind: Kind::Switch,
    default: Some("false"),
    variable: None,
    in_project: InProject::Only("true"),
    help: "whether each agent gets its own git worktree",
};

pub(crate) const QUESTIONS_DIR: Setting = Setting {
    key: "spawn.questions-dir",
    kind: Kind::Path,
    default: None,
    variable: None,
    in_project: InProject::Trusted,
    help: "the folder whose files are questions",
};

pub(crate) const NO_HOOKS: Setting = Setting {
    key: "spawn.no-hooks",
    kind: Kind::Switch,
    default: Some("false"),
    variable: None,
    in_project: InProject::Trusted,
    help: "whether agents pause by signals instead of inside calls",
};

pub(crate) const NO_STALE_CHECK: Setting = Setting {
    key: "spawn.no-stale-check",
    kind: Kind::Switch,
    default: Some("false"),
    variable: None,
    in_project: InProject::Trusted,
    help: "whether agents are not told which files changed",
};

pub(crate) const CLAUDE_ARGS: Setting = Setting {
    key: "spawn.claude-args",
    kind: Kind::Words,
    default: None,
    variable: None,
    in_project: InProject::Trusted,
    help: "arguments for claude, as after --",
};

pub(crate) const BACKGROUND_GRACE: Setting = Setting {
    key: "spawn.background-grace",
    kind: Kind::Duration,
    default: Some("10m"),
    variable: Some("AGENT_CLI_BACKGROUND_GRACE"),
    in_project: InProject::AtMost,
    help: "how long background work may continue after a reply",
};

pub(crate) const QUESTIONS_EXPIRE: Setting = Setting {
    key: "spawn.questions-expire",
    kind: Kind::Duration,
    default: None,
    variable: Some("AGENT_CLI_QUESTIONS_EXPIRE"),
    in_project: InProject::AtMost,
    help: "after how long a question expires",
};

pub(crate) const QUESTIONS_PER_HOUR: Setting = Setting {
    key: "spawn.questions-per-hour",
    kind: Kind::Count,
    default: Some("200"),
    variable: Some("AGENT_CLI_QUESTIONS_PER_HOUR"),
    in_project: InProject::AtMost,
    help: "how many unanswered questions a chain may ask within an hour",
};

pub(crate) const MAX_DEPTH: Setting = Setting {
    key: "limits.max-depth",
    kind: Kind::Count,
    default: Some("64"),
    variable: None,
    in_project: InProject::AtMost,
    help: "how deep agents may be nested",
};

pub(crate) const MAX_AGENTS: Setting = Setting {
    key: "limits.max-agents",
    kind: Kind::Count,
    default: Some("256"),
    variable: None,
    in_project: InProject::AtMost,
    help: "how many agents a chain may have",
};

pub(crate) const MAX_PARALLEL: Setting = Setting {
    key: "limits.max-parallel",
    kind: Kind::Count,
    default: Some("4"),
    variable: None,
    in_project: InProject::AtMost,
    help: "how many agents of a chain may run at the same time",
};

pub(crate) const MAX_BUDGET_USD: Setting = Setting {
    key: "limits.max-budget-usd",
    kind: Kind::Dollars,
    default: None,
    variable: None,
    in_project: InProject::AtMost,
    help: "what a chain may spend, in US dollars",
};

pub(crate) const WARN_ABOVE_USD: Setting = Setting {
    key: "warn-above-usd",
    kind: Kind::Dollars,
    default: Some("1"),
    variable: None,
    in_project: InProject::AtMost,
    help: "above which cost resume warns that a conversation is no longer cached",
};

pub(crate) const PRICES: Setting = Setting {
    key: "prices",
    kind: Kind::Prices,
    default: None,
    variable: None,
    in_project: InProject::Trusted,
    help: "what models cost, in US dollars for a million tokens",
};

pub(crate) const STALL_AFTER: Setting = Setting {
    key: "limits.stall-after",
    kind: Kind::Duration,
    default: Some("10m"),
    variable: None,
    in_project: InProject::Always,
    help: "after how long a silent agent is shown as stalled",
};

pub(crate) const ON_TIMEOUT: Setting = Setting {
    key: "on.timeout",
    kind: Kind::RunningTime,
    default: Some("30s"),
    variable: None,
    in_project: InProject::Never,
    help: "how long a command of [on] may take",
};

/// Defines the setting for an event's command.
const fn command(key: &'static str, help: &'static str) -> Setting {
    Setting { key, kind: Kind::Command, default: None, variable: None, in_project: InProject::Never, help }
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
    MAX_BUDGET_USD,
    STALL_AFTER,
    command("on.question", "run when an agent asks a question"),
    command("on.approval", "run when a call or a plan needs an approval"),
    command("on.done", "run when a chain is done"),
    command("on.failed", "run when a chain failed"),
    command("on.limit", "run when an agent met a usage limit"),
    command("on.stalled", "run when a running agent has been silent for long"),
    command("on.budget", "run when a chain has spent its budget"),
    ON_TIMEOUT,
];

impl Setting {
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
