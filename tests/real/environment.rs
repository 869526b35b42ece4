//! Variables that break a chain, wherever they are set.

use serde_json::json;

use crate::chain::{Chain, Said};
use crate::support::{Conversation, MessagesApi, Turn};

/// Runs a fact on both versions.
macro_rules! on_both_versions {
    ($($fact:ident),+ $(,)?) => {
        mod newest { $(#[test] fn $fact() { super::$fact(crate::support::NEWEST); })+ }
        mod older { $(#[test] fn $fact() { super::$fact(crate::support::OLDER); })+ }
    };
}

on_both_versions!(
    a_chain_pauses_and_goes_on_whatever_variables_of_claude_code_are_set,
    a_chain_pauses_and_goes_on_whatever_settings_set,
    an_api_that_is_not_available_is_not_waited_for_inside_of_claude,
);

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
    for variable in BREAKING {
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
