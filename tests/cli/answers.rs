//! Answers.

use serde_json::Value;

use crate::gate::wait_until;
use crate::inbox::asking;
use crate::programs;
use crate::world::World;

fn asked() -> (World, String, String) {
    asked_in(World::new())
}

/// The same with its records in a file. With a server, what an agent leaves running is below a process with the agent's mark.
fn asked_in_a_file() -> (World, String, String) {
    asked_in(World::new().without("AGENT_CLI_STORE"))
}

fn asked_in(world: World) -> (World, String, String) {
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When is your birthday?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let question = world.question();
    (world, id, question)
}

#[track_caller]
fn delivered(answer: &str) {
    let (world, id, question) = asked();
    world.command(["answer", &question]).reads(answer).run().succeeds();
    let outcome = world.run(&["resume", &id]);
    outcome.succeeds();
    assert!(outcome.stdout == format!("{answer}\n"), "an answer of {} bytes was changed", answer.len());
}

#[test]
fn a_question_says_how_it_can_be_answered() {
    let (world, _, question) = asked();
    insta::assert_snapshot!(world.run(&["questions"]), @r"
    QUESTION  ASKED  BY        CHAIN
    [ID3:8]  [AGE]    child.md  [ID1:8]  When is your birthday?
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["answer", &question[..8], "Jan 1st"]), @r"
    agent-cli resume [ID1]
    --- stderr
    answer recorded; resume the chain with:
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["questions"]), @r"
    --- stderr
    no open questions
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["questions", "--all"]), @"
    QUESTION  ASKED  BY        CHAIN
    [ID3:8]  [AGE]    child.md  [ID1:8]  When is your birthday?
              -> Jan 1st
    --- exit status: 0
    ");
}

#[test]
fn an_answer_starts_nothing() {
    let (world, _, question) = asked();
    world.run(&["answer", &question, "Jan 1st"]).succeeds();
    assert_eq!(world.starts(), 2);
}

#[test]
fn an_answer_is_delivered_exactly() {
    delivered("Jan 1st, \"quoted\" and `ticked`, $HOME \\n");
    delivered("two\n\nparagraphs\n\n  indented");
    delivered("ünï✓ \u{1f382}");
    delivered("result of `agent-cli ask \"When?\"` (00000000):\nsomething else");
}

#[test]
fn an_answer_may_be_large() {
    delivered(&"0123456789abcdef".repeat(1 << 16));
}

#[test]
fn an_answer_may_speak_of_signals() {
    delivered("When you see SGN_PEND_STARTED, wait.");
    delivered("SGN_RESUME");
}

#[test]
fn an_empty_answer_is_refused() {
    let (world, id, question) = asked();
    for outcome in [
        world.run(&["answer", &question, ""]),
        world.run(&["answer", &question, " \n"]),
        world.run(&["answer", &question]),
    ] {
        outcome.exits_with(2);
    }
    insta::assert_snapshot!(world.run(&["answer", &question, ""]), @r"
    --- stderr
    error: the answer is empty
    hint: agent-cli answer [ID3:8] ANSWER
    --- exit status: 2
    ");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
}

#[test]
fn an_answer_that_is_no_text_is_refused() {
    let (world, id, question) = asked();
    let outcome = world.command(["answer", &question]).reads(b"\xff\xfe".as_slice()).run();
    outcome.exits_with(2);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: cannot read the answer from standard input: it is not UTF-8
    --- exit status: 2
    ");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
}

#[test]
fn an_answer_can_continue_its_chain_at_once() {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask a? &\nask b? &\nreply {results}\n");
    world.spawn_paused("root.md");
    let of = |question: &str| world.questions().into_iter().find(|(asked, _)| asked == question).unwrap().1;
    let first = world.run(&["answer", &of("a?"), "one", "--resume"]);
    first.prints("SGN_PEND_ONGOING");
    assert!(first.stderr.contains("waits for an answer to"), "{first}");
    world.run(&["answer", &of("b?"), "two", "--resume"]).prints("one; two");
}

#[test]
fn an_answer_continues_its_agent_while_another_runs() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("busy.md", "hold gate\nreply busy\n");
    world.file("asks.md", "ask When?\nreply {result}\n");
    let spawn = world.command(["spawn", "busy.md", "asks.md"]).start();
    gate.reached_by(1);
    wait_until("it has paused", || {
        let tree = world.run(&["tree", "--json"]).json();
        tree.as_array().expect("a list").iter().any(|agent| agent["task"] == "asks.md" && agent["status"] == "waiting")
    });
    let answered = world.run(&["answer", &world.question(), "now"]);
    insta::assert_snapshot!(answered, @"
    --- stderr
    answer recorded; another process is already running the chain
    --- exit status: 0
    ");
    wait_until("it is done", || {
        let tree = world.run(&["tree", "--json"]).json();
        tree.as_array().expect("a list").iter().any(|agent| agent["task"] == "asks.md" && agent["status"] == "done")
    });
    gate.open_for_one();
    assert!(spawn.ends().succeeds().stdout.contains("now"));
    let (world, _, question) = asked();
    assert_eq!(world.run(&["answer", &question, "now", "--json"]).json()["running_elsewhere"], false);
}

#[test]
fn a_question_is_answered_once() {
    let (world, id, question) = asked();
    world.run(&["answer", &question, "Jan 1st"]).succeeds();
    let second = world.run(&["answer", &question, "Feb 2nd"]);
    second.exits_with(2);
    insta::assert_snapshot!(second, @"
    --- stderr
    error: question [ID3:8] was already answered, at [TIME] ([AGE] ago)
    hint: agent-cli questions [ID3:8] shows the answer
    hint: agent-cli answer --replace [ID3:8] ANSWER replaces it until it is delivered
    --- exit status: 2
    ");
    world.run(&["resume", &id]).prints("Jan 1st");
    insta::assert_snapshot!(world.run(&["answer", &question, "Mar 3rd"]), @"
    --- stderr
    error: question [ID3:8] was already answered, at [TIME] ([AGE] ago), and its agent has the answer
    hint: agent-cli questions [ID3:8] shows the answer
    --- exit status: 2
    ");
}

#[test]
fn only_a_question_can_be_answered() {
    let (world, id, _) = asked();
    let unknown = world.run(&["answer", "00000000-0000-4000-8000-000000000000", "x"]);
    unknown.exits_with(3);
    insta::assert_snapshot!(unknown, @r"
    --- stderr
    error: no agent or question matches `[ID4]`
    hint: agent-cli ls lists chains, agent-cli questions lists questions
    --- exit status: 3
    ");
    let spawn = world.events(&id, "requested")[0]["request"].as_str().expect("an id").to_owned();
    let outcome = world.run(&["answer", &spawn, "x"]);
    outcome.exits_with(3);
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: request [ID6] is not a question
    hint: agent-cli questions lists the questions
    --- exit status: 3
    ");
}

#[test]
fn an_option_is_no_answer() {
    let (world, id, question) = asked();
    for arguments in [["--jsno"].as_slice(), &["--resum"], &["-5"], &["-x", "Jan 1st"], &["Jan 1st", "--force"]] {
        let outcome = world.run(&[["answer", &question].as_slice(), arguments].concat());
        outcome.exits_with(2);
        assert!(outcome.stderr.contains("unexpected argument '-"), "{outcome}");
    }
    assert_eq!(world.questions().len(), 1);
    world.run(&["answer", &question, "--", "--force"]).succeeds();
    world.run(&["resume", &id]).prints("--force");
}

#[test]
fn an_answer_is_one_argument() {
    let (world, _, question) = asked();
    let outcome = world.run(&["answer", &question, "on", "Jan", "1st; it's late"]);
    outcome.exits_with(2);
    insta::assert_snapshot!(outcome, @r"
    --- stderr
    error: an answer is one argument, but 3 were given
    hint: quote it: agent-cli answer [ID3:8] 'on Jan 1st; it'\''s late'
    --- exit status: 2
    ");
    let hinted = world.run(&["answer", &question, "--", "-x", "tonight"]);
    assert!(hinted.exits_with(2).stderr.contains(" -- '-x tonight'"), "{hinted}");
    assert_eq!(world.questions().len(), 1);
}

#[test]
fn an_answer_is_replaced_until_it_is_delivered() {
    let (world, id, question) = asked();
    let early = world.run(&["answer", "--replace", &question, "Jan 1st"]);
    insta::assert_snapshot!(early.exits_with(2), @r"
    --- stderr
    error: question [ID3:8] has no answer yet
    hint: agent-cli answer [ID3:8] ANSWER
    --- exit status: 2
    ");
    world.run(&["answer", &question, "Jan 1st"]).succeeds();
    world.run(&["answer", &question, "--replace", "Feb 2nd"]).prints(&format!("agent-cli resume {id}"));
    world.run(&["resume", &id]).prints("Feb 2nd");
    let late = world.run(&["answer", "--replace", &question, "Mar 3rd"]);
    insta::assert_snapshot!(late.exits_with(2), @r"
    --- stderr
    error: the answer to question [ID3:8] was delivered
    hint: agent-cli questions [ID3:8] shows the answer
    --- exit status: 2
    ");
    let listed = world.run(&["questions", "--all", "--json"]).json();
    assert_eq!(listed[0]["answer"], "Feb 2nd");
}

#[test]
fn it_is_recorded_who_answered() {
    let (world, id, question) = asked();
    let answer = world.command(["answer", &question, "Jan 1st"]).with("CLAUDE_CODE_SESSION_ID", "a-session").start();
    let process = answer.id();
    answer.ends().succeeds();
    let uid = rustix::process::getuid().as_raw();
    let by = world.run(&["questions", "--all", "--json"]).json()[0]["answered_by"].clone();
    assert_eq!((&by["uid"], &by["process"]), (&uid.into(), &process.into()), "{by}");
    assert_eq!(
        (&by["terminal"], &by["agent"], &by["claude_session"]),
        (&Value::Null, &Value::Null, &"a-session".into())
    );
    let child = world.run(&["show", &id, "--json"]).json()["children"][0].as_str().expect("an id").to_owned();
    assert_eq!(world.events(&child, "answered")[0]["by"], by);
}

#[test]
fn a_chain_or_an_agent_stands_for_its_only_question() {
    let (world, id, question) = asked();
    let outcome = world.run(&["answer", &id[..8], "Jan 1st"]);
    outcome.prints(&format!("agent-cli resume {id}"));
    let outcome = world.run(&["answer", &id, "Jan 1st"]);
    outcome.exits_with(3);
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: [ID1:8] has no open question
    hint: agent-cli answer [ID3:8] --replace ANSWER changes an answer that was not delivered (When is your birthday?)
    hint: agent-cli questions lists the open questions
    --- exit status: 3
    ");
    world.run(&["answer", &question, "--replace", "x"]).succeeds();
}

#[test]
fn of_several_questions_of_a_chain_one_is_named() {
    let world = World::new();
    world.file("root.md", "ask When? &\nask Where?\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    let outcome = world.run(&["answer", &id, "x"]);
    outcome.exits_with(3);
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: [ID1:8] has 2 open questions: [ID2:8] (When?), [ID3:8] (Where?)
    hint: name one: agent-cli answer [ID2:8] ANSWER
    --- exit status: 3
    ");
    assert_eq!(world.questions().len(), 2);
}

#[test]
fn an_agent_does_not_answer_for_the_person() {
    let world = World::new();
    world.file("root.md", "ask When? &\nrun agent-cli answer {id} now\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.questions().len(), 1);
}

/// Commands with which an agent tries to pass for a person.
const DISGUISES: [&str; 6] = [
    "env -u AGENT_CLI_AGENT_ID -u AGENT_CLI_ATTEMPT agent-cli",
    "env -i PATH=\"$PATH\" HOME=\"$HOME\" AGENT_CLI_STATE_DIR=\"$AGENT_CLI_STATE_DIR\" agent-cli",
    "env -u AGENT_CLI_AGENT_ID -u AGENT_CLI_ATTEMPT setsid -w agent-cli",
    "env -u AGENT_CLI_AGENT_ID -u AGENT_CLI_ATTEMPT nohup sh -c 'agent-cli \"$@\"; exit $?' sh",
    "ln -s $AGENT_CLI_STATE_DIR link; env -u AGENT_CLI_AGENT_ID -u AGENT_CLI_ATTEMPT AGENT_CLI_STATE_DIR=link agent-cli",
    "AGENT_CLI_AGENT_ID=4f2c1a90-0000-4000-8000-000000000000 AGENT_CLI_ATTEMPT=4f2c1a90-0000-4000-8000-000000000000 agent-cli",
];

#[test]
fn an_agent_that_clears_its_environment_is_an_agent() {
    for disguise in DISGUISES {
        let (world, _, question) = asked();
        let file = format!("run {disguise} answer {question} 'Yes, deploy now' 2>&1\nreply {{result}}\n");
        world.file("sneaky.md", file);
        let outcome = world.run(&["spawn", "sneaky.md"]);
        let said = outcome.succeeds().stdout.clone();
        assert!(said.contains("error: agents cannot answer questions"), "{disguise}: {outcome}");
        assert_eq!(world.questions().len(), 1, "{disguise}");
    }
}

#[test]
fn what_is_for_people_is_refused_to_agents_in_disguise() {
    for command in ["gc --older-than 0s", "fsck --repair", "export ID", "import -", "import x --trust"] {
        let (world, id, _) = asked();
        let file = format!("run {} {} 2>&1 < /dev/null\nreply {{result}}\n", DISGUISES[0], command.replace("ID", &id));
        world.file("sneaky.md", file);
        let outcome = world.run(&["spawn", "sneaky.md"]);
        let said = outcome.succeeds().stdout.clone();
        assert!(said.contains("error: agents cannot "), "{command}: {outcome}");
        assert!(said.contains("hint: process ") && said.contains(", above this one, belongs to agent "), "{said}");
    }
}

#[test]
fn an_agent_in_disguise_starts_no_chain_of_its_own() {
    let world = World::new();
    world.file("root.md", format!("run {} spawn child.md --max-budget-usd 99 2>&1\nreply {{result}}\n", DISGUISES[0]));
    world.file("child.md", "reply done\n");
    let outcome = world.run(&["spawn", "root.md"]);
    assert!(outcome.succeeds().stdout.contains("agents cannot set limits"), "{outcome}");
    world.file("root.md", format!("run {} spawn child.md\nreply {{result}}\n", DISGUISES[0]));
    world.run(&["spawn", "root.md"]).prints("done");
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json().as_array().map(Vec::len), Some(2), "its child is its child");
}

/// Claude Code tells every command in which session it runs, and the records tell whose session that is.
#[test]
fn what_runs_in_an_agents_session_is_an_agent() {
    let (world, _, question) = asked();
    let session = world.session(0);
    let refused = world.command(["answer", &question, "yes"]).with("CLAUDE_CODE_SESSION_ID", &session).run();
    refused.exits_with(2);
    assert!(refused.stderr.contains("agents cannot answer questions"), "{refused}");
    assert!(refused.stderr.contains("this runs in the Claude session of agent "), "{refused}");
    let theirs = "4f2c1a90-0000-4000-8000-000000000000";
    world.command(["answer", &question, "yes"]).with("CLAUDE_CODE_SESSION_ID", theirs).run().succeeds();
}

/// A command that waits for a file `go` and then runs another, without any mark.
fn cut_loose(command: &str) -> String {
    let wait = "until [ -e go ]; do sleep 0.02; done";
    let answer = format!("{wait}; {command} >out.tmp 2>&1; mv out.tmp out");
    let unmarked = "env -u AGENT_CLI_AGENT_ID -u AGENT_CLI_ATTEMPT -u CLAUDE_CODE_SESSION_ID";
    format!("({unmarked} setsid sh -c '{answer}' >/dev/null 2>&1 </dev/null &)")
}

#[cfg(target_os = "linux")]
#[test]
fn what_an_agent_cuts_loose_stays_below_its_runner() {
    let (world, id, question) = asked();
    let refused = [
        (format!("answer {question} yes"), "agents cannot answer questions"),
        (format!("rm --yes {id}"), "agents cannot remove chains"),
        ("config set spawn.model other".to_owned(), "agents cannot change settings"),
        ("init --user --yes".to_owned(), "agents cannot change what all agents are told"),
    ];
    are_refused_to_what_is_cut_loose(&world, &refused);
    assert_eq!(world.questions().len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn what_an_agent_cuts_loose_changes_no_chain() {
    let (world, id, _) = asked_in_a_file();
    let refused = [
        (format!("resume {id} --max-budget-usd 999"), "agents cannot change how chains continue"),
        (format!("resume {id} --permission-mode bypassPermissions"), "agents cannot change how chains continue"),
        (format!("tell {id} Hello"), "agents can send messages only to agents that they have started"),
    ];
    are_refused_to_what_is_cut_loose(&world, &refused);
}

/// Fails the test if one of these commands is not refused like this to what an agent has left running.
#[cfg(target_os = "linux")]
fn are_refused_to_what_is_cut_loose(world: &World, commands: &[(String, &str)]) {
    let then = "touch go; until [ -e out ]; do sleep 0.02; done; cat out; rm go out";
    for (command, refusal) in commands {
        world.file(
            "sneaky.md",
            format!("run {}\nrun {then}\nreply {{result}}\n", cut_loose(&format!("agent-cli {command}"))),
        );
        let said = world.run(&["spawn", "sneaky.md"]).succeeds().stdout.clone();
        assert!(said.contains(refusal), "{command}: {said}");
        // With a server, it stays below the guard of the agent.
        assert!(said.contains("which runs agents") || said.contains("belongs to agent"), "{said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_an_agent_cuts_loose_still_resumes_a_chain() {
    let (world, id, _) = asked_in_a_file();
    let then = "touch go; until [ -e out ]; do sleep 0.02; done";
    let resume = cut_loose(&format!("agent-cli resume {id}"));
    world.file("sneaky.md", format!("run {resume}\nrun {then}\nreply done\n"));
    world.run(&["spawn", "sneaky.md"]).prints("done");
    let said = std::fs::read_to_string(world.project().join("out")).expect("it ran");
    assert!(said.contains("SGN_PEND_ONGOING"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_call_without_marks_decides_nothing_in_another_state_directory() {
    let (other, id, question) = asked_in_a_file();
    let world = World::new().without("AGENT_CLI_STORE");
    let unmarked = "env -u AGENT_CLI_AGENT_ID -u AGENT_CLI_ATTEMPT -u CLAUDE_CODE_SESSION_ID";
    let call = format!("{unmarked} AGENT_CLI_STATE_DIR={} agent-cli", other.state().display());
    for command in
        [format!("answer {question} yes"), format!("tell {id} Hello"), format!("resume {id} --max-budget-usd 999")]
    {
        world.file("sneaky.md", format!("run {call} {command} 2>&1\nreply {{result}}\n"));
        let said = world.run(&["spawn", "sneaky.md"]).succeeds().stdout.clone();
        assert!(said.contains("error: agents can"), "{command}: {said}");
    }
    assert_eq!(other.questions().len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn neither_the_name_of_a_runner_nor_its_options_hide_it() {
    let (world, id, question) = asked();
    let copied = world.project().join("agent-cli");
    std::fs::copy(programs::agent_cli(), &copied).unwrap();
    let renamed = world.project().join("renamed");
    std::fs::copy(programs::agent_cli(), &renamed).unwrap();
    let then = "touch go; until [ -e out ]; do sleep 0.02; done; cat out; rm go out";
    let answer = format!("agent-cli answer {question} yes");
    let copy = format!("./agent-cli rm --yes {id}");
    for (runner, options, command) in [
        (programs::agent_cli(), &["--color", "never"][..], &answer),
        (programs::agent_cli(), &[], &copy),
        (renamed, &[][..], &answer),
    ] {
        world.file("sneaky.md", format!("run {}\nrun {then}\nreply {{result}}\n", cut_loose(command)));
        let said = world.program(runner, [options, &["spawn", "sneaky.md"]].concat()).run().succeeds().stdout.clone();
        assert!(said.contains("agents cannot"), "{options:?} {command}: {said}");
        assert!(said.contains("which runs agents") || said.contains("belongs to agent"), "{said}");
    }
    assert_eq!(world.questions().len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_person_answers_below_what_runs_no_agents() {
    let (world, _, question) = asked();
    // The editor stands for a shell that a person starts in it.
    let editor =
        world.executable("editor", format!("#!/bin/sh\nexec agent-cli answer {question} yes >answered 2>&1\n"));
    world.command(["config", "edit"]).with("VISUAL", editor.to_str().unwrap()).run();
    let said = std::fs::read_to_string(world.project().join("answered")).expect("it ran");
    assert!(!said.contains("agents cannot"), "{said}");
    assert!(world.questions().is_empty(), "{said}");
}

#[test]
fn a_command_that_is_waited_for_does_not_answer() {
    for disguise in ["agent-cli", DISGUISES[0], DISGUISES[1]] {
        let world = World::new();
        world.file("other.md", "ask Deploy?\nreply {result}\n");
        world.spawn_paused("other.md");
        let question = world.question();
        let command = format!("{disguise} answer {question} yes >out 2>&1");
        world.file("root.md", format!("wait --command '{}'\nreply over\n", command.replace('\'', "'\\''")));
        let id = world.spawn_paused("root.md");
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
        let said = std::fs::read_to_string(world.project().join("out")).expect("it ran");
        assert!(said.contains("agents cannot answer questions"), "{disguise}: {said}");
        assert_eq!(world.questions().len(), 1);
    }
}

#[test]
fn a_command_that_is_waited_for_requests_nothing() {
    let world = World::new();
    world.file("child.md", "reply done\n");
    world.file("root.md", "wait --command 'agent-cli spawn child.md >out 2>&1'\nreply over\n");
    let id = world.spawn_paused("root.md");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    let said = std::fs::read_to_string(world.project().join("out")).expect("it ran");
    assert!(said.contains("the turn that made this call has ended"), "{said}");
    assert_eq!(world.starts(), 1);
}

#[test]
fn what_only_a_person_continues_is_said_with_the_command() {
    let world = World::with_hooks();
    world.file("asks.md", "ask When?\nreply {result}\n");
    world.file("both.md", "spawn asks.md other.md\nreply {results}\n");
    world.file("other.md", "ask Where?\nreply {result}\n");
    let watch = world.command(["watch"]).start();
    let paused = world.spawn_paused("asks.md");
    world.run(&["pause", &paused]).succeeds();
    insta::assert_snapshot!(world.run(&["answer", &world.questions()[0].1, "now"]), @"
    agent-cli resume [ID1]
    --- stderr
    answer recorded; the chain is paused, and continues with:
    --- exit status: 0
    ");
    let broke = world.run(&["spawn", "asks.md", "--max-budget-usd", "0.001"]).started();
    let answered = world.run(&["answer", &broke, "now", "--json"]).json();
    assert_eq!(answered["next"], format!("agent-cli resume {broke} --max-budget-usd USD"));
    assert_eq!((&answered["continued_by"], &answered["can_continue"]), (&Value::Null, &false.into()));
    watch.signal(rustix::process::Signal::TERM);
    watch.ends().succeeds();
    world.run(&["spawn", "both.md"]).started();
    let member = world
        .log()
        .starts
        .iter()
        .rev()
        .find(|start| start.prompt.contains("asks.md"))
        .expect("it was started")
        .session()
        .to_owned();
    world.run(&["pause", &member]).succeeds();
    let answered = world.run(&["answer", &member, "now", "--json"]).json();
    assert_eq!(answered["next"], format!("agent-cli resume {member}"));
}

#[test]
fn nobody_is_told_to_resume_what_a_watch_continues() {
    let world = World::new();
    world.file("two.md", "ask one? &\nask two? &\nreply {results}\n");
    let two = world.spawn_paused("two.md");
    let first = asking(&world, "zero?");
    let watch = world.command(["watch"]).start();
    world.answer_to("zero?", "now");
    wait_until("it watches", || world.run(&["show", &first, "--json"]).json()["status"] == "done");
    let questions = world.questions();
    let id = |asked: &str| questions.iter().find(|(text, _)| text == asked).expect("it is open").1.clone();
    let polled = world.run(&["resume", &two]);
    assert!(polled.stderr.contains(" ANSWER, then a running agent-cli watch continues the chain\n"), "{polled}");
    let waits = world.run(&["answer", &id("one?"), "now"]);
    assert_eq!(waits.stdout, "");
    assert!(waits.stderr.ends_with("a running agent-cli watch continues the chain\n"), "{waits}");
    let first = world.run(&["answer", &id("two?"), "now", "--json"]).json();
    assert_eq!(first["continued_by"], "watch");
    watch.signal(rustix::process::Signal::INT);
    watch.ends();
    let world = World::new();
    asking(&world, "three?");
    let alone = world.run(&["answer", &world.question(), "now"]);
    assert!(alone.stdout.starts_with("agent-cli resume "), "{alone}");
}
