//! One `spawn` for several agents, which run at the same time.

use serde_json::json;

use crate::world::World;

fn with_children(files: &[(&str, &str)]) -> World {
    let world = World::new();
    files.iter().for_each(|(name, text)| drop(world.file(name, text)));
    world
}

fn abc() -> World {
    with_children(&[("a.md", "reply A"), ("b.md", "reply B"), ("c.md", "reply C")])
}

/// A command with one failure in it, which a file `fixed` prevents.
fn with_a_failure() -> World {
    with_children(&[("a.md", "reply A"), ("b.md", "unless fixed fail it broke\nreply B"), ("c.md", "reply C")])
}

#[test]
fn the_replies_are_printed_together_in_order() {
    let world = abc();
    let outcome = world.run(&["spawn", "a.md", "b.md", "c.md"]);
    outcome.succeeds();
    insta::assert_snapshot!(outcome, @"
    3 agents: all done. Each reply follows a line that begins with `## N of 3: `; no reply has such a line.

    ## 1 of 3: a.md ([ID1:8]): done
    A

    ## 2 of 3: b.md ([ID2:8]): done
    B

    ## 3 of 3: c.md ([ID3:8]): done
    C
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 3);
    let id = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(world.run(&["resume", &id]).stdout, outcome.stdout);
    assert_eq!(world.starts(), 3, "what is over starts nothing");
}

#[test]
fn files_and_options_may_stand_in_any_order() {
    let world = abc();
    let outcome =
        world.run(&["spawn", "b.md", "--model", "opus", "a.md", "--max-parallel=1", "b.md", "--", "--verbose"]);
    outcome.succeeds();
    let headings: Vec<_> = outcome.stdout.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(
        world.named(&headings.join("\n")),
        "## 1 of 3: b.md ([ID1:8]): done\n## 2 of 3: a.md ([ID2:8]): done\n## 3 of 3: b.md ([ID3:8]): done"
    );
    assert_eq!(world.log().order(), ["b.md", "a.md", "b.md"]);
    assert_eq!(world.log().most_alive(), 1);
    assert!(world.log().starts.iter().all(|start| start.value_of("--model").is_some()));
}

#[test]
fn siblings_run_at_the_same_time_up_to_the_limit() {
    let world = with_children(&[("child.md", "hold gate\nreply ok")]);
    let gate = world.gate("gate");
    let spawn = world.command(["spawn", "child.md", "child.md", "child.md", "--max-parallel", "2"]).start();
    gate.reached_by(2);
    (0..3).for_each(|_| gate.open_for_one());
    spawn.ends().succeeds();
    assert_eq!((world.starts(), world.log().most_alive()), (3, 2));
}

#[test]
fn one_bad_file_keeps_all_from_starting() {
    let world = abc();
    let outcome = world.run(&["spawn", "a.md", "none.md", "c.md"]);
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: cannot read none.md: No such file or directory (os error 2)
    hint: give the path of a file with instructions
    --- exit status: 2
    ");
    insta::assert_snapshot!(world.run(&["spawn"]), @"
    --- stderr
    error: the following required arguments were not provided:
      <FILE>...

    Usage: agent-cli spawn <FILE>... [-- <CLAUDE ARGS>...]

    For more information, try '--help'.
    --- exit status: 2
    ");
    assert_eq!(world.starts(), 0);
    assert!(!world.state().exists());
}

#[test]
fn a_group_has_one_status_and_one_id() {
    let world =
        with_children(&[("a.md", "reply A"), ("b.md", "ask B?\nreply {result}"), ("c.md", "ask C?\nreply {result}")]);
    let outcome = world.run(&["spawn", "a.md", "b.md", "c.md"]);
    insta::assert_snapshot!(outcome, @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID2:8] waits for an answer to [ID3:8]: B?
    [ID4:8] waits for an answer to [ID5:8]: C?
    hint: agent-cli answer [ID3:8] ANSWER, then agent-cli resume [ID1:8]
    --- exit status: 0
    ");
    let id = outcome.started();
    insta::assert_snapshot!(world.run(&["tree"]), @"
    [ID1:8] waits ([AGE])  a.md b.md c.md  waits for 2 children
    ├─ [ID6:8] done ([AGE])  a.md
    ├─ [ID2:8] asks ([AGE])  b.md  waits for an answer to [ID3:8]: B?
    └─ [ID4:8] asks ([AGE])  c.md  waits for an answer to [ID5:8]: C?
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["ls"]), @"
    CHAIN     STATE  AGE  COST   TASK
    [ID1:8]  asks   [AGE]  $0.08  a.md b.md c.md  [ID3:8]: B?, asked [AGE] ago, and 1 more
    --- exit status: 0
    ");
    world.answer_to("C?", "see");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), 4, "a poll starts nothing");
    world.answer_to("B?", "be");
    insta::assert_snapshot!(world.run(&["resume", &id]), @"
    3 agents: all done. Each reply follows a line that begins with `## N of 3: `; no reply has such a line.

    ## 1 of 3: a.md ([ID6:8]): done
    A

    ## 2 of 3: b.md ([ID2:8]): done
    be

    ## 3 of 3: c.md ([ID4:8]): done
    see
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["show", &id]), @"
    agent      [ID1]
    chain      [ID1] (depth 0)
    task       3 agents: a.md b.md c.md
    directory  [PROJECT]
    state      done ([AGE])
    reply      3 agents: all done. Each reply follows a line that begins with `## N of 3: `; no reply has such a line.⏎⏎## 1 of 3: a.md ([ID6:8]): done⏎A⏎⏎## 2 of 3: b.md ([ID2:8]): done⏎be⏎⏎## 3 of 3: c.md ([ID4:8]): done⏎see
    child      [ID6]
    child      [ID2]
    child      [ID4]
    claude     [STAND-IN]
    tokens     0 in, 0 to cache, 0 from cache, 0 out
    cost       $0.00, 0 requests, [AGE]
    total      $0.10, 10 requests, [AGE], including all agents below it
    output     [STATE]/frames/[ID1]/out.ndjson
    logs       agent-cli logs [ID1:8] --chain
    history    [TIME] ([AGE] ago): created, waiting
    history    [TIME] ([AGE] ago): ended its turn: group, done
    --- exit status: 0
    ");
}

#[test]
fn one_that_fails_leaves_the_others_alone_and_is_tried_again() {
    let world = with_a_failure();
    let outcome = world.run(&["spawn", "a.md", "b.md", "c.md"]);
    outcome.exits_with(1);
    insta::assert_snapshot!(outcome, @"
    3 agents: 2 done, 1 failed. Each reply follows a line that begins with `## N of 3: `; no reply has such a line.

    ## 1 of 3: a.md ([ID1:8]): done
    A

    ## 2 of 3: b.md ([ID2:8]): failed
    it broke

    ## 3 of 3: c.md ([ID3:8]): done
    C
    --- stderr
    error: it broke ([ID2:8])
    hint: agent-cli resume [ID4:8] continues; nothing is lost
    --- exit status: 1
    ");
    world.file("fixed", "");
    let id = world.run(&["ls", "-ap", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    insta::assert_snapshot!(world.run(&["resume", &id]), @"
    3 agents: all done. Each reply follows a line that begins with `## N of 3: `; no reply has such a line.

    ## 1 of 3: a.md ([ID1:8]): done
    A

    ## 2 of 3: b.md ([ID2:8]): done
    B

    ## 3 of 3: c.md ([ID3:8]): done
    C
    --- exit status: 0
    ");
    assert_eq!(world.starts(), 4, "only the one that failed was tried again");
}

#[test]
fn a_refusal_of_each_is_reported_with_what_helps() {
    let world = abc().with("STAND_IN_REFUSES", "Not logged in · Please run /login");
    let outcome = world.run(&["spawn", "a.md", "b.md"]);
    insta::assert_snapshot!(outcome, @"
    2 agents: 0 done, 2 failed. Each reply follows a line that begins with `## N of 2: `; no reply has such a line.

    ## 1 of 2: a.md ([ID1:8]): failed
    Not logged in · Please run /login

    ## 2 of 2: b.md ([ID2:8]): failed
    Not logged in · Please run /login
    --- stderr
    error: Not logged in · Please run /login ([ID1:8])
    error: Not logged in · Please run /login ([ID2:8])
    hint: run claude and log in with /login, or set ANTHROPIC_API_KEY; then agent-cli resume [ID3:8]
    --- exit status: 1
    ");
}

#[test]
fn a_member_that_was_tried_again_alone_counts_for_its_group() {
    let world = with_a_failure();
    let outcome = world.run(&["spawn", "a.md", "b.md", "--json"]);
    outcome.exits_with(1);
    let told = outcome.json();
    let (group, failed) = (told["id"].as_str().expect("an id"), told["members"][1]["id"].as_str().expect("an id"));
    world.file("fixed", "");
    world.run(&["resume", failed]).prints("B");
    let starts = world.starts();
    let outcome = world.run(&["resume", group, "--json"]);
    outcome.succeeds();
    assert_eq!((outcome.json()["status"].clone(), world.starts()), (json!("done"), starts));
}

#[test]
fn json_lists_the_agents() {
    let world = with_a_failure();
    let outcome = world.run(&["spawn", "a.md", "b.md", "--json"]);
    let mut told = outcome.json();
    for key in ["usage", "cost_usd", "estimated", "requests", "seconds", "reply"] {
        told.as_object_mut().expect("an object").remove(key);
    }
    insta::assert_snapshot!(world.named(&serde_json::to_string_pretty(&told).expect("it is JSON")), @r#"
    {
      "type": "chain",
      "version": 1,
      "id": "[ID1]",
      "status": "failed",
      "denied": [],
      "members": [
        {
          "id": "[ID2]",
          "task": "a.md",
          "status": "done",
          "reply": "A",
          "error": null
        },
        {
          "id": "[ID3]",
          "task": "b.md",
          "status": "failed",
          "reply": null,
          "error": "it broke"
        }
      ],
      "waiting_on": [],
      "running_elsewhere": [],
      "errors": [
        {
          "agent": "[ID3]",
          "kind": "error",
          "message": "it broke"
        }
      ]
    }
    "#);
}

#[test]
fn an_agent_makes_one_request_for_several() {
    let world = with_a_failure();
    world.file("parent.md", "spawn a.md b.md c.md\nreply got {result}\n");
    let outcome = world.run(&["spawn", "parent.md"]);
    outcome.succeeds();
    insta::assert_snapshot!(world.named(&world.log().starts[4].prompt), @"
    SGN_RESUME

    Each result below ends at the line `--- end of result ---`; none has such a line.

    result of `agent-cli spawn a.md b.md c.md` ([ID4:8]), which failed:
    3 agents: 2 done, 1 failed. Each reply follows a line that begins with `## N of 3: `; no reply has such a line.

    ## 1 of 3: a.md ([ID1:8]): done
    A

    ## 2 of 3: b.md ([ID2:8]): failed
    it broke

    ## 3 of 3: c.md ([ID3:8]): done
    C
    --- end of result ---
    ");
    assert_eq!((world.starts(), world.log().starts.len()), (5, 5), "the parent is woken once for all");
    insta::assert_snapshot!(world.run(&["ls", "--all"]), @"
    CHAIN     STATE  AGE  COST   TASK
    [ID5:8]  done   [AGE]  $0.09  parent.md
    --- exit status: 0
    ");
}

#[test]
fn the_agents_of_a_group_may_ask_and_have_children_of_their_own() {
    let world = with_children(&[
        ("parent.md", "spawn a.md b.md\nreply {result}\n"),
        ("a.md", "spawn c.md d.md\nreply A({result})"),
        ("b.md", "ask Who?\nreply {result}"),
        ("c.md", "ask When?\nreply {result}"),
        ("d.md", "reply D"),
    ]);
    let id = world.spawn_paused("parent.md");
    insta::assert_snapshot!(world.run(&["tree", &id]), @"
    [ID1:8] waits ([AGE])  parent.md  waits for 2 children
    └─ [ID6:8] waits ([AGE])  a.md b.md  waits for 2 children
       ├─ [ID7:8] waits ([AGE])  a.md  waits for its child
       │  └─ [ID8:8] waits ([AGE])  c.md d.md  waits for its child
       │     ├─ [ID2:8] asks ([AGE])  c.md  waits for an answer to [ID3:8]: When?
       │     └─ [ID9:8] done ([AGE])  d.md
       └─ [ID4:8] asks ([AGE])  b.md  waits for an answer to [ID5:8]: Who?
    --- exit status: 0
    ");
    world.answer_to("When?", "now");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.answer_to("Who?", "me");
    let outcome = world.run(&["resume", &id]);
    outcome.succeeds();
    // The inner headings are a part of a reply, so the outer ones differ from them.
    for part in ["D)\n\n### 2 of 2: b.md", "\nnow\n", "\nme\n"] {
        assert!(outcome.stdout.contains(part), "{outcome}");
    }
}

#[test]
fn an_agent_can_look_for_the_replies_itself() {
    let world = with_a_failure();
    world.file("parent.md", "spawn b.md a.md\nrun agent-cli resume {id}; echo \"status $?\"\nreply {result}\n");
    let outcome = world.run(&["spawn", "parent.md"]);
    outcome.succeeds();
    assert!(outcome.stdout.contains("1 failed") && outcome.stdout.ends_with("status 1\n"), "{outcome}");
}

#[test]
fn a_group_counts_as_its_agents_do() {
    let world = abc();
    world.file("parent.md", "spawn a.md b.md c.md\nreply {result}\n");
    world.run(&["spawn", "parent.md", "--max-depth", "2", "--max-agents", "4"]).succeeds();
    assert_eq!(world.starts(), 5);
    world.run(&["spawn", "a.md", "b.md", "--max-depth", "1", "--max-agents", "2"]).succeeds();
    let outcome = world.run(&["spawn", "a.md", "b.md", "c.md", "--max-agents", "2"]);
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: the chain would have more than 2 agents, which is its limit
    hint: an agent does the work itself; a person raises the limits with --max-depth and --max-agents
    --- exit status: 2
    ");
    assert_eq!(world.starts(), 7);
}

#[test]
fn there_may_be_many() {
    let world = with_children(&[("child.md", "reply ok")]);
    let mut args = vec!["spawn"; 1];
    args.extend(["child.md"; 64]);
    let outcome = world.run(&args);
    outcome.succeeds();
    assert_eq!((world.starts(), outcome.stdout.matches("done\nok").count()), (64, 64));
    assert!(world.log().most_alive() <= 4);
}

#[test]
fn an_agent_that_dies_is_carried_on_with_and_its_siblings_are_not_repeated() {
    let world = with_children(&[("a.md", "reply A"), ("b.md", "once die 9\nreply B")]);
    let outcome = world.run(&["spawn", "a.md", "b.md", "--json"]);
    outcome.exits_with(1);
    let id = outcome.json()["id"].as_str().expect("an id").to_owned();
    let outcome = world.run(&["resume", &id]);
    outcome.succeeds();
    assert!(outcome.stdout.contains("A\n") && outcome.stdout.ends_with("B\n"), "{outcome}");
    assert_eq!(world.starts(), 3);
}

#[test]
fn relative_files_are_the_callers_and_not_those_of_the_folder_to_work_in() {
    let world = with_children(&[("a.md", "run pwd\nreply {result}"), ("b.md", "run pwd\nreply {result}")]);
    world.file("other/a.md", "reply wrong");
    let outcome = world.run(&["spawn", "a.md", "b.md", "--cwd", "other"]);
    outcome.succeeds();
    let folder = world.project().join("other").display().to_string();
    assert_eq!(outcome.stdout.matches(&format!("done\n{folder}")).count(), 2, "{outcome}");
}

#[test]
fn children_work_below_their_parent_unless_it_may_do_everything() {
    let world = with_children(&[("a.md", "run pwd\nreply {result}"), ("sub/x.md", "reply x")]);
    world.file("parent.md", "run agent-cli spawn a.md a.md --cwd ..\nspawn a.md a.md --cwd sub\nreply {results}\n");
    let outcome = world.run(&["spawn", "parent.md"]);
    outcome.succeeds();
    let sub = world.project().join("sub").display().to_string();
    assert_eq!(outcome.stdout.matches(&format!("done\n{sub}")).count(), 2, "{outcome}");
    assert_eq!(world.starts(), 4, "those outside were refused");
    world.file("parent.md", "spawn a.md a.md --cwd ..\nreply {results}\n");
    world.run(&["spawn", "parent.md", "--permission-mode", "bypassPermissions"]).succeeds();
    assert_eq!(world.starts(), 8);
}

#[test]
fn a_failed_agent_beside_a_waiting_one_gets_a_retry_hint() {
    let world = with_a_failure();
    world.file("asks.md", "ask When?\nreply {result}\n");
    insta::assert_snapshot!(world.run(&["spawn", "b.md", "asks.md"]), @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID2:8] waits for an answer to [ID3:8]: When?
    hint: agent-cli answer [ID3:8] ANSWER, then agent-cli resume [ID1:8]
    error: it broke ([ID4:8])
    hint: agent-cli resume [ID4:8] retries it
    --- exit status: 0
    ");
    let failed = world.log().starts.iter().find(|start| start.prompt.contains("/b.md")).unwrap().session().to_owned();
    world.file("fixed", "");
    world.run(&["resume", &failed]).prints("B");
}
