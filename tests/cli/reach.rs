//! What agents can reach: themselves and what they started. Other chains do not exist for them.

use serde_json::Value;

use crate::world::World;

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";
const SESSION: &str = "0193e7b0-1c2d-4abc-8def-0123456789ff";

/// A chain that waits, under limits, and one that is done.
fn others() -> (World, String, String) {
    let world = World::new();
    world.file("victim.md", "ask Deploy?\nreply {result}\n");
    world.file("done.md", "reply the secret of a chain\n");
    let limits = ["--max-depth", "2", "--max-agents", "2", "--max-budget-usd", "1"];
    let victim = world.run(&[["spawn", "victim.md"].as_slice(), &limits].concat()).started();
    world.run(&["spawn", "done.md"]).prints("the secret of a chain");
    let done = world.log().starts[1].session().to_owned();
    (world, victim, done)
}

/// The output of a command that an agent calls.
fn said(world: &World, command: &str) -> String {
    world.file("agent.md", format!("run {command} 2>&1\nreply {{result}}\n"));
    world.run(&["spawn", "agent.md"]).succeeds().stdout.clone()
}

#[test]
fn for_an_agent_other_chains_do_not_exist() {
    let (world, victim, done) = others();
    let question = world.question();
    let before = world.run(&["show", &victim, "--json"]).json();
    for command in ["resume", "show", "tree", "logs --chain", "show --json", "tree --json", "logs --json"] {
        let unknown = said(&world, &format!("agent-cli {command} {UNKNOWN}"));
        assert!(unknown.contains("error: no agent or question matches `00000000-"), "{unknown}");
        for id in [&victim, &done, &question] {
            for id in [id.as_str(), &id[..8], &id[..4]] {
                let answered = said(&world, &format!("agent-cli {command} {id}"));
                assert_eq!(answered.replace(id, UNKNOWN), unknown, "agent-cli {command} {id}");
            }
        }
    }
    for id in [&victim, &done] {
        let forked = said(&world, &format!("agent-cli spawn victim.md --fork-from {id}"));
        let unknown = said(&world, &format!("agent-cli spawn victim.md --fork-from {UNKNOWN}"));
        assert_eq!(forked.replace(id.as_str(), UNKNOWN), unknown);
    }
    assert_eq!(world.run(&["show", &victim, "--json"]).json(), before);
    world.answer("yes");
    world.run(&["resume", &victim]).prints("yes");
}

#[test]
fn an_agent_is_told_what_it_reaches() {
    let (world, victim, _) = others();
    insta::assert_snapshot!(world.named(&said(&world, &format!("agent-cli resume {victim}"))), @r"
    Exit code 3
    error: no agent or question matches `[ID1]`
    hint: an agent can reach only what it started: agent-cli tree shows it
    hint: for a chain that this session started before agent-cli took it over, give the full id
    ");
}

#[test]
fn lists_show_an_agent_what_it_has_started() {
    let (world, _, _) = others();
    world.file("child.md", "ask Which?\nreply {result}\n");
    world.file("agent.md", "spawn child.md\nreply {result}\n");
    let agent = world.spawn_paused("agent.md");
    let child = world.log().starts[3].session().to_owned();
    let commands = ["ls --json", "tree --json", "questions --all --json", "ls", "tree", "questions", "doctor --json"];
    let looks = commands.iter().enumerate().map(|(at, command)| format!("agent-cli {command} > {at} 2>&1; "));
    world.file("looks.md", format!("spawn child.md &\nrun {}true\nreply {{results}}\n", looks.collect::<String>()));
    let own = world.spawn_paused("looks.md");
    let own_child = world.log().starts.last().expect("it was started").session().to_owned();
    let printed = |at: usize| std::fs::read_to_string(world.project().join(at.to_string())).expect("it was printed");
    let ids = |at: usize| -> Vec<String> {
        let list: Value = serde_json::from_str(&printed(at)).expect("JSON");
        let all = list.as_array().expect("a list").iter();
        all.map(|listed| listed["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!((ids(0), ids(1), ids(2)), (vec![own_child.clone()], vec![own, own_child], vec![]));
    for (at, command) in commands.iter().enumerate() {
        let text = printed(at);
        let is_named =
            [&agent[..8], &child[..8], "victim", "Deploy", "open chain"].iter().any(|name| text.contains(name));
        assert!(!is_named, "{command}: {text}");
    }
}

#[test]
fn an_agent_reaches_what_is_below_it_by_a_part_of_an_id() {
    let world = World::new();
    world.file(
        "root.md",
        "spawn child.md &\nrun agent-cli show $(echo {id} | cut -c1-8) > shown 2>&1\nreply {results}\n",
    );
    world.file("child.md", "reply done\n");
    world.run(&["spawn", "root.md"]).prints("done");
    let shown = std::fs::read_to_string(world.project().join("shown")).expect("it was shown");
    assert!(shown.contains("child.md"), "{shown}");
}

#[test]
fn a_chain_is_joined_by_its_full_id_and_by_the_session_that_started_it() {
    let world = World::new();
    world.file("top.md", "spawn child.md --max-depth 5 --max-agents 6 --max-budget-usd 1\nreply top: {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    world.foreign_session(SESSION, "top.md");
    let chain = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    for id in [&chain[..8], &chain] {
        let other = said(&world, &format!("agent-cli resume {id}"));
        assert!(other.starts_with("Exit code 3\n"), "{other}");
    }
    world.run(&["resume", SESSION]).succeeds();
    let joined = world.run(&["show", &chain, "--json"]).json();
    assert_eq!((&joined["parent"], &joined["chain"]), (&SESSION.into(), &SESSION.into()));
    for id in [SESSION, &chain] {
        let limits = world.run(&["show", id, "--json"]).json()["limits"].clone();
        assert_eq!(
            limits,
            serde_json::json!({"max_depth": 5, "max_agents": 6, "max_parallel": 4, "max_budget_usd": 1.0})
        );
    }
    world.answer("now");
    world.run(&["resume", SESSION]).prints("top: now");
}
