//! Which variables of Claude Code its processes inherit.
//!
//! An agent may be started from a shell, from cron or from the tool call of an interactive session, and be continued from another
//! one weeks later. Claude Code reads hundreds of variables. Agents inherit those that say who pays, where the API is and what
//! limits a command, and those that can only take something away from an agent; anything else that a session or a user has set would change how a chain behaves. A list of harmful variables
//! would be out of date with every release. `docs/protocol.md` has the same list; a test compares them.

/// Prefixes of Claude Code's own names. A variable without one belongs to another program and is inherited.
const FAMILIES: [&str; 5] = ["CLAUDE", "ANTHROPIC_", "AI_AGENT", "CCR_", "SELF_HOSTED_RUNNER_"];

/// Claude Code's own names that begin like those of other programs.
const OTHERS: [&str; 3] = ["ENABLE_SESSION_BACKGROUNDING", "ENABLE_SESSION_PERSISTENCE", "MCP_CONNECTION_NONBLOCKING"];

/// What is inherited, by purpose. A trailing `*` matches any ending.
pub(crate) const INHERITED: [(&str, &[&str]); 9] = [
    (
        "login",
        &[
            "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CONFIG_DIR", "ANTHROPIC_FEDERATION_RULE_ID",
            "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_IDENTITY_TOKEN_FILE", "ANTHROPIC_ORGANIZATION_ID",
            "ANTHROPIC_PROFILE", "ANTHROPIC_SCOPE", "ANTHROPIC_SERVICE_ACCOUNT_ID", "ANTHROPIC_WORKSPACE_ID",
            "CLAUDE_CODE_API_KEY_HELPER_TTL_MS", "CLAUDE_CODE_OAUTH_CLIENT_ID", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
            "CLAUDE_CODE_OAUTH_SCOPES", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_SECURESTORAGE_CONFIG_DIR",
        ],
    ),
    (
        "provider",
        &[
            "ANTHROPIC_AWS_*", "ANTHROPIC_BASE_URL", "ANTHROPIC_BEDROCK_*", "ANTHROPIC_BETAS",
            "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_FOUNDRY_*", "ANTHROPIC_GOOGLE_CLOUD_*", "ANTHROPIC_UNIX_SOCKET",
            "ANTHROPIC_VERTEX_*", "CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH",
            "CLAUDE_CODE_SKIP_ANTHROPIC_GOOGLE_CLOUD_AUTH", "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
            "CLAUDE_CODE_SKIP_FOUNDRY_AUTH", "CLAUDE_CODE_SKIP_MANTLE_AUTH", "CLAUDE_CODE_SKIP_VERTEX_AUTH",
            "CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_VERTEX",
        ],
    ),
    (
        "model",
        &[
            "ANTHROPIC_CUSTOM_MODEL_OPTION*", "ANTHROPIC_DEFAULT_*", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL*",
            "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_CODE_DISABLE_1M_CONTEXT",
            "CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS",
            "CLAUDE_CODE_DISABLE_FAST_MODE", "CLAUDE_CODE_DISABLE_THINKING", "CLAUDE_CODE_EFFORT_LEVEL",
            "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_SUBAGENT_MODEL",
        ],
    ),
    (
        "network",
        &[
            "CLAUDE_CODE_CERT_STORE", "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY",
            "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE", "CLAUDE_CODE_CONNECT_TIMEOUT_MS",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_ENABLE_PROXY_AUTH_HELPER",
            "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CODE_PROXY_AUTH_HELPER_TTL_MS", "CLAUDE_CODE_PROXY_RESOLVES_HOSTS",
            "CLAUDE_STREAM_IDLE_TIMEOUT_MS",
        ],
    ),
    ("configuration", &["CLAUDE_CODE_PLUGIN_*", "CLAUDE_CODE_TMPDIR", "CLAUDE_CONFIG_DIR", "CLAUDE_TMPDIR"]),
    (
        "telemetry",
        &[
            "CLAUDE_CODE_ATTRIBUTION_HEADER", "CLAUDE_CODE_ENABLE_TELEMETRY", "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA",
            "CLAUDE_CODE_EXTRA_METADATA", "CLAUDE_CODE_OTEL_*",
        ],
    ),
    (
        "commands",
        &[
            "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "CLAUDE_CODE_BUBBLEWRAP",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_GLOB_*", "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY",
            "CLAUDE_CODE_SHELL", "CLAUDE_CODE_SHELL_PREFIX",
        ],
    ),
    (
        "instructions",
        &[
            "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "CLAUDE_CODE_DISABLE_CLAUDE_MDS", "CLAUDE_CODE_DISABLE_CRON",
        ],
    ),
    (
        "restrictions",
        &[
            "CLAUDE_CODE_DISABLE_ADVISOR_TOOL", "CLAUDE_CODE_DISABLE_ARTIFACT", "CLAUDE_CODE_DISABLE_CLAUDE_API_SKILL",
            "CLAUDE_CODE_DISABLE_CLAUDE_CODE_SKILL", "CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS",
            "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS",
            "CLAUDE_CODE_DISABLE_MODEL_ACCESS_FALLBACK", "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL",
            "CLAUDE_CODE_DISABLE_ORG_MEMORY", "CLAUDE_CODE_DISABLE_WEB_FETCH", "CLAUDE_CODE_DISABLE_WORKFLOWS",
            "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "CLAUDE_CODE_MAX_SUBAGENTS_PER_SESSION",
            "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", "CLAUDE_CODE_MAX_TURNS",
            "CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION", "CLAUDE_CODE_NO_MODEL_FALLBACK",
            "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB",
        ],
    ),
];

/// What every session sets for the programs that it starts. Nobody expects these to be inherited.
const OF_A_SESSION: [&str; 15] = [
    "AI_AGENT", "CLAUDECODE", "CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE", "CLAUDE_PID", "CLAUDE_PROJECT_DIR",
];

/// What agent-cli sets itself.
const SET_ANEW: [&str; 3] =
    ["CLAUDE_CODE_DISABLE_ATTACHMENTS", "CLAUDE_CODE_DISABLE_FILE_MENTIONS", "CLAUDE_CODE_EAGER_FLUSH"];

/// What breaks a chain even if settings set it: calls could not be suspended or resumed, or the process would wait for the end of
/// a usage limit. An empty value switches each off.
pub(crate) const BREAKING: [&str; 4] = [
    "CLAUDE_CODE_DISABLE_DEFERRED_TOOL_RESUME", "CLAUDE_CODE_RETRY_WATCHDOG", "CLAUDE_CODE_SAFE_MODE",
    "CLAUDE_CODE_SIMPLE",
];

/// Whether `claude` processes inherit a variable.
pub(crate) fn is_inherited(name: &str) -> bool {
    !is_its_own(name) || is_listed(name)
}

pub(crate) fn is_its_own(name: &str) -> bool {
    FAMILIES.iter().any(|family| name.starts_with(family)) || OTHERS.contains(&name)
}

pub(crate) fn is_listed(name: &str) -> bool {
    let matches = |known: &str| known.strip_suffix('*').map_or(name == known, |start| name.starts_with(start));
    INHERITED.iter().any(|(_, names)| names.iter().any(|known| matches(known)))
}

/// Those of these variables that somebody set on purpose and that are not inherited.
pub(crate) fn dropped_on_purpose<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let expected = |name: &&str| OF_A_SESSION.contains(name) || SET_ANEW.contains(name);
    names.into_iter().filter(|name| !is_inherited(name) && !expected(name)).collect()
}

/// The variables of this process that `claude` processes do not inherit.
pub(crate) fn not_inherited() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| !is_inherited(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_claude_codes_is_inherited() {
        for name in
            ["PATH", "HOME", "AWS_REGION", "GITHUB_TOKEN", "HTTPS_PROXY", "DISABLE_SPRING", "MCP_TOKEN", "OTEL_X"]
        {
            assert!(is_inherited(name), "{name}");
        }
        for name in ["BASH_MAX_TIMEOUT_MS", "MCP_TIMEOUT", "DISABLE_TELEMETRY", "MAX_THINKING_TOKENS", "IS_SANDBOX"] {
            assert!(is_inherited(name), "{name}");
        }
    }

    #[test]
    fn of_claude_codes_own_those_of_the_list_are() {
        for name in
            ["ANTHROPIC_API_KEY", "ANTHROPIC_DEFAULT_OPUS_MODEL", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK"]
        {
            assert!(is_inherited(name), "{name}");
        }
        // Some that disable something disable a check.
        for name in ["CLAUDE_CODE_DISABLE_REDIRECT_DENY_RECHECK", "CLAUDE_CODE_DISABLE_MOUNTED_DRIVE_RM_PROMPT"] {
            assert!(!is_inherited(name), "{name}");
        }
        for name in [
            "CLAUDECODE", "CLAUDE_CODE_DISABLE_DEFERRED_TOOL_RESUME", "CLAUDE_CODE_RETRY_WATCHDOG",
            "CLAUDE_CODE_RETRY_WATCHDOG_MAX_WAIT_MS", "CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_SIMPLE",
            "CLAUDE_CODE_OF_NEXT_YEAR", "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", "MCP_CONNECTION_NONBLOCKING",
        ] {
            assert!(!is_inherited(name), "{name}");
        }
    }

    #[test]
    fn what_a_session_sets_is_dropped_and_not_named() {
        let names = OF_A_SESSION.into_iter().chain(SET_ANEW);
        assert!(names.clone().all(|name| !is_inherited(name)));
        assert_eq!(dropped_on_purpose(names.chain(["CLAUDE_CODE_SIMPLE", "PATH"])), ["CLAUDE_CODE_SIMPLE"]);
    }

    #[test]
    fn the_documented_list_is_this_one() {
        let protocol = include_str!("../../../docs/protocol.md");
        let table = protocol.split("| inherited for | variables |\n| --- | --- |\n").nth(1).unwrap();
        let rows: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).collect();
        let row = |(what, names): &(&str, &[&str])| {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("| {what} | {} |", names.join(", "))
        };
        assert_eq!(rows, INHERITED.iter().map(row).collect::<Vec<_>>());
    }
}
