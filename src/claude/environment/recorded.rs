//! Which variables a chain records, so that its agents see the same before and after a pause.
//!
//! A chain that was started in a shell may be continued by cron, which has hardly any variables. The chain records whatever makes
//! its agents and their commands behave as they do in that shell. It records neither what says who pays nor anything that could
//! be a secret, because the state directory is no safe place for one. Variables of the place, such as a proxy, are taken from the
//! current environment. `docs/protocol.md` has the same list; a test compares them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::Command;

use crate::claude::environment::credentials;
use crate::claude::environment::variables::{self, Variables};

/// What is recorded, by purpose. A trailing `*` matches any ending. `PATH` and `CLAUDE_CONFIG_DIR` are recorded separately.
pub(crate) const RECORDED: [(&str, &[&str]); 9] = [
    (
        "provider",
        &[
            "ANTHROPIC_AWS_BASE_URL", "ANTHROPIC_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL",
            "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "ANTHROPIC_BEDROCK_REGION_PREFIX", "ANTHROPIC_BEDROCK_SERVICE_TIER",
            "ANTHROPIC_BETAS", "ANTHROPIC_CONFIG_DIR", "ANTHROPIC_FOUNDRY_BASE_URL", "ANTHROPIC_FOUNDRY_RESOURCE",
            "ANTHROPIC_GOOGLE_CLOUD_BASE_URL", "ANTHROPIC_GOOGLE_CLOUD_LOCATION", "ANTHROPIC_GOOGLE_CLOUD_PROJECT",
            "ANTHROPIC_PROFILE", "ANTHROPIC_VERTEX_BASE_URL", "ANTHROPIC_VERTEX_PROJECT_ID", "AWS_CONFIG_FILE",
            "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_REGION", "CLAUDE_CODE_SKIP_*", "CLAUDE_CODE_USE_*",
            "CLAUDE_SECURESTORAGE_CONFIG_DIR", "CLOUD_ML_REGION", "GCLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_PROJECT", "VERTEX_REGION_*",
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
            "DISABLE_AUTO_COMPACT", "DISABLE_COMPACT", "DISABLE_INTERLEAVED_THINKING", "DISABLE_PROMPT_CACHING*",
            "ENABLE_PROMPT_CACHING_1H", "ENABLE_TOOL_SEARCH", "FORCE_PROMPT_CACHING_5M", "MAX_THINKING_TOKENS",
        ],
    ),
    (
        "traffic",
        &[
            "API_TIMEOUT_MS", "CLAUDE_CODE_CONNECT_TIMEOUT_MS", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_STREAM_IDLE_TIMEOUT_MS", "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY", "DO_NOT_TRACK",
        ],
    ),
    ("configuration", &["CLAUDE_CODE_PLUGIN_*", "CLAUDE_CODE_TMPDIR", "CLAUDE_TMPDIR"]),
    (
        "commands",
        &[
            "BASH_DEFAULT_TIMEOUT_MS", "BASH_ENV", "BASH_MAX_OUTPUT_LENGTH", "BASH_MAX_TIMEOUT_MS",
            "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "CLAUDE_CODE_BUBBLEWRAP",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_GLOB_*", "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY",
            "CLAUDE_CODE_SHELL", "CLAUDE_CODE_SHELL_PREFIX", "MAX_MCP_OUTPUT_TOKENS", "MCP_TIMEOUT",
            "MCP_TOOL_TIMEOUT", "SHELL",
        ],
    ),
    (
        "instructions",
        &[
            "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "CLAUDE_CODE_DISABLE_CLAUDE_MDS", "CLAUDE_CODE_DISABLE_CRON",
        ],
    ),
    ("language and time", &["LANG", "LANGUAGE", "LC_*", "TZ"]),
    (
        "tools",
        &[
            "CARGO_HOME", "CONDA_DEFAULT_ENV", "CONDA_PREFIX", "GEM_HOME", "GEM_PATH", "GOPATH", "GOROOT", "JAVA_HOME",
            "NODE_PATH", "NVM_DIR", "PYENV_ROOT", "PYENV_VERSION", "PYTHONPATH", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN",
            "VIRTUAL_ENV",
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

/// Words in the names of variables that hold secrets.
const SECRET: [&str; 9] =
    ["AUTH", "CREDENTIAL", "CREDENTIALS", "HEADERS", "KEY", "PASSPHRASE", "PASSWORD", "SECRET", "TOKEN"];

/// Longer values are not recorded.
const MOST_BYTES: usize = 32 * 1024;

/// The values to record of these variables.
pub(crate) fn of(variables: &Variables) -> BTreeMap<String, String> {
    let value = |name: &str| variables.value(name)?.to_str().filter(|value| may_be_kept(value)).map(str::to_owned);
    let listed = variables.names().filter(|name| is_listed(name));
    listed.filter_map(|name| Some((name.to_owned(), value(name)?))).collect()
}

/// The names of those that matter to Claude Code itself.
pub(crate) fn that_matter(recorded: &BTreeMap<String, String>) -> Vec<&str> {
    recorded.keys().map(String::as_str).filter(|name| credentials::matters(name, true)).collect()
}

fn is_listed(name: &str) -> bool {
    // An exact name was checked when it was added to the list.
    let is_no_secret = || !name.split('_').any(|word| SECRET.contains(&word)) || is_switch(name);
    let matches = |known: &str| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start) && is_no_secret(),
        None => name == known,
    };
    RECORDED.iter().any(|(_, names)| names.iter().any(|known| matches(known)))
}

/// `CLAUDE_CODE_SKIP_BEDROCK_AUTH` holds no credentials.
fn is_switch(name: &str) -> bool {
    name.starts_with("CLAUDE_CODE_SKIP_")
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

/// Whether somebody has set a variable, even to the empty string. What cron sets does not count.
fn is_set_now(name: &str, value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !variables::SET_BY_CRON.iter().any(|(known, set)| *known == name && value == *set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::environment::inherited;

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
        let recorded = of(&shell.into_iter().collect());
        let names: Vec<_> = recorded.keys().map(String::as_str).collect();
        let expected = [
            "ANTHROPIC_BASE_URL", "AWS_PROFILE", "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "LC_ALL", "LC_TIME",
            "MAX_THINKING_TOKENS", "VIRTUAL_ENV",
        ];
        assert_eq!(names, expected);
        assert!(!format!("{recorded:?}").contains("secret"));
        assert_eq!(of(&[("LANG", "x".repeat(MOST_BYTES + 1))].into_iter().collect()), BTreeMap::new());
    }

    #[test]
    fn only_what_agents_inherit_is_recorded() {
        let names = RECORDED.iter().flat_map(|(_, names)| names.iter());
        for name in names.map(|name| name.trim_end_matches('*')) {
            let starts = |known: &&str| known.trim_end_matches('*').starts_with(name);
            let some_are = || inherited::INHERITED.iter().any(|(_, names)| names.iter().any(starts));
            assert!(inherited::is_inherited(name) || some_are(), "{name}");
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
    fn the_documented_list_is_this_one() {
        let protocol = include_str!("../../../docs/protocol.md");
        let table = protocol.split("| recorded for | variables |\n| --- | --- |\n").nth(1).unwrap();
        let rows: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).collect();
        let row = |(what, names): &(&str, &[&str])| {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("| {what} | {} |", names.join(", "))
        };
        assert_eq!(rows, RECORDED.iter().map(row).collect::<Vec<_>>());
    }
}
