//! An answer that arrives before the asking agent has ended is delivered by the same run.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::chain::Chain;
use crate::processes::{Gate, wait_until};
use crate::support::{Conversation, MessagesApi, Turn, on_every_version, on_every_version_of_a_whole_run};

on_every_version!(an_answer_that_comes_before_claude_has_ended_is_delivered);

on_every_version_of_a_whole_run!(a_call_that_is_allowed_before_its_runner_has_seen_the_end_runs);

fn is_one_asked(chain: &Chain) -> bool {
    chain.json(&["questions", "--json"]).as_array().is_some_and(|asked| asked.len() == 1)
}

fn an_answer_that_comes_before_claude_has_ended_is_delivered(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "ask When?\nreply {result}\n");
    // Claude Code suspends the call when all hooks have ended, and the user's ends when the test lets it.
    let gate = Gate::new(chain.home.home().join("gate"));
    let hook = json!({"type": "command", "command": gate.wait_command()});
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
    fs::create_dir_all(chain.home.home().join(".claude")).unwrap();
    fs::write(chain.home.home().join(".claude/settings.json"), settings.to_string()).unwrap();

    let runner = chain.start(&["spawn", "ins.md"]);
    gate.reached();
    wait_until("the question is recorded", || is_one_asked(&chain));
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &chain.only_root()]), "SGN_PEND_ONGOING\n");
    // It is asked about the call a second time, when that returns the answer.
    gate.open();
    gate.open();
    let said = runner.ends();
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "Jan 1st\n", ""), "{said:?}");
    assert_eq!(chain.api.count(), 3, "it read, asked and replied");
}

fn a_call_that_is_allowed_before_its_runner_has_seen_the_end_runs(version: &str) {
    let chain = Chain::with_model(
        version,
        MessagesApi::start(|said: &Conversation| match said.last_result() {
            Some(result) => Turn::text(result),
            None => Turn::bash("echo x >> made; echo ran"),
        }),
    );
    chain.home.write("ins.md", "Do what the model does.");
    let runner = chain.start(&["spawn", "ins.md", "--on-permission", "ask"]);
    chain.api.wait_until(|requests| requests.len() == 1);
    let claude = runner.claude();
    runner.signal(Signal::STOP);
    wait_until("the call is recorded", || is_one_asked(&chain));
    claude.has_ended();
    chain.answer("allow");
    runner.signal(Signal::CONT);
    let said = runner.ends();
    assert_eq!((said.code, said.out.as_str()), (Some(0), "ran\n"), "{said:?}");
    assert_eq!(fs::read_to_string(chain.home.project().join("made")).unwrap(), "x\n");
}
