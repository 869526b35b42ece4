//! The options of Claude Code in all releases that were examined (2.1.197 to 2.1.330), including hidden ones, and whether the
//! next word is their value.
//!
//! An option that is missing here works if its value is joined to it: `--option=value`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Nothing: it is a switch.
    Nothing,
    /// One value, whatever the word looks like.
    Value,
    /// A value, unless the next word is an option.
    Optional,
    /// All following words, up to the next option.
    Several,
}

impl Takes {
    /// Whether the next word is a value of this option.
    pub(crate) fn takes_next(self, next: Option<&str>) -> bool {
        match self {
            Self::Nothing => false,
            Self::Value | Self::Several => next.is_some(),
            Self::Optional => next.is_some_and(|next| !next.starts_with('-')),
        }
    }
}

const SWITCHES: &[&str] = &[
    "--allow-dangerously-skip-permissions", "--allow-other-models", "--ax-screen-reader", "--bare", "--brief",
    "--chrome", "--dangerously-skip-permissions", "--debug-to-stderr", "--disable-slash-commands",
    "--enable-auth-status", "--enable-auto-mode", "--exclude-dynamic-system-prompt-sections",
    "--forward-subagent-text", "--host-auth-is-org-sign-in", "--ide", "--include-hook-events",
    "--include-partial-messages", "--include-unsupported-models", "--init", "--maintenance", "--no-chrome",
    "--plan-mode-required", "--replay-user-messages", "--restricted", "--safe-mode", "--session-mirror",
    "--strict-mcp-config", "--verbose",
];

const WITH_VALUE: &[&str] = &[
    "--advisor", "--agent", "--agent-color", "--agent-id", "--agent-name", "--agent-type", "--agents",
    "--append-subagent-system-prompt", "--append-subagent-system-prompt-file", "--append-system-prompt",
    "--append-system-prompt-file", "--autocompact", "--client-data-url", "--correlation-id", "--debug-file",
    "--effort", "--environment", "--fallback-model", "--fast-mode", "--forward-home-settings",
    "--inherit-permission-mode", "--json-schema", "--managed-settings", "--max-budget-usd", "--max-thinking-tokens",
    "--max-turns", "--messaging-socket-path", "--metadata", "--name", "--parent-session-id",
    "--permission-prompt-tool", "--permission-prompts", "--plan-mode-instructions", "--plugin-dir",
    "--plugin-dir-no-mcp", "--plugin-url", "--pool", "--proactivity", "--project-config-root",
    "--remote-control-session-name-prefix", "--setting-sources", "--settings", "--system-prompt",
    "--system-prompt-file", "--system-prompt-snapshot", "--task-budget", "--team-name", "--teammate-mode",
    "--thinking", "--thinking-display", "--workload",
];

const WITH_OPTIONAL: &[&str] = &["--debug", "--prompt-suggestions"];

const WITH_SEVERAL: &[&str] = &[
    "--add-dir", "--allowedTools", "--betas", "--channels", "--dangerously-load-development-channels",
    "--disallowedTools", "--file", "--mcp-config", "--tools",
];

/// Options that control sessions, input and output, or turn `claude` into something other than one headless turn. agent-cli sets
/// these itself.
const RESERVED: &[&str] = &[
    "--agents-view-if-allowed", "--attach-serve", "--await-claim", "--await-initialize", "--background", "--bg",
    "--cloud", "--continue", "--desktop", "--fork-session", "--from-pr", "--help", "--init-only", "--input-format",
    "--no-session-persistence", "--output-format", "--prefill", "--prefill-b64", "--print", "--rc", "--remote",
    "--remote-control", "--reply-on-resume", "--resume", "--resume-drops-turn", "--resume-session-at",
    "--rewind-files", "--sdk-url", "--session-began-as-copy", "--session-id", "--teleport", "--tmux", "--version",
];

/// Options that agent-cli has as well, and records.
const OWN: &[&str] = &["--model", "--permission-mode", "--worktree"];

/// Numeric limits. Older releases accept any text here, and then there is no limit.
const NUMBERS: &[&str] = &["--max-budget-usd", "--max-turns"];

/// Short names, and what they stand for.
const SHORT: &[(char, &str)] = &[
    ('c', "--continue"),
    ('d', "--debug"),
    ('h', "--help"),
    ('n', "--name"),
    ('p', "--print"),
    ('r', "--resume"),
    ('v', "--version"),
    ('w', "--worktree"),
];

/// Other spellings of an option.
const ALIASES: &[(&str, &str)] = &[("--allowed-tools", "--allowedTools"), ("--disallowed-tools", "--disallowedTools")];

/// What an option takes. `None`: it is unknown.
pub(crate) fn takes(name: &str) -> Option<Takes> {
    let lists = [
        (SWITCHES, Takes::Nothing),
        (WITH_VALUE, Takes::Value),
        (WITH_OPTIONAL, Takes::Optional),
        (WITH_SEVERAL, Takes::Several),
    ];
    lists.into_iter().find_map(|(names, takes)| names.contains(&name).then_some(takes))
}

/// Whether agent-cli sets the option itself.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Whether agent-cli has the option, too.
pub(crate) fn is_own(name: &str) -> bool {
    OWN.contains(&name)
}

/// Whether its value is a number.
pub(crate) fn is_number(name: &str) -> bool {
    NUMBERS.contains(&name)
}

/// The canonical name of an option.
pub(crate) fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
}

/// The long name of a short option, with what is joined to it. `None`: it is unknown.
pub(crate) fn split_short(word: &str) -> Option<(&'static str, Option<&str>)> {
    if word == "-d2e" {
        return Some(("--debug-to-stderr", None));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let (_, name) = SHORT.iter().find(|(short, _)| *short == letter)?;
    // The switches among them are reserved, so anything joined to one is a value.
    Some((name, Some(letters.as_str()).filter(|joined| !joined.is_empty())))
}
