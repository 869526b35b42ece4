//! Questions, who answered, and what the agent did next.

use serde_json::Value;

use crate::world::World;

/// A question that was answered twice, and one that is open.
fn world() -> (World, String) {
    let world = World::new();
    world.file("root.md", "ask When?\nrun echo tested\nask Where?\nreply {result}\n");
    let root = world.spawn_paused("root.md");
    let question = world.question();
    world.run(&["answer", &question, "Jan 1st"]).succeeds();
    world.run(&["answer", &question, "Feb 2nd", "--replace"]).succeeds();
    world.run(&["resume", &root]).succeeds();
    (world, root)
}

/// Text without processes, which differ.
fn without_processes(world: &World, text: &str) -> String {
    let mut named = world.named(text);
    while let Some(at) = named.find("(process ") {
        let end = named[at..].find(',').expect("a comma follows");
        named.replace_range(at..at + end, "([PROCESS]");
    }
    named
}

#[test]
fn every_answer_is_on_record_with_what_the_agent_did_then() {
    let (world, root) = world();
    let user = world.run(&["history", &root, "--json"]).json()[0]["records"][0]["by"]["user"].clone();
    let user = user.as_str().expect("the user has a name").to_owned();
    let outcome = world.run(&["history"]);
    let text = without_processes(&world, &outcome.succeeds().stdout.replace(&format!(" by {user} "), " by [USER] "));
    insta::assert_snapshot!(text, @"
    [ID2:8] question, [TIME] ([AGE] ago)
      of root.md in the chain [ID1:8]
      When?
      answered [TIME] ([AGE] ago), replaced later: Jan 1st
        by [USER] ([PROCESS], no terminal)
      replaced by a new answer [TIME] ([AGE] ago): Feb 2nd
        by [USER] ([PROCESS], no terminal)
      delivered [TIME] ([AGE] ago)
        then called Bash: echo tested
    [ID3:8] question, [TIME] ([AGE] ago)
      of root.md in the chain [ID1:8]
      Where?
      open
    ");
    let listed = world.run(&["history", "--json"]).json();
    let first = &listed[0];
    assert_eq!((first["status"].as_str(), first["then"]["type"].as_str()), (Some("delivered"), Some("tool_use")));
    let answers: Vec<_> = first["records"].as_array().unwrap().iter().map(|record| record["answer"].clone()).collect();
    assert_eq!(answers, ["Jan 1st", "Feb 2nd"]);
    assert_eq!((&first["outcome"], &first["answer"]), (&"answered".into(), &"Feb 2nd".into()));
    assert_eq!((&first["records"][0]["replaced"], &first["records"][1]["replaced"]), (&Value::Null, &"Jan 1st".into()));
    assert_eq!((&listed[1]["outcome"], &listed[1]["answer"]), (&"open".into(), &Value::Null));
    assert_eq!(first["shown"]["question"], "When?");
    let id = first["id"].as_str().unwrap();
    let whole = world.run(&["history", id]).succeeds().stdout.clone();
    assert!(whole.contains("  │  When?\n") && whole.contains("  │  Feb 2nd\n") && !whole.contains("Where?"), "{whole}");
    for width in [40, 1] {
        for command in [&["history"][..], &["history", id]] {
            let narrow = world.command(command).on_terminal(width).succeeds().stdout.clone();
            assert!(
                narrow.lines().all(|line| line.trim_end().chars().count() <= usize::from(width).max(6)),
                "{narrow}"
            );
        }
    }
}

#[test]
fn what_was_withdrawn_or_has_expired_says_so() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let root = world.spawn_paused("root.md");
    world.run(&["stop", &root]).succeeds();
    let [listed] = world.run(&["history", &root, "--json"]).json().as_array().unwrap().clone().try_into().unwrap();
    assert_eq!((&listed["status"], &listed["outcome"]), (&"withdrawn".into(), &"withdrawn".into()));
    let said = world.run(&["history"]).stdout.clone();
    assert!(said.contains(": its agent no longer waits for an answer\n"), "{said}");

    let world = World::with_hooks();
    world.file("root.md", "run agent-cli ask 'When?' --expires 3d --default never\nreply {result}\n");
    let root = world.spawn_paused("root.md");
    world.questions_expire();
    world.run(&["resume", &root]).succeeds();
    let [listed] = world.run(&["history", "--json"]).json().as_array().unwrap().clone().try_into().unwrap();
    assert_eq!(
        (&listed["status"], &listed["outcome"], &listed["answer"]),
        (&"delivered".into(), &"expired".into(), &Value::Null)
    );
    assert_eq!((&listed["records"][0]["default"], &listed["records"][0]["answer"]), (&"never".into(), &Value::Null));
    let said = world.run(&["history"]).stdout.clone();
    assert!(said.contains(": the default is used: never\n  delivered "), "{said}");
}

#[test]
fn other_projects_and_older_questions_are_left_out_unless_wanted() {
    let (world, _) = world();
    let elsewhere = world.project().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".git")).expect("the project is writable");
    let count = |args: &[&str]| {
        let outcome = world.command([&["history", "--json"], args].concat()).within(&elsewhere).run();
        outcome.json().as_array().map(Vec::len).expect("a list")
    };
    assert_eq!((count(&[]), count(&["--all-projects"]), count(&["-p", "--since", "0s"])), (0, 2, 0));
    let said = world.command(["history"]).within(&elsewhere).run();
    assert!(
        said.stderr.contains("no questions in this project yet")
            && said.stderr.contains("2 questions of other projects"),
        "{said}"
    );
}

#[test]
fn an_empty_list_says_whether_there_are_earlier_questions() {
    let (world, root) = world();
    insta::assert_snapshot!(world.run(&["history", "--since", "0s"]), @"
    --- stderr
    no questions since then
    hint: agent-cli history shows earlier ones
    --- exit status: 0
    ");
    let of_chain = world.run(&["history", &root[..8], "--since", "0"]);
    assert!(of_chain.stderr.ends_with(&format!("hint: agent-cli history {} shows earlier ones\n", &root[..8])));
    let day = &world.run(&["history", "--json"]).json()[0]["asked"].as_str().expect("a time")[..10].to_owned();
    let yesterday = day.parse::<jiff::civil::Date>().expect("a date").yesterday().expect("there was one").to_string();
    for list in [&["history"][..], &["ls"], &["logs", &root], &["stats"]] {
        let listed = world.run(&[list, &["--since", &yesterday, "--json"]].concat());
        assert!(listed.succeeds().stdout.len() > "[]\n".len(), "{listed}");
        let wrong = world.run(&[list, &["--since", "soon"]].concat());
        assert!(wrong.exits_with(2).stderr.contains("give a duration such as 7d, a date such as"), "{wrong}");
        let wrong = world.run(&[list, &["--since", "-3d"]].concat());
        assert!(wrong.exits_with(2).stderr.contains("give a duration such as 7d, a date such as"), "{wrong}");
        let future = world.run(&[list, &["--since", "9000-01-01"]].concat());
        assert!(future.exits_with(2).stderr.contains("9000-01-01 is in the future"), "{future}");
    }
}

#[test]
fn agents_see_only_what_they_and_theirs_have_asked() {
    let (world, root) = world();
    let look = format!("run agent-cli history --json; agent-cli history {root} 2>&1; true\nreply {{result}}\n");
    world.file("agent.md", look);
    let seen = world.run(&["spawn", "agent.md"]).succeeds().stdout.clone();
    assert!(seen.starts_with("[]\n") && seen.contains("no agent or question matches"), "{seen}");
}
