//! Which variables the processes of agents inherit, and which a chain records for them.
//!
//! An agent may be started from a shell, from cron or from the tool call of an interactive session, and be continued from
//! another one weeks later. Claude Code reads hundreds of variables. Agents inherit those that determine the account, the API
//! and the limits of a command, and those that can only restrict an agent; any other variable of a session or a user would
//! change how a chain behaves. A list of harmful variables would be out of date with every release.
//!
//! Cron has hardly any variables. The chain therefore records the variables that make its agents and their commands behave as
//! in the shell in which it was started. It records neither variables of the account nor possible secrets, because the state
//! directory is not a safe place for a secret. Local variables, such as a proxy, are taken from the current environment.
//!
//! `docs/protocol.md` has the same lists; a test compares them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::Command;

use crate::claude::environment::variables::{self, Variables};

/// Names of variables. A trailing `*` matches any ending.
type Names = &'static [&'static str];

/// For each purpose: variables of Claude Code that are only inherited, variables of Claude Code that are inherited and
/// recorded, and others that are recorded. Whether the others are inherited depends on another list or the rule for other
/// programs. `PATH` and `CLAUDE_CONFIG_DIR` are recorded separately.
const PURPOSES: [(&str, Names, Names, Names); 11] = [
    (
        "login",
        &[
            "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_IDENTITY_TOKEN",
            "ANTHROPIC_IDENTITY_TOKEN_FILE", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_SCOPE",
            "ANTHROPIC_SERVICE_ACCOUNT_ID", "ANTHROPIC_WORKSPACE_ID", "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
            "CLAUDE_CODE_OAUTH_CLIENT_ID", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN", "CLAUDE_CODE_OAUTH_SCOPES",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        &["ANTHROPIC_CONFIG_DIR", "ANTHROPIC_PROFILE", "CLAUDE_SECURESTORAGE_CONFIG_DIR"],
        &[],
    ),
    (
        "provider",
        &[
            "ANTHROPIC_AWS_*", "ANTHROPIC_BEDROCK_*", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_FOUNDRY_*",
            "ANTHROPIC_GOOGLE_CLOUD_*", "ANTHROPIC_UNIX_SOCKET", "ANTHROPIC_VERTEX_*", "CLAUDE_CODE_EXTRA_BODY",
            "CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH", "CLAUDE_CODE_SKIP_ANTHROPIC_GOOGLE_CLOUD_AUTH",
            "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "CLAUDE_CODE_SKIP_FOUNDRY_AUTH", "CLAUDE_CODE_SKIP_MANTLE_AUTH",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH", "CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
            "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_VERTEX",
        ],
        &["ANTHROPIC_BASE_URL", "ANTHROPIC_BETAS"],
        &[
            "ANTHROPIC_AWS_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
            "ANTHROPIC_BEDROCK_REGION_PREFIX", "ANTHROPIC_BEDROCK_SERVICE_TIER", "ANTHROPIC_FOUNDRY_BASE_URL",
            "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_GOOGLE_CLOUD_BASE_URL", "ANTHROPIC_GOOGLE_CLOUD_LOCATION",
            "ANTHROPIC_GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_BASE_URL", "ANTHROPIC_VERTEX_PROJECT_ID",
            "AWS_CONFIG_FILE", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_REGION", "CLAUDE_CODE_SKIP_*",
            "CLAUDE_CODE_USE_*", "CLOUD_ML_REGION", "GCLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_PROJECT", "VERTEX_REGION_*",
        ],
    ),
    (
        "model",
        &[],
        &[
            "ANTHROPIC_CUSTOM_MODEL_OPTION*", "ANTHROPIC_DEFAULT_*", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL*",
            "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_CODE_DISABLE_1M_CONTEXT",
            "CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS",
            "CLAUDE_CODE_DISABLE_FAST_MODE", "CLAUDE_CODE_DISABLE_THINKING", "CLAUDE_CODE_EFFORT_LEVEL",
            "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_SUBAGENT_MODEL",
        ],
        &[
            "DISABLE_AUTO_COMPACT", "DISABLE_COMPACT", "DISABLE_INTERLEAVED_THINKING", "DISABLE_PROMPT_CACHING*",
            "ENABLE_PROMPT_CACHING_1H", "ENABLE_TOOL_SEARCH", "FORCE_PROMPT_CACHING_5M", "MAX_THINKING_TOKENS",
        ],
    ),
    (
        "network",
        &[
            "CLAUDE_CODE_CERT_STORE", "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY",
            "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE", "CLAUDE_CODE_ENABLE_PROXY_AUTH_HELPER",
            "CLAUDE_CODE_PROXY_AUTH_HELPER_TTL_MS", "CLAUDE_CODE_PROXY_RESOLVES_HOSTS",
        ],
        &[
            "CLAUDE_CODE_CONNECT_TIMEOUT_MS", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_MAX_RETRIES",
            "CLAUDE_STREAM_IDLE_TIMEOUT_MS",
        ],
        &["API_TIMEOUT_MS", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY", "DO_NOT_TRACK"],
    ),
    ("configuration", &["CLAUDE_CONFIG_DIR"], &["CLAUDE_CODE_PLUGIN_*", "CLAUDE_CODE_TMPDIR", "CLAUDE_TMPDIR"], &[]),
    (
        "telemetry",
        &[
            "CLAUDE_CODE_ATTRIBUTION_HEADER", "CLAUDE_CODE_ENABLE_TELEMETRY", "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA",
            "CLAUDE_CODE_EXTRA_METADATA", "CLAUDE_CODE_OTEL_*",
        ],
        &[],
        &[],
    ),
    (
        "commands",
        &[],
        &[
            "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "CLAUDE_CODE_BUBBLEWRAP",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_GLOB_*", "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY",
            "CLAUDE_CODE_SHELL", "CLAUDE_CODE_SHELL_PREFIX",
        ],
        &[
            "BASH_DEFAULT_TIMEOUT_MS", "BASH_ENV", "BASH_MAX_OUTPUT_LENGTH", "BASH_MAX_TIMEOUT_MS",
            "MAX_MCP_OUTPUT_TOKENS", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "SHELL",
        ],
    ),
    (
        "instructions",
        &[],
        &[
            "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "CLAUDE_CODE_DISABLE_CLAUDE_MDS", "CLAUDE_CODE_DISABLE_CRON",
        ],
        &[],
    ),
    (
        "restrictions",
        &[],
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
        &[],
    ),
    ("language and time", &[], &[], &["LANG", "LANGUAGE", "LC_*", "TZ"]),
    (
        "tools",
        &[],
        &[],
        &[
            "CARGO_HOME", "CONDA_DEFAULT_ENV", "CONDA_PREFIX", "GEM_HOME", "GEM_PATH", "GOPATH", "GOROOT", "JAVA_HOME",
            "NODE_PATH", "NVM_DIR", "PYENV_ROOT", "PYENV_VERSION", "PYTHONPATH", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN",
            "VIRTUAL_ENV",
        ],
    ),
];

/// Prefixes of Claude Code's own names. A variable without one belongs to another program and is inherited.
const FAMILIES: [&str; 5] = ["CLAUDE", "ANTHROPIC_", "AI_AGENT", "CCR_", "SELF_HOSTED_RUNNER_"];

/// Claude Code's own names that begin like those of other programs.
const OTHERS: [&str; 3] = ["ENABLE_SESSION_BACKGROUNDING", "ENABLE_SESSION_PERSISTENCE", "MCP_CONNECTION_NONBLOCKING"];

/// Prefixes of cloud variables that are not Claude Code's own.
const OF_CLOUDS: [&str; 6] = ["AWS_", "AZURE_", "CLOUD_ML_", "GCLOUD_", "GOOGLE_", "VERTEX_REGION_"];

/// Network variables that are not Claude Code's own. The names of proxies may be in lower case.
const OF_NETWORK: [&str; 8] = [
    "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "NO_PROXY", "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Variables that every session sets for the programs that it starts. They are not expected to be inherited.
const OF_A_SESSION: [&str; 15] = [
    "AI_AGENT", "CLAUDECODE", "CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE", "CLAUDE_PID", "CLAUDE_PROJECT_DIR",
];

/// Variables that agent-cli sets itself.
const SET_ANEW: [&str; 3] =
    ["CLAUDE_CODE_DISABLE_ATTACHMENTS", "CLAUDE_CODE_DISABLE_FILE_MENTIONS", "CLAUDE_CODE_EAGER_FLUSH"];

/// Variables that break a chain even if settings set them: calls could not be suspended or resumed, no conversation would be written,
/// or the process would wait for the end of a usage limit. An empty value switches each off.
pub(crate) const BREAKING: [&str; 5] = [
    "CLAUDE_CODE_DISABLE_DEFERRED_TOOL_RESUME", "CLAUDE_CODE_RETRY_WATCHDOG", "CLAUDE_CODE_SAFE_MODE",
    "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SKIP_PROMPT_HISTORY",
];

/// Whether `claude` processes inherit a variable.
pub(crate) fn is_inherited(name: &str) -> bool {
    !is_its_own(name) || is_listed(name)
}

pub(crate) fn is_its_own(name: &str) -> bool {
    FAMILIES.iter().any(|family| name.starts_with(family)) || OTHERS.contains(&name)
}

/// Whether a variable of Claude Code's own is inherited.
pub(crate) fn is_listed(name: &str) -> bool {
    listed().any(|known| known.strip_suffix('*').map_or(name == known, |start| name.starts_with(start)))
}

/// The variables of Claude Code that are inherited.
pub(crate) fn listed() -> impl Iterator<Item = &'static str> {
    PURPOSES.iter().flat_map(|(_, inherited, both, _)| inherited.iter().chain(*both)).copied()
}

/// Those of these variables that were set on purpose and are not inherited.
pub(crate) fn dropped_on_purpose<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let expected = |name: &&str| OF_A_SESSION.contains(name) || SET_ANEW.contains(name);
    names.into_iter().filter(|name| !is_inherited(name) && !expected(name)).collect()
}

/// The variables of this process that `claude` processes do not inherit.
pub(crate) fn not_inherited() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| !is_inherited(name)).collect()
}

/// Whether an agent would work differently, or not at all, without this variable. `in_cloud`: whether it logs in to a cloud.
pub(crate) fn matters(name: &str, in_cloud: bool) -> bool {
    let of_cloud = || OF_CLOUDS.iter().any(|family| name.starts_with(family));
    let of_network = || OF_NETWORK.contains(&name.to_uppercase().as_str());
    is_its_own(name) && is_listed(name) || of_network() || in_cloud && of_cloud()
}

/// Words in the names of variables that hold secrets.
const SECRET: [&str; 9] =
    ["AUTH", "CREDENTIAL", "CREDENTIALS", "HEADERS", "KEY", "PASSPHRASE", "PASSWORD", "SECRET", "TOKEN"];

/// Longer values are not recorded.
const MOST_BYTES: usize = 32 * 1024;

/// The values of these variables to record.
pub(crate) fn to_record(variables: &Variables) -> BTreeMap<String, String> {
    let value = |name: &str| variables.value(name)?.to_str().filter(|value| may_be_kept(value)).map(str::to_owned);
    let listed = variables.names().filter(|name| is_recorded(name));
    listed.filter_map(|name| Some((name.to_owned(), value(name)?))).collect()
}

/// The names of recorded variables that matter to Claude Code itself.
pub(crate) fn that_matter(recorded: &BTreeMap<String, String>) -> Vec<&str> {
    recorded.keys().map(String::as_str).filter(|name| matters(name, true)).collect()
}

fn is_recorded(name: &str) -> bool {
    // `CLAUDE_CODE_SKIP_BEDROCK_AUTH` holds no credentials. An exact name was checked when it was added to the list.
    let is_secret = || name.split('_').any(|word| SECRET.contains(&word)) && !name.starts_with("CLAUDE_CODE_SKIP_");
    let matches = |known: &&str| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start) && !is_secret(),
        None => name == *known,
    };
    PURPOSES.iter().flat_map(|(_, _, both, recorded)| both.iter().chain(*recorded)).any(matches)
}

/// Whether a value is certainly not a secret: a URL may contain a password, or a key in its query.
fn may_be_kept(value: &str) -> bool {
    let is_open = |(_, address): (&str, &str)| !address.contains(['@', '?']);
    value.len() <= MOST_BYTES && !value.contains('\0') && value.split_once("://").is_none_or(is_open)
}

/// Sets the recorded variables that are not set now.
pub(crate) fn restore(command: &mut Command, recorded: &BTreeMap<String, String>) {
    for (name, value) in recorded.iter().filter(|(name, _)| !is_set_now(name, std::env::var_os(name).as_deref())) {
        command.env(name, value);
    }
}

/// Whether a variable is set, even to the empty string. What cron sets does not count.
fn is_set_now(name: &str, value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !variables::SET_BY_CRON.iter().any(|(known, set)| *known == name && value == *set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::environment::credentials::{self, CLOUDS, LOGS_IN};

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
        // Some variables named "disable" disable a check.
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
    fn what_matters_is_recorded_and_no_secret_is() {
        let shell = [
            ("ANTHROPIC_API_KEY", "secret"),
            ("ANTHROPIC_BASE_URL", "https://gateway.example/v1"),
            ("ANTHROPIC_CUSTOM_HEADERS", "secret"),
            ("ANTHROPIC_DEFAULT_API_KEY", "secret"),
            ("ANTHROPIC_VERTEX_BASE_URL", "https://ann:secret@example"),
            ("ANTHROPIC_FOUNDRY_BASE_URL", "https://example/?key=secret"),
            ("AWS_PROFILE", "work"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("CLAUDE_CODE_SKIP_BEDROCK_AUTH", "1"),
            ("EDITOR", "vi"),
            ("HTTPS_PROXY", "http://ann:secret@proxy"),
            ("LC_ALL", ""),
            ("LC_TIME", "C"),
            ("MAX_THINKING_TOKENS", "1000"),
            ("VIRTUAL_ENV", "/venv"),
        ];
        let recorded = to_record(&shell.into_iter().collect());
        let names: Vec<_> = recorded.keys().map(String::as_str).collect();
        let expected = [
            "ANTHROPIC_BASE_URL", "AWS_PROFILE", "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "LC_ALL", "LC_TIME",
            "MAX_THINKING_TOKENS", "VIRTUAL_ENV",
        ];
        assert_eq!(names, expected);
        assert!(!format!("{recorded:?}").contains("secret"));
        assert_eq!(to_record(&[("LANG", "x".repeat(MOST_BYTES + 1))].into_iter().collect()), BTreeMap::new());
    }

    #[test]
    fn only_what_agents_inherit_is_recorded() {
        for name in PURPOSES.iter().flat_map(|(.., recorded)| *recorded).map(|name| name.trim_end_matches('*')) {
            let some_are = || listed().any(|known| known.trim_end_matches('*').starts_with(name));
            assert!(is_inherited(name) || some_are(), "{name}");
        }
    }

    #[test]
    fn what_is_set_now_counts_unless_cron_has_set_it() {
        for (name, value, expected) in [
            ("LANG", Some("C"), true),
            ("LANG", Some(""), true),
            ("LANG", None, false),
            ("SHELL", Some("/bin/sh"), false),
            ("SHELL", Some("/bin/zsh"), true),
        ] {
            assert_eq!(is_set_now(name, value.map(OsStr::new)), expected, "{name} {value:?}");
        }
    }

    #[test]
    fn the_documented_lists_are_these() {
        let protocol = include_str!("../../../docs/protocol.md");
        let head = "| purpose | only inherited | inherited and recorded | recorded |\n| --- | --- | --- | --- |\n";
        let table = protocol.split(head).nth(1).unwrap();
        let rows: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).collect();
        let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let row = |(name, inherited, both, recorded): &(&str, Names, Names, Names)| {
            format!("| {name} | {} | {} | {} |", list(inherited), list(both), list(recorded))
                .replace("|  |", "| |")
                .replace("|  |", "| |")
        };
        assert_eq!(rows, PURPOSES.iter().map(row).collect::<Vec<_>>());
    }

    #[test]
    fn what_logs_in_is_inherited() {
        let logins = listed().filter(|name| credentials::logs_in(name));
        let (switches, others): (Vec<&str>, Vec<&str>) = logins.partition(|name| credentials::cloud(name).is_some());
        let all_switches = CLOUDS.iter().flat_map(|cloud| cloud.switches);
        assert_eq!((switches.len(), others.len()), (all_switches.count(), LOGS_IN.len()));
        let credentials = CLOUDS.iter().flat_map(|cloud| cloud.credentials);
        assert!(credentials.clone().all(|name| is_inherited(name) && matters(name, true)));
    }

    #[test]
    fn what_matters_is_claude_codes_the_networks_and_the_clouds() {
        for name in ["ANTHROPIC_BASE_URL", "https_proxy", "NODE_EXTRA_CA_CERTS", "CLAUDE_CODE_SHELL"] {
            assert!(matters(name, false), "{name}");
        }
        for name in ["EDITOR", "CLAUDECODE", "CLAUDE_CODE_SIMPLE", "AWS_REGION"] {
            assert!(!matters(name, false), "{name}");
        }
        assert!(matters("AWS_REGION", true));
    }
}
