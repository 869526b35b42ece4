//! A new start in a new session: `resume ID --afresh`.

use std::fs;

use serde_json::Value;

use crate::crash::{kill_agent, kill_runner};
use crate::outcome::Outcome;
use crate::world::World;

/// An agent that works, asks, and replies with everything that it was told.
const ASKS: &str = "run echo one >> marks\nask When?\nask Where?\nreply {results}\n";

fn world(world: World, task: &str) -> World {
    world.file("root.md", task);
    world
}

/// A chain that waits for an answer.
fn asking(with: World) -> (World, String) {
    let world = world(with, ASKS);
    let id = world.run(&["spawn", "root.md"]).started();
    (world, id)
}

fn afresh(world: &World, id: &str) -> Outcome {
    world.run(&["resume", id, "--afresh"])
}

fn shown(world: &World, id: &str) -> Value {
    world.run(&["show", id, "--json"]).json()
}

/// The outcomes of all attempts of an agent, with `*` for those that were kept.
fn outcomes(world: &World, id: &str) -> Vec<String> {
    let of_one = |session: &Value| {
        let kept = if session["kept"] == true { "*" } else { "" };
        format!("{}{kept}", session["outcome"].as_str().unwrap_or("running"))
    };
    shown(world, id)["sessions"].as_array().expect("attempts").iter().map(of_one).collect()
}

#[test]
fn an_agent_that_waits_writes_a_summary_now_and_continues_with_it_when_it_has_its_result() {
    for with in [World::with_hooks(), World::new()] {
        let (world, id) = asking(with);
        afresh(&world, &id).prints("SGN_PEND_ONGOING");
        assert_eq!(outcomes(&world, &id), ["requested*", "summary"]);
        let (old, new) = (world.session(0), shown(&world, &id)["session"].as_str().expect("an id").to_owned());
        assert!(world.session(1) == old && new != old, "{old} {new}");
        // Nothing else is done for it.
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
        assert_eq!(world.starts(), 2);
        world.answer("now");
        world.run(&["resume", &id]).started();
        assert_eq!(world.session(2), new);
        world.answer("here");
        world.run(&["resume", &id]).prints("now; here");
        assert_eq!(outcomes(&world, &id), ["requested*", "summary", "requested*", "reply*"]);
        assert_eq!((world.session(3), world.marks().as_str()), (new, "one\n"));
        assert_eq!(world.run(&["fsck"]).succeeds().stdout, "");
    }
}

#[test]
fn the_new_session_begins_with_the_task_the_summary_and_the_results() {
    let (world, id) = asking(World::with_hooks());
    afresh(&world, &id);
    let asked = world.log().starts[1].prompt.clone();
    assert!(asked.starts_with("SGN_RESUME\n\nThis conversation ends here.") && asked.contains("\n## Open questions\n"));
    world.answer("now");
    world.run(&["resume", &id]);
    insta::assert_snapshot!(world.named(&world.log().starts[2].prompt), @r#"
    Read [PROJECT]/root.md and follow its instructions.

    You have already worked on this task, in a conversation that has ended. Your summary of it ends at the line `--- end of summary ---`; it has no such line. Continue where you stopped, and read a file again before you rely on what the summary says about it.

    ## Goal
    The task.

    ## Decisions
    I know {"over":1,"pending":[],"results":[]}

    ## State of the files
    None.

    ## Open questions
    None.
    --- end of summary ---

    result of `agent-cli ask "When?"` ([ID2:8]):
    now
    "#);
}

#[test]
fn a_limit_that_keeps_an_agent_from_its_summary_is_raised_for_the_summary() {
    let world = World::with_hooks();
    world.file("root.md", "run true\nask When?\nreply {result}\n");
    let id = world.run(&["spawn", "root.md", "--", "--max-turns=3"]).started();
    let refused = afresh(&world, &id);
    let again = format!("agent-cli resume {} --afresh -- --max-turns=6", &id[..8]);
    assert!(refused.stderr.contains(&again), "{refused}");
    world.run(&["resume", &id, "--afresh", "--", "--max-turns=6"]).succeeds();
    assert!(world.run(&["show", &id]).stdout.contains("starts afresh in the session"));
}

#[test]
fn what_a_person_sees() {
    let (world, id) = asking(World::with_hooks());
    insta::assert_snapshot!(afresh(&world, &id), @"
    SGN_PEND_ONGOING
    --- stderr
    [ID1:8] has written a summary (agent-cli show [ID1:8]) and starts afresh: its next turn begins a new session
    [ID1:8] waits for an answer to [ID2:8]: When?
    hint: agent-cli answer [ID2:8] ANSWER, then agent-cli resume [ID1:8]
    --- exit status: 0
    ");
    let shown = world.run(&["show", &id]).stdout;
    for line in ["summary", "before that", "--earlier", "starts afresh in the session", "is to start afresh"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let logged = world.run(&["logs", &id]).stdout;
    assert!(logged.contains("## Goal") || logged.contains("Goal"), "{logged}");
    let opened = world.run(&["open", &id, "--earlier", "--print"]).succeeds().stdout.clone();
    assert!(opened.contains(&format!("--resume {} --fork-session", world.session(0))), "{opened}");
    // Its new session has not begun.
    insta::assert_snapshot!(world.run(&["open", &id, "--print"]), @"
    --- stderr
    error: [ID1:8] starts afresh: its new session has not begun
    hint: agent-cli resume [ID1:8] begins it; agent-cli open [ID1:8] --earlier opens the one before
    --- exit status: 2
    ");
    insta::assert_snapshot!(afresh(&world, &id), @"
    --- stderr
    error: [ID1:8] has already written a summary: its next turn begins a new session
    hint: agent-cli resume [ID1:8] continues it
    --- exit status: 2
    ");
}

#[test]
fn who_cannot_start_afresh() {
    let world = world(World::with_hooks(), "spawn group-a.md group-b.md\nreply {result}\n");
    world.file("group-a.md", "ask When?\nreply a\n");
    world.file("group-b.md", "spawn --handoff last.md\nreply b\n");
    world.file("last.md", "ask Why?\nreply last\n");
    let root = world.run(&["spawn", "root.md"]).started();
    let tree = world.run(&["tree", &root, "--json"]).json();
    let ids: Vec<&str> = tree.as_array().expect("agents").iter().map(|it| it["id"].as_str().expect("an id")).collect();
    for id in &ids {
        world.named(id);
    }
    let refused: Vec<String> = [ids[1], ids[3]].iter().map(|id| afresh(&world, id).to_string()).collect();
    insta::assert_snapshot!(world.named(&refused.join("\n")), @"
    --- stderr
    error: [ID6:8] is a group of agents
    hint: agent-cli tree [ID6:8] shows them: name one of them
    --- exit status: 2
    --- stderr
    error: [ID7:8] has handed off to [ID4:8], and does not continue
    hint: agent-cli resume [ID4:8] --afresh
    --- exit status: 2
    ");
    world.file("done.md", "reply so\n");
    world.run(&["spawn", "done.md"]);
    insta::assert_snapshot!(afresh(&world, "last"), @"
    --- stderr
    error: [ID8:8] is done: it has nothing to continue with
    hint: agent-cli resume [ID8:8] --afresh --prompt TEXT gives it a new instruction
    --- exit status: 2
    ");
    world.run(&["stop", &root]);
    insta::assert_snapshot!(afresh(&world, &root), @"
    --- stderr
    error: [ID1:8] was stopped, and does not continue
    hint: agent-cli resume [ID1:8] --afresh --prompt TEXT gives it a new instruction
    --- exit status: 2
    ");
    assert_eq!(world.log().starts.iter().filter(|start| start.prompt.contains("the summary")).count(), 0);
    afresh(&world, "0000").exits_with(3);
    world.run(&["resume", "--all", "--afresh"]).exits_with(2);
}

#[test]
fn agents_make_no_other_start_afresh() {
    let world = world(World::new(), "spawn child.md &\nrun agent-cli resume {id} --afresh\nreply {result}\n");
    world.file("child.md", "reply child\n");
    let outcome = world.run(&["spawn", "root.md"]);
    let said = format!("{outcome}") + &world.run(&["logs", "last", "--json"]).stdout;
    assert!(said.contains("agents cannot make others start afresh"), "{said}");
}

#[test]
fn a_summary_that_lacks_something_is_asked_for_once_more() {
    let (world, id) = asking(World::with_hooks().with("STAND_IN_SUMMARY", "late"));
    afresh(&world, &id).prints("SGN_PEND_ONGOING");
    assert_eq!(outcomes(&world, &id), ["requested*", "no_summary", "summary"]);
    assert!(world.log().starts[2].prompt.contains("You were asked for this before, but the summary has nothing under"));
    world.answer("now");
    world.run(&["resume", &id]).started();
    assert!(world.session(3) != world.session(2));
}

#[test]
fn without_a_summary_an_agent_keeps_its_conversation() {
    for with in [World::with_hooks(), World::new()] {
        let (world, id) = asking(with.with("STAND_IN_SUMMARY", "never"));
        let outcome = afresh(&world, &id);
        outcome.exits_with(1);
        assert!(outcome.stderr.contains("the summary has nothing under \"Goal\""), "{outcome}");
        assert_eq!(outcomes(&world, &id), ["requested*", "no_summary", "no_summary"]);
        // It is not asked again.
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
        world.answer("now");
        world.run(&["resume", &id]).started();
        world.answer("here");
        world.run(&["resume", &id]).prints("now; here");
        assert_eq!((world.starts(), world.session(4)), (5, world.session(0)));
        // A person can try again.
        assert_eq!(world.run(&["fsck"]).succeeds().stdout, "");
    }
}

#[test]
fn a_conversation_that_is_too_long_for_a_summary_is_kept() {
    let (world, id) = asking(World::with_hooks());
    let too_long = world.command(["resume", &id, "--afresh"]).with("STAND_IN_REFUSES", "Prompt is too long").run();
    insta::assert_snapshot!(too_long, @"
    --- stderr
    error: the summary could not be written: Prompt is too long; the agent keeps its conversation, and does not start afresh ([ID1:8])
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 1
    ");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.answer("now");
    world.run(&["resume", &id]).started();
    assert_eq!(world.session(2), world.session(0));
    assert_eq!(outcomes(&world, &id), ["requested*", "no_summary", "requested*"]);
}

#[test]
fn a_tool_that_is_called_instead_does_not_run() {
    let (world, id) = asking(World::with_hooks().with("STAND_IN_SUMMARY", "after echo two >> marks"));
    afresh(&world, &id).succeeds();
    assert_eq!((world.marks().as_str(), outcomes(&world, &id)[1].as_str()), ("one\n", "summary"));
    let (world, id) = asking(World::with_hooks().with("STAND_IN_SUMMARY", "after agent-cli ask Who?"));
    afresh(&world, &id).succeeds();
    assert_eq!(world.run(&["questions", "--json"]).json().as_array().map(Vec::len), Some(1));
    assert_eq!(outcomes(&world, &id)[1], "summary");
}

#[test]
fn a_message_and_an_instruction_are_for_the_new_session() {
    let (world, id) = asking(World::with_hooks());
    world.run(&["tell", &id, "Use the calendar."]).succeeds();
    afresh(&world, &id);
    world.answer("now");
    world.run(&["resume", &id]).started();
    let prompts: Vec<String> = world.log().starts.iter().map(|start| start.prompt.clone()).collect();
    let told = |prompt: &String| prompt.contains("Use the calendar.");
    assert_eq!(prompts.iter().map(told).collect::<Vec<_>>(), [false, false, true]);
    world.answer("here");
    world.run(&["resume", &id]).prints("now; here");
    let outcome = world.run(&["resume", &id, "--afresh", "--prompt", "And again."]);
    outcome.prints("now; here");
    let last = world.log().starts.last().expect("a start").prompt.clone();
    assert!(last.contains("Your summary of it ends at") && last.contains("And again."), "{last}");
    assert_eq!(outcomes(&world, &id)[4..], ["summary", "reply*"]);
}

#[test]
fn an_agent_that_failed_continues_in_its_new_session() {
    let world = world(World::with_hooks(), "run echo one >> marks\nonce fail Overloaded\nreply over\n");
    world.run(&["spawn", "root.md"]).exits_with(1);
    let id = world.run(&["ls", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    afresh(&world, &id).prints("over");
    assert_eq!(outcomes(&world, &id), ["error*", "summary", "reply*"]);
    let asked = &world.log().starts[1].prompt;
    assert!(
        asked.contains("Your last turn was cut short") && asked.contains("This conversation ends here."),
        "{asked}"
    );
    assert!(!world.log().starts[2].prompt.contains("cut short"));
    assert_eq!(world.marks(), "one\n");
}

#[test]
fn a_chain_that_waits_for_a_child_goes_on_when_the_child_has_ended() {
    let world = world(World::with_hooks(), "spawn child.md\nreply root: {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let id = world.run(&["spawn", "root.md"]).started();
    afresh(&world, &id).prints("SGN_PEND_ONGOING");
    assert_eq!((outcomes(&world, &id).len(), world.starts()), (2, 3), "only the root writes a summary");
    world.answer("now");
    world.run(&["resume", &id]).prints("root: now");
    assert_eq!(outcomes(&world, &id), ["requested*", "summary", "reply*"]);
}

#[test]
fn whatever_ends_before_the_record_the_summary_is_written_again_and_after_it_never() {
    for (point, summaries) in [
        ("start_afresh.before", 0),
        ("start_afresh.after", 1),
        ("begin.after", 1),
        ("end_attempt.before", 1),
        ("end_attempt.after", 1),
    ] {
        let (world, id) = asking(World::with_hooks());
        let killed = world.command(["resume", &id, "--afresh"]).with("AGENT_CLI_CRASH", point).run();
        assert_ne!(killed.code(), Some(0), "{point}");
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
        world.answer("now");
        world.run(&["resume", &id]).started();
        world.answer("here");
        world.run(&["resume", &id]).prints("now; here");
        let found = outcomes(&world, &id).iter().filter(|outcome| *outcome == "summary").count();
        assert_eq!(found, summaries, "{point}");
        assert_eq!(world.run(&["fsck"]).succeeds().stdout, "", "{point}");
    }
}

#[test]
fn the_limits_count_both_attempts() {
    let (world, id) = asking(World::with_hooks());
    afresh(&world, &id);
    let costs: Vec<f64> = shown(&world, &id)["sessions"]
        .as_array()
        .expect("attempts")
        .iter()
        .map(|session| session["cost_usd"].as_f64().expect("dollars"))
        .collect();
    assert!(costs.iter().all(|cost| *cost > 0.0), "{costs:?}");
    world.run(&["resume", &id, "--max-budget-usd", "0.001"]).succeeds();
    world.answer("now");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), 2);
    let limited = world.run(&["resume", &id, "--afresh"]);
    limited.exits_with(2);
}

#[test]
fn an_agent_with_a_full_context_should_start_afresh() {
    // A message of the stand-in has 1,001 tokens.
    let full = World::with_hooks().with("STAND_IN_WINDOW", "1200").with("AGENT_CLI_LINGER", "0s");
    let world = world(full, ASKS);
    let started = world.run(&["spawn", "root.md"]);
    insta::assert_snapshot!(started, @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID1:8] waits for an answer to [ID2:8]: When?
    hint: agent-cli answer [ID2:8] ANSWER, then agent-cli resume [ID1:8]
    [ID1:8] should start afresh: its conversation takes 1001 of its model's 1200 tokens (83 %)
    hint: agent-cli resume [ID1:8] --afresh continues it in a new session, with a summary
    --- exit status: 0
    ");
    let id = started.started();
    let advice = serde_json::json!({"why": "context", "tokens": 1001, "window": 1200});
    assert_eq!(shown(&world, &id)["afresh_advice"], advice);
    assert!(world.run(&["show", &id]).stdout.contains("advice"));
    let found = world.run(&["doctor", "--json"]).json();
    let found = found["checks"].as_array().expect("checks").iter().find(|check| check["name"] == "conversations");
    assert!(found.is_some_and(|check| check["status"] == "warning"), "{found:?}");
    // A poll says nothing of it.
    assert!(!world.run(&["resume", &id]).stderr.contains("afresh"));
    world.answer("now");
    let status = world.run(&["resume", &id, "--json"]).json();
    assert_eq!(status["afresh_advice"][0]["agent"], id.as_str(), "{status}");
    afresh(&world, &id).succeeds();
    assert_eq!(shown(&world, &id)["afresh_advice"], Value::Null);
}

#[test]
fn an_agent_whose_files_have_changed_should_start_afresh() {
    let reads = ["a", "b", "c", "d"].map(|name| format!("call Read {{\"file_path\": \"{name}\"}}\n")).concat();
    let world = world(World::with_hooks(), &format!("{reads}ask When?\nreply {{result}}\n"));
    ["a", "b", "c", "d"].iter().for_each(|name| drop(world.file(name, "1")));
    let id = world.run(&["spawn", "root.md"]).started();
    assert_eq!(shown(&world, &id)["afresh_advice"], Value::Null);
    ["a", "b"].iter().for_each(|name| drop(world.file(name, "2")));
    assert_eq!(shown(&world, &id)["afresh_advice"], Value::Null, "half of them");
    fs::remove_file(world.project().join("c")).expect("it is there");
    world.file("d", "2");
    let advice = shown(&world, &id)["afresh_advice"].clone();
    assert_eq!((&advice["why"], &advice["changed"]), (&"files".into(), &4.into()), "{advice}");
    // What has changed is told to the agent that writes the summary.
    afresh(&world, &id).succeeds();
    let prompt = &world.log().starts[1].prompt;
    assert!(prompt.contains("files that you had read or written have changed: a, b, d."), "{prompt}");
}

#[test]
fn an_estimate_has_both_requests() {
    let (world, id) = asking(World::with_hooks());
    let estimate = world.run(&["resume", &id, "--afresh", "--estimate", "--json"]).json();
    let agents = estimate["agents"].as_array().expect("agents");
    let parts: Vec<_> = agents.iter().map(|agent| (&agent["afresh"], &agent["starts"])).collect();
    assert_eq!(parts, [(&"summary".into(), &"now".into()), (&"new_session".into(), &"later".into())]);
    let text = world.run(&["resume", &id, "--afresh", "--estimate"]).stdout;
    assert!(text.contains("(its summary)") && text.contains("(its new session, without the summary)"), "{text}");
    assert_eq!((world.starts(), outcomes(&world, &id).len()), (1, 1));
    world.file("done.md", "reply so\n");
    world.run(&["spawn", "done.md"]);
    world.run(&["resume", "last", "--afresh", "--estimate"]).exits_with(2);
}

#[test]
fn an_agent_that_only_judges_for_itself_continues_at_once() {
    let world = world(World::with_hooks(), "decide sign\nreply {results}over\n");
    let id = world.run(&["spawn", "root.md"]).started();
    world.file("sign", "");
    afresh(&world, &id).prints("over");
    assert_eq!(outcomes(&world, &id), ["started*", "summary", "reply*"]);
}

#[test]
fn an_agent_that_was_paused_or_interrupted_continues_afresh() {
    let (world, id) = asking(World::with_hooks());
    world.run(&["pause", &id]).succeeds();
    afresh(&world, &id).prints("SGN_PEND_ONGOING");
    assert_eq!(outcomes(&world, &id), ["requested*", "summary"]);
    world.answer("now");
    world.run(&["resume", &id]).started();
}

#[test]
fn an_imported_chain_has_its_summary_and_its_earlier_conversation() {
    let (world, id) = asking(World::with_hooks());
    afresh(&world, &id);
    let summary = shown(&world, &id)["summary"].clone();
    world.run(&["export", &id, "-o", "chain.tar"]).succeeds();
    world.run(&["stop", &id]).succeeds();
    world.run(&["rm", &id, "--force"]);
    world.run(&["gc", "--older-than", "0s", "--failed"]).succeeds();
    world.run(&["import", "chain.tar", "--trust"]).succeeds();
    assert_eq!(shown(&world, &id)["summary"], summary);
    assert_eq!(world.run(&["fsck"]).succeeds().stdout, "");
    let opened = world.run(&["open", &id, "--earlier", "--print"]).succeeds().stdout.clone();
    let copy = opened.split(' ').find(|word| word.ends_with(".jsonl")).expect("a call is closed in a copy");
    assert!(fs::read_to_string(copy).expect("it is there").contains("agent-cli ask"));
    world.answer("now");
    world.run(&["resume", &id]).started();
    world.answer("here");
    world.run(&["resume", &id]).prints("now; here");
}

#[test]
fn an_agent_in_a_worktree_of_its_own_leaves_it() {
    let world =
        world(World::with_hooks(), "call EnterWorktree {\"path\": \"/\"}\nask When?\nask Where?\nreply {results}\n");
    let id = world.run(&["spawn", "root.md"]).started();
    afresh(&world, &id).prints("SGN_PEND_ONGOING");
    world.answer("now");
    world.run(&["resume", &id]).started();
    world.answer("here");
    world.run(&["resume", &id]).prints("now; here");
    assert_eq!(outcomes(&world, &id), ["requested*", "summary", "requested*", "reply*"]);
    assert!(!world.log().starts[2].prompt.contains("You had entered the worktree"));
}

#[test]
fn what_a_person_has_to_approve_comes_first() {
    let world = world(World::with_hooks(), "call ExitPlanMode {\"plan\": \"# The plan\"}\nreply over\n");
    let id = world.run(&["spawn", "root.md", "--permission-mode", "plan"]).started();
    insta::assert_snapshot!(afresh(&world, &id), @"
    --- stderr
    error: [ID1:8] was stopped at a call that a person has to approve, which another session could not make
    hint: agent-cli answer [ID2:8] allow or deny, and start afresh when it waits for something else
    --- exit status: 2
    ");
    world.run(&["resume", &id, "--afresh", "--estimate"]).exits_with(2);
}

#[test]
fn an_agent_whose_runner_has_died_starts_afresh_and_one_that_works_does_not() {
    let world = world(World::with_hooks(), "run echo one >> marks\nhold gate\nask When?\nreply {result}\n");
    let gate = world.gate("gate");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let id = world.run(&["ls", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    insta::assert_snapshot!(afresh(&world, &id), @"
    --- stderr
    error: [ID1:8] is working
    hint: agent-cli pause [ID1:8], then agent-cli resume [ID1:8] --afresh
    --- exit status: 2
    ");
    kill_runner(spawn);
    kill_agent(&world);
    gate.open_for_one();
    gate.open_for_one();
    afresh(&world, &id).started();
    assert_eq!(outcomes(&world, &id), ["died*", "summary", "requested*"]);
}
