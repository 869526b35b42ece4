//! What people see of their chains.

use crate::outcome::Outcome;
use crate::world::World;

#[test]
fn a_chain_at_rest() {
    let world = World::new();
    world.file("root.md", "spawn asks.md &\nspawn replies.md &\nspawn looks.md\nreply {results}\n");
    world.file("asks.md", "ask When?\nreply {result}\n");
    world.file("replies.md", "reply fine\n");
    world.file("looks.md", "decide sign\nreply {result}\n");
    world.file("fails.md", "fail API Error: 400 boom\n");
    let id = world.spawn_paused("root.md");
    world.run(&["spawn", "fails.md"]).exits_with(1);
    insta::assert_snapshot!(columns(&world.run(&["ls"])), @"
    CHAIN  STATE  AGE  COST  TASK
    [ID1:8]  asks  [AGE]  $0.12  root.md  [ID3:8]: When?, asked [AGE] ago, and 1 more
    [ID5:8]  failed  [AGE]  $0.01  fails.md  API Error: 400 boom
    --- exit status: 0
    ");
    insta::assert_snapshot!(columns(&world.run(&["tree"])), @r"
    [ID5:8] failed ([AGE])  fails.md  API Error: 400 boom
    [ID1:8] waits ([AGE])  root.md  waits for 2 children
    ├─ [ID2:8] asks ([AGE])  asks.md  waits for an answer to [ID3:8]: When?
    ├─ [ID6:8] done ([AGE])  replies.md
    └─ [ID4:8] can continue ([AGE])  looks.md  waits for something that only the agent can judge
    --- exit status: 0
    ");
    insta::assert_snapshot!(columns(&world.run(&["tree", &id[..8]])), @r"
    [ID1:8] waits ([AGE])  root.md  waits for 2 children
    ├─ [ID2:8] asks ([AGE])  asks.md  waits for an answer to [ID3:8]: When?
    ├─ [ID6:8] done ([AGE])  replies.md
    └─ [ID4:8] can continue ([AGE])  looks.md  waits for something that only the agent can judge
    --- exit status: 0
    ");
    insta::assert_snapshot!(columns(&world.run(&["show", &id[..8]])), @"
    agent  [ID1]
    chain  [ID1] (depth 1)
    task  [PROJECT]/root.md
    directory  [PROJECT]
    state  waits ([AGE])
    waits for  [ID2:8], which waits for an answer to [ID3:8]: When?
    waits for  [ID4:8], which waits for something that only the agent can judge
    child  [ID2]
    child  [ID6]
    child  [ID4]
    claude  [STAND-IN]
    model  claude-opus-4-8
    tokens  5000 in, 0 to cache, 0 from cache, 100 out
    cost  $0.05, 5 requests, [AGE]
    total  $0.12, 12 requests, [AGE], including all agents below it
    continuing  1001 tokens, less than $0.01, as reported before, cold: the last request was not cached
    open  cd [PROJECT] && [STAND-IN] --resume [ID1] --fork-session
    output  [STATE]/frames/[ID1]/out.ndjson
    logs  agent-cli logs [ID1:8]
    session  [ID1] requested, kept, [TIME] ([AGE] ago), $0.05, 5 requests, [AGE]
                [HOME]/.claude/projects/[SLUG]/[ID1].jsonl
    history  [TIME] ([AGE] ago): created, ready
    history  [TIME] ([AGE] ago): began
    history  [TIME] ([AGE] ago): started [PROJECT]/asks.md ([ID7:8])
    history  [TIME] ([AGE] ago): started [PROJECT]/replies.md ([ID8:8])
    history  [TIME] ([AGE] ago): started [PROJECT]/looks.md ([ID9:8])
    history  [TIME] ([AGE] ago): ended its turn: requested, waiting
    --- stderr
    hint: agent-cli answer [ID3:8] ANSWER, then agent-cli resume [ID1:8]
    --- exit status: 0
    ");
}

/// A table whose columns are two spaces apart, however wide an age is.
fn columns(outcome: &Outcome) -> String {
    let text = outcome.to_string();
    let lines = text.lines().map(|line| {
        let words: Vec<_> = line.trim_start().split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        format!("{}{}", &line[..line.len() - line.trim_start().len()], words.join("  "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn nothing_at_all() {
    let world = World::new();
    insta::assert_snapshot!(world.run(&["ls"]), @r"
    --- stderr
    no chains yet
    hint: agent-cli spawn FILE starts one
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["tree"]), @r"
    --- stderr
    no chains yet
    hint: agent-cli spawn FILE starts one
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["questions"]), @r"
    --- stderr
    no open questions
    --- exit status: 0
    ");
}

#[test]
fn an_empty_list_hints_only_at_what_is_there() {
    let world = World::new();
    let said = |args: &[&str]| world.run(args).succeeds().stderr.clone();
    assert_eq!(said(&["history", "--since", "1h"]), "no questions yet\n");
    assert_eq!(said(&["stats", "--since", "1h"]), "no agent has run since then\n");
    world.file("root.md", "ask When?\nreply done\n");
    world.spawn_paused("root.md");
    world.file("done.md", "reply done\n");
    world.run(&["spawn", "done.md"]).succeeds();
    let looks_further = "no agent has run since then\nhint: agent-cli stats --since 365d looks further back\n";
    assert_eq!(said(&["stats", "--since", "0"]), looks_further);
    let all = "hint: agent-cli ls --all lists all chains of this project\n";
    assert_eq!(said(&["ls", "--task", "other.md"]), format!("no chain in this project matches\n{all}"));

    let elsewhere = world.project().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".git")).expect("the project is writable");
    let there = |args: &[&str]| world.command(args).within(&elsewhere).run().succeeds().stderr.clone();
    let others = |noun: &str, command: &str| format!("{noun} of another project: agent-cli {command} --all-projects\n");
    assert_eq!(
        there(&["ls", "--all"]),
        "no chains in this project\n2 chains of other projects: agent-cli ls --all --all-projects\n"
    );
    let none = "no chain in this project has the status done\n".to_owned();
    assert_eq!(there(&["ls", "--status", "done"]), none + &others("1 chain", "ls --status done"));
    let none = "no open chains in this project\n".to_owned();
    assert_eq!(there(&["tree"]), none + &others("1 chain", "tree"));
    let none = "no questions in this project yet\n".to_owned();
    assert_eq!(there(&["history", "--since", "1h"]), none + &others("1 question", "history --since 1h"));
}

#[test]
fn a_frame_that_there_is_not() {
    let world = World::new();
    insta::assert_snapshot!(world.run(&["show", "abcd1234"]).exits_with(3), @r"
    --- stderr
    error: no agent or question matches `[ID1:8]`
    hint: agent-cli ls lists chains, agent-cli questions lists questions
    --- exit status: 3
    ");
    insta::assert_snapshot!(world.run(&["tree", "abcd1234"]).exits_with(3), @r"
    --- stderr
    error: no agent or question matches `[ID1:8]`
    hint: agent-cli ls lists chains, agent-cli questions lists questions
    --- exit status: 3
    ");
}

#[test]
fn trees_and_history_show_the_newest_and_say_that_there_are_more() {
    let world = World::new();
    for name in ["first", "second", "third"] {
        world.file(format!("{name}.md"), format!("ask {name}?\nreply {{result}}\n"));
        world.spawn_paused(&format!("{name}.md"));
    }
    let tree = world.run(&["tree", "-n", "1"]);
    assert!(tree.stdout.contains("third.md") && !tree.stdout.contains("second.md"), "{tree}");
    assert_eq!(tree.stderr, "2 more chains: agent-cli tree --limit N\n");
    let history = world.run(&["history", "--limit", "2"]);
    assert!(!history.stdout.contains("first?"), "{history}");
    let (second, third) = (history.stdout.find("second?"), history.stdout.find("third?"));
    assert!(second.is_some() && second < third, "the newest comes last: {history}");
    assert_eq!(history.stderr, "there are more: agent-cli history --limit N\n");
    for list in ["ls", "tree", "history", "questions"] {
        let none = world.run(&[list, "-n", "0"]);
        assert!(none.exits_with(2).stderr.contains("it must be a whole number of at least 1"), "{none}");
    }
    for all in [&["tree", "--json"][..], &["history", "--json"]] {
        let outcome = world.run(all);
        assert_eq!((outcome.json().as_array().map(Vec::len), outcome.stderr.as_str()), (Some(3), ""), "{outcome}");
    }
}

#[test]
fn chains_are_selected_by_their_words_and_named_by_their_tasks() {
    let world = World::new();
    for (name, reply) in [("deploy.md", "deployed"), ("docs.md", "written")] {
        world.file(name, format!("run true\nreply {reply}\n"));
        world.run(&["spawn", name]).succeeds();
    }
    let tasks = |options: &[&str]| {
        let listed = world.run(&[&["ls", "--all", "--json"], options].concat()).json();
        let tasks = listed.as_array().expect("a list").iter().map(|chain| chain["task"].to_string());
        tasks.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(tasks(&["--search", "DEPLOY"]), "\"deploy.md\"");
    assert_eq!(tasks(&["--task", "some/folder/docs.md"]), "\"docs.md\"");
    assert_eq!(tasks(&["--since", "1h"]), "\"docs.md\" \"deploy.md\"");
    assert_eq!(tasks(&["--search", "100%"]), "");
    let none = world.run(&["ls", "--search", "nothing"]);
    let all = "hint: agent-cli ls --all lists all chains of this project\n";
    assert!(none.stderr.contains("no chain in this project matches") && none.stderr.ends_with(all), "{none}");
    let chosen = world.run(&["ls", "--search", "deploy", "--task", "deploy.md"]);
    let options = "agent-cli ls --search deploy --task deploy.md --all";
    assert!(chosen.stderr.contains(&format!("1 chain that is done: {options}\n")), "{chosen}");
    let none = world.run(&["logs", "docs.md", "--since", "0s"]);
    assert_eq!(none.stdout, "", "the reply is older");
    assert!(none.stderr.starts_with("no events since then\nhint: agent-cli logs "), "{none}");
    assert_eq!(world.run(&["show", "deploy.md", "--reply"]).stdout, "deployed\n");
    world.run(&["spawn", "deploy.md"]).succeeds();
    let several = world.run(&["show", "deploy.md", "--reply"]);
    assert!(
        several.exits_with(3).stderr.contains("error: `deploy.md` is the task of several agents: "),
        "as with an id that means several things: {several}"
    );
}

#[test]
fn a_word_after_the_list_leads_to_its_options() {
    let world = World::new();
    let said = |words: &[&str]| world.run(words).exits_with(2).stderr.clone();
    for (words, tip) in [
        (["ls", "asks"], "tip: agent-cli ls --status asks selects chains"),
        (["ps", "the site"], "tip: agent-cli ls --search 'the site' selects chains"),
    ] {
        assert!(said(&words).contains(tip), "{}", said(&words));
    }
    assert!(!said(&["ls", "--serch"]).contains("selects chains"), "{}", said(&["ls", "--serch"]));
    assert!(!said(&["hosts", "word"]).contains("selects chains"), "{}", said(&["hosts", "word"]));
}

#[test]
fn a_tree_on_a_narrow_terminal_says_what_each_agent_waits_for() {
    let world = World::new();
    world.file("root.md", "spawn a.md b.md\nreply {result}\n");
    world.file("a.md", "ask When shall we deploy it?\nreply {result}\n");
    world.file("b.md", "fail API Error: 400 the model does not know this parameter\n");
    world.run(&["spawn", "root.md"]);
    insta::assert_snapshot!(world.command(["tree"]).on_terminal(40), @r"
    [ID1:8] waits ([AGE])  root.md
    │  waits for its child
    └─ [ID5:8] waits ([AGE])  a.md b.md
       │  waits for its child
       ├─ [ID2:8] asks ([AGE])  a.md
       │     waits for an answer to
       │     [ID3:8]: When shall we deploy
       │     it?
       └─ [ID4:8] failed ([AGE])  b.md
             API Error: 400 the model does
             not know this parameter
    --- exit status: 0
    ");
}
