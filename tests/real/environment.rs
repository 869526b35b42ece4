//! Variables that break a chain, wherever they are set.

use serde_json::json;

use crate::chain::{Chain, Said};
use crate::support::extent::some_of;
use crate::support::{Conversation, MessagesApi, Turn, on_every_version, on_every_version_of_a_whole_run};

on_every_version!(
    a_chain_pauses_and_goes_on_whatever_variables_of_claude_code_are_set,
    an_api_that_is_not_available_is_not_waited_for_inside_of_claude,
    a_chain_that_cron_resumes_has_the_environment_that_it_was_started_with,
);

on_every_version_of_a_whole_run!(a_chain_pauses_and_goes_on_whatever_settings_set,);

const BREAKING: [(&str, &str); 4] = [
    ("CLAUDE_CODE_DISABLE_DEFERRED_TOOL_RESUME", "1"),
    ("CLAUDE_CODE_RETRY_WATCHDOG", "1"),
    ("CLAUDE_CODE_SAFE_MODE", "1"),
    ("CLAUDE_CODE_SIMPLE", "1"),
];

fn asking(version: &str) -> Chain {
    let model = |said: &Conversation| match said.last_result() {
        None => Turn::bash("agent-cli ask 'When?'"),
        Some(result) => Turn::text(format!("it is {result}")),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Ask when.");
    chain
}

fn run(chain: &Chain, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let said = Said::from(chain.command().envs(variables.iter().copied()).args(arguments).output().unwrap());
    assert_eq!(said.code, Some(0), "{variables:?}, {arguments:?}: {said:?}");
    said.out
}

fn pauses_and_goes_on(chain: &Chain, variables: &[(&str, &str)]) {
    assert!(run(chain, variables, &["spawn", "ins.md"]).starts_with("SGN_PEND_STARTED ("), "{variables:?}");
    chain.answer("Jan 1st");
    assert_eq!(run(chain, variables, &["resume", &chain.only_root()]), "it is Jan 1st\n", "{variables:?}");
    assert_eq!(chain.api.count(), 2, "{variables:?}: it asks, and goes on");
}

fn a_chain_pauses_and_goes_on_whatever_variables_of_claude_code_are_set(version: &str) {
    for variable in some_of(BREAKING, 2) {
        pauses_and_goes_on(&asking(version), &[variable]);
    }
}

fn a_chain_pauses_and_goes_on_whatever_settings_set(version: &str) {
    let chain = asking(version);
    let folder = chain.home.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    let variables: serde_json::Map<_, _> =
        BREAKING.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    std::fs::write(folder.join("settings.json"), json!({"env": variables}).to_string()).unwrap();
    pauses_and_goes_on(&chain, &[]);
}

fn an_api_that_is_not_available_is_not_waited_for_inside_of_claude(version: &str) {
    let overloaded = |_: &Conversation| Turn::error(529, "overloaded_error", "Overloaded");
    let chain = Chain::with_model(version, MessagesApi::start(overloaded));
    chain.home.write("ins.md", "Say hello.");
    let variables = [("CLAUDE_CODE_RETRY_WATCHDOG", "1"), ("CLAUDE_CODE_MAX_RETRIES", "0")];
    assert!(run(&chain, &variables, &["spawn", "ins.md"]).starts_with("SGN_PEND_STARTED ("));
}

/// The environment of a command of an agent, without values that differ between processes.
fn seen(result: &str) -> Vec<String> {
    // Of the process; and who drives it.
    const OWN: [&str; 13] = [
        "AGENT_CLI_ATTEMPT", "AGENT_CLI_CLAUDE", "ANTHROPIC_API_KEY", "CLAUDE_CODE_CHILD_NOTES_DIR",
        "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SESSION_ID", "CLAUDE_EFFORT", "CLAUDE_PID", "LOGNAME", "SHLVL", "_",
    ];
    let of_others = |line: &&str| !line.split_once('=').is_some_and(|(name, _)| OWN.contains(&name));
    result.lines().filter(of_others).map(str::to_owned).collect()
}

/// Cron knows nothing but the user, and the key that its crontab has.
fn a_chain_that_cron_resumes_has_the_environment_that_it_was_started_with(version: &str) {
    let model = |said: &Conversation| match said.results().count() {
        0 | 2 => Turn::bash("env | sort"),
        1 => Turn::bash("agent-cli ask 'When?'"),
        _ => Turn::text("over"),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Ask when.");
    let shell = [
        ("LANG", "C.UTF-8"),
        ("TZ", "Asia/Tokyo"),
        ("VIRTUAL_ENV", "/venv"),
        ("SHELL", "/bin/bash"),
        ("MAX_THINKING_TOKENS", "2000"),
        ("BASH_DEFAULT_TIMEOUT_MS", "50000"),
        ("ANTHROPIC_MODEL", "claude-sonnet-4-5"),
    ];
    assert!(run(&chain, &shell, &["spawn", "ins.md", "--permission-mode", "bypassPermissions"]).starts_with("SGN_"));
    chain.answer("Jan 1st");
    let mut cron = std::process::Command::new(env!("CARGO_BIN_EXE_agent-cli"));
    cron.env_clear().env("HOME", chain.home.home()).env("PATH", "/usr/bin:/bin").env("SHELL", "/bin/sh");
    cron.env("AGENT_CLI_STATE_DIR", chain.state()).env("ANTHROPIC_API_KEY", "dummy").env("IS_SANDBOX", "1");
    let said = Said::from(cron.args(["resume", &chain.only_root()]).current_dir("/").output().unwrap());
    assert_eq!(said.out, "over\n", "{said:?}");

    let last = chain.api.requests().pop().unwrap();
    let conversation = last.conversation();
    let results = conversation.result_texts();
    assert_eq!(seen(results[2]), seen(results[0]));
    for (name, value) in shell {
        assert!(results[2].lines().any(|line| line == format!("{name}={value}")), "{name}: {}", results[2]);
    }
    let models: Vec<_> = chain.api.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert!(models.iter().all(|model| *model == models[0]), "{models:?}");
}
