//! A session with a user is at the top of a chain: it starts the chain, passes on the question, answers in
//! its user's name and carries the chain on. Such a session is like one of `claude -p` that is resumed in place.

use std::path::Path;
use std::process::Stdio;

use uuid::Uuid;

use crate::chain::{Chain, Said, TEMPLATE};
use crate::support::{Conversation, Item, MessagesApi, Turn, claude, follow, on_every_version};

const START: &str = "Start the chain.";

on_every_version!(a_session_with_a_user_leads_a_chain);

/// Behaves as the template says about a session with a user, and follows instructions elsewhere.
fn model(conversation: &Conversation) -> Turn {
    if conversation.items().first() != Some(&Item::User(START.to_owned())) {
        return follow(conversation);
    }
    let calls = conversation.calls().count();
    let printed = conversation.result_texts().join("\n");
    let after = |mark: &str, until: char| {
        printed.split_once(mark).and_then(|(_, rest)| rest.split(until).next()).unwrap_or_default().trim()
    };
    let answer = conversation.last_user_text().filter(|said| *said != START);
    match (calls, answer) {
        (0, _) => Turn::bash("agent-cli spawn ins1.md"),
        (1, None) => Turn::text(after("waits for an answer to ", '\n').split_once(": ").map_or("", |(_, text)| text)),
        (1, Some(answer)) => {
            Turn::bash(&format!("agent-cli answer {} \"{answer}\"", after("hint: agent-cli answer ", ' ')))
        }
        (2, _) => Turn::bash(&format!("agent-cli resume {}", after("then agent-cli resume ", '\n'))),
        _ => Turn::text(conversation.last_result().unwrap_or_default()),
    }
}

fn a_session_with_a_user_leads_a_chain(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("CLAUDE.md", TEMPLATE);
    chain.birthday();
    let session = Uuid::new_v4().to_string();
    let folder = Path::new(env!("CARGO_BIN_EXE_agent-cli")).parent().unwrap();
    let says = |arguments: [&str; 2], text: &str| {
        // As a person's own session, it knows nothing of agent-cli but that it is on PATH.
        let mut command = chain.home.command(claude(version));
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths([folder.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap();
        command.env("AGENT_CLI_CLAUDE", claude(version)).env("AGENT_CLI_STATE_DIR", chain.state());
        command.args(["-p", "--allowedTools=Bash(agent-cli:*)"]).args(arguments).arg(text);
        command.env("PATH", path).stdin(Stdio::null());
        Said::from(command.output().unwrap())
    };
    let said = says(["--session-id", &session], START);
    assert_eq!(said.out, "When is your birthday?\n", "{said:?}");
    let said = says(["--resume", &session], "Jan 1st");
    assert_eq!(said.out, "Jan 1st\n", "{said:?}");
}
