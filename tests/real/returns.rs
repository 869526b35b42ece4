//! How a suspended call returns its result, whatever the user's shell, environment and hooks do to commands.

use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{Conversation, MessagesApi, NEWEST, Turn, on_every_version, on_every_version_of_a_whole_run};

on_every_version!(
    what_the_call_was_given_beside_its_command_does_not_count_for_its_result,
    aliases_and_functions_of_the_users_shell_do_not_change_a_result,
);

on_every_version_of_a_whole_run!(
    what_the_users_shell_prints_around_every_command_is_not_in_a_result,
    limits_for_commands_do_not_cut_a_result,
);

#[test]
fn a_result_is_no_file_that_the_agent_has_read_on_the_newest_version() {
    a_result_is_no_file_that_the_agent_has_read(NEWEST);
}

const ANSWER: &str = "blue $x `y`\n  \"green\"\n\nlast";

/// A model that makes a call, and is over when it has a result.
fn calling(version: &str, call: Value) -> Chain {
    let model = move |said: &Conversation| match said.last_result() {
        None => Turn::call("Bash", call.clone()),
        Some(_) => Turn::text("over"),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Ask when.");
    chain
}

fn asking(version: &str) -> Chain {
    calling(version, json!({"command": "agent-cli ask 'When?'"}))
}

/// Asks and answers, with these variables set at the resume. The agent must be given the answer, and nothing else.
fn returns_exactly(chain: &Chain, variables: &[(&str, &str)]) {
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer(ANSWER);
    let mut resume = chain.command();
    let output = resume.args(["resume", &root]).envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "over\n", "{output:?}");
    assert_eq!(chain.last_results(), [(ANSWER.to_owned(), false)]);
    assert_eq!(chain.api.count(), 2, "it asks, and goes on");
}

fn what_the_call_was_given_beside_its_command_does_not_count_for_its_result(version: &str) {
    let call = json!({"command": "agent-cli ask 'When?'", "description": "Ask a person", "timeout": 1});
    let chain = calling(version, call);
    // No command is done before that.
    let file = chain.home.write("slow.sh", "sleep 0.5\n");
    returns_exactly(&chain, &[("BASH_ENV", file.to_str().unwrap())]);
}

fn profile(chain: &Chain, text: &str) {
    for name in [".bashrc", ".profile", ".zshenv", ".zshrc"] {
        fs::write(chain.home.home().join(name), text).unwrap();
    }
}

fn aliases_and_functions_of_the_users_shell_do_not_change_a_result(version: &str) {
    let chain = asking(version);
    let lines = ["cat", "command", "exec", "agent-cli", "printf"]
        .map(|name| format!("function {name} {{ echo function; }}\nalias {name}='echo alias'\n"));
    // Other shells can read no more of it.
    let only = "[ -n \"$BASH_VERSION$ZSH_VERSION\" ] || return 0\n";
    profile(&chain, &format!("{only}shopt -s expand_aliases\nset -o noclobber\n{}", lines.concat()));
    returns_exactly(&chain, &[]);
}

fn what_the_users_shell_prints_around_every_command_is_not_in_a_result(version: &str) {
    for text in ["set -x\n", "trap 'echo next' DEBUG\ntrap 'echo bye' EXIT\n", "echo welcome\nset -v\n"] {
        let chain = asking(version);
        profile(&chain, text);
        returns_exactly(&chain, &[]);
    }
    let chain = asking(version);
    let file = chain.home.write("loud.sh", "echo loud\n");
    returns_exactly(&chain, &[("BASH_ENV", file.to_str().unwrap())]);
}

fn limits_for_commands_do_not_cut_a_result(version: &str) {
    for variables in [&[("BASH_DEFAULT_TIMEOUT_MS", "1")][..], &[("BASH_MAX_OUTPUT_LENGTH", "10")]] {
        returns_exactly(&asking(version), variables);
    }
}

/// What an agent has read, Claude Code shows it again when it has summed up the conversation. 2.1.197 does not do so, and
/// sums up nothing here.
fn a_result_is_no_file_that_the_agent_has_read(version: &str) {
    // Nearly the largest window of any model.
    const FULL: usize = 990_000;
    let requests = AtomicUsize::new(0);
    let model = move |_: &Conversation| match requests.fetch_add(1, Ordering::Relaxed) {
        0 => Turn::bash("agent-cli ask 'When?'"),
        1 => Turn::bash("echo on").after_tokens(FULL),
        _ => Turn::text("over"),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Ask when.");
    let root = chain.started(&["spawn", "ins.md", "--permission-mode", "bypassPermissions"]);
    chain.answer(ANSWER);
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let printed = fs::read_to_string(chain.state().join("frames").join(&root).join("out.ndjson")).unwrap();
    assert!(printed.contains("compact_boundary"), "the conversation was not summed up");
    for request in chain.api.requests() {
        let body = request.body.to_string();
        assert!(!body.contains("Called the Read tool") && !body.contains("result-"), "{body}");
    }
}
