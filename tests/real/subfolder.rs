//! Instructions in other places than the project's CLAUDE.md: in a folder of the project, and in AGENTS.md.

use std::fs;

use crate::chain::{Chain, TEMPLATE};
use crate::support::{
    Conversation, Item, MessagesApi, NEWEST, Turn, follow, on_every_version, on_every_version_of_a_whole_run,
    on_the_newest_version,
};

on_every_version_of_a_whole_run!(the_convention_may_lie_beside_the_instructions);
on_every_version!(instructions_for_all_agents_are_read_after_init);
on_the_newest_version!(instructions_for_all_agents_are_read_where_there_are_no_others);

const OURS: &str = "THE RULES OF THE HOUSE";

/// The last request of a chain whose agents only reply.
fn last_request(chain: &Chain, arguments: &[&str]) -> String {
    assert_eq!(chain.ok(&[&["spawn", "--prompt", "Reply."], arguments].concat()), "done\n");
    chain.api.requests().last().expect("an agent has worked").body.to_string()
}

fn instructions_for_all_agents_are_read_after_init(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(|_: &Conversation| Turn::text("done")));
    // Those of the user take no other's place.
    let of_user = chain.home.home().join(".claude");
    fs::create_dir_all(&of_user).unwrap();
    fs::write(of_user.join("CLAUDE.md"), "MINE").unwrap();
    chain.home.write("AGENTS.md", OURS);
    chain.ok(&["init", "--yes"]);
    let request = last_request(&chain, &[]);
    assert!([OURS, "_spawn_", "MINE"].iter().all(|text| request.contains(text)), "{request}");
}

/// Newer versions do so. What an agent gets that works elsewhere is collected by agent-cli.
fn instructions_for_all_agents_are_read_where_there_are_no_others() {
    let model = |said: &Conversation| match said.items().first() {
        Some(Item::User(first)) if first.contains("START") && said.calls().count() == 0 => {
            Turn::bash("agent-cli spawn --cwd part --prompt Reply.")
        }
        _ => Turn::text("done"),
    };
    let chain = Chain::with_model(NEWEST, MessagesApi::start(model));
    for name in ["AGENTS.md", "part/.claude/AGENTS.md"] {
        chain.home.write(name, OURS);
    }
    assert!(last_request(&chain, &[]).contains(OURS));
    chain.ok(&["spawn", "--prompt", "START"]);
    let of_child = chain.api.requests().into_iter().map(|request| request.body.to_string());
    let of_child: Vec<_> = of_child.filter(|sent| !sent.contains("START") && sent.matches(OURS).count() == 2).collect();
    assert!(!of_child.is_empty(), "that of the project and its own");
    chain.home.write("CLAUDE.md", "MINE");
    let request = last_request(&chain, &[]);
    assert!(request.contains("MINE") && !request.contains(OURS), "{request}");
}

fn the_convention_may_lie_beside_the_instructions(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(follow));
    chain.home.write("examples/some/CLAUDE.md", TEMPLATE);
    chain.home.write("examples/some/ins1.md", "spawn ins2.md\nreply {result}\n");
    chain.home.write("examples/some/ins2.md", "ask When?\nreply {result}\n");
    let root = chain.started(&["spawn", "examples/some/ins1.md"]);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
}
