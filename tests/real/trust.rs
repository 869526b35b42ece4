//! Who is taken for a person, and what an agent reaches.

use std::path::Path;
use std::process::Stdio;

use uuid::Uuid;

use crate::chain::{Chain, Said};
use crate::support::{Conversation, Item, MessagesApi, Turn, claude, follow, on_every_version};

const START: &str = "Start the chain.";

on_every_version!(a_session_comes_to_stand_above_the_chain_that_it_started, an_agent_in_disguise_is_an_agent,);

/// Starts a chain, passes its signal on, and asks for the reply when it is woken.
fn leader(conversation: &Conversation) -> Turn {
    if conversation.items().first() != Some(&Item::User(START.to_owned())) {
        return follow(conversation);
    }
    let results = conversation.result_texts();
    let woken = conversation.last_user_text().filter(|said| said.starts_with("SGN_RESUME")).unwrap_or_default();
    let id = results.first().and_then(|text| text.split_once("SGN_PEND_STARTED (")?.1.split_once(')'));
    let id = id.map_or("", |(id, _)| id);
    match results.as_slice() {
        [] => Turn::bash("agent-cli spawn asks.md"),
        [_] if woken.is_empty() => Turn::text(format!("SGN_PEND_STARTED ({id})")),
        // A part of the id, of a chain that is not its own yet, names nothing.
        [_] => Turn::bash(&format!("agent-cli resume {}", &id[..8])),
        [_, refused] if refused.contains("no agent or question matches") => {
            Turn::bash(&format!("agent-cli resume {id}"))
        }
        [_, _, ongoing] if ongoing.contains("SGN_PEND_ONGOING") && !woken.contains("Jan 1st") => {
            Turn::text("SGN_PEND_ONGOING")
        }
        _ => Turn::text(woken.lines().last().unwrap_or_default()),
    }
}

fn a_session_comes_to_stand_above_the_chain_that_it_started(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(leader));
    chain.home.write("asks.md", "ask When?\nreply {result}\n");
    chain.home.write("CLAUDE.md", crate::chain::TEMPLATE);
    let session = Uuid::new_v4().to_string();
    let folder = Path::new(env!("CARGO_BIN_EXE_agent-cli")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([folder.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut command = chain.home.command(claude(version));
    command.env("AGENT_CLI_CLAUDE", claude(version)).env("AGENT_CLI_STATE_DIR", chain.state()).env("PATH", path);
    command.args(["-p", "--allowedTools=Bash(agent-cli:*)", "--session-id", &session, START]).stdin(Stdio::null());
    let said = Said::from(command.output().unwrap());
    assert!(said.out.starts_with("SGN_PEND_STARTED ("), "{said:?}");
    let started = chain.only_root();

    assert!(chain.ok(&["resume", &session]).starts_with("SGN_PEND"));
    let shown = chain.json(&["show", &started, "--json"]);
    assert_eq!((&shown["parent"], &shown["chain"]), (&session.as_str().into(), &session.as_str().into()));
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &session]), "Jan 1st\n");
}

fn an_agent_in_disguise_is_an_agent(version: &str) {
    const DISGUISES: [&str; 3] = [
        "env -u AGENT_CLI_AGENT_ID -u AGENT_CLI_ATTEMPT",
        "env -u AGENT_CLI_AGENT_ID -u AGENT_CLI_ATTEMPT setsid -w",
        "env -i PATH=\"$PATH\" HOME=\"$HOME\" AGENT_CLI_STATE_DIR=\"$AGENT_CLI_STATE_DIR\"",
    ];
    let chain = Chain::with_model(
        version,
        MessagesApi::start(|conversation| {
            let Some(Item::User(first)) = conversation.items().first() else { return follow(conversation) };
            let Some((_, question)) = first.split_once("sneaky ") else { return follow(conversation) };
            let results = conversation.result_texts();
            match DISGUISES.get(results.len()) {
                Some(disguise) => Turn::bash(&format!("{disguise} agent-cli answer {} yes", question.trim())),
                None => {
                    let refusal = "agents cannot answer questions";
                    let refused = results.iter().filter(|text| text.contains(refusal)).count();
                    Turn::text(if refused == DISGUISES.len() { "refused".to_owned() } else { results.join("; ") })
                }
            }
        }),
    );
    chain.home.write("asks.md", "ask Deploy?\nreply {result}\n");
    chain.home.write("CLAUDE.md", crate::chain::TEMPLATE);
    chain.started(&["spawn", "asks.md"]);
    let question = chain.json(&["questions", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let prompt = format!("sneaky {question}");
    assert_eq!(
        chain.ok(&["spawn", "--prompt", &prompt, "--permission-mode", "default", "--", "--allowedTools=Bash"]),
        "refused\n"
    );
    assert_eq!(chain.json(&["questions", "--json"])[0]["id"], question.as_str());
}
