//! The built-in AskUserQuestion, of agents at any depth.

use serde_json::{Value, json};

use crate::birthday::shares_its_prefix;
use crate::chain::Chain;
use crate::support::extent::is_whole;
use crate::support::{
    Conversation, MessagesApi, RecordedRequest, Turn, on_every_version, on_every_version_of_a_whole_run,
};

on_every_version!(
    the_questions_of_a_call_are_answered_in_any_order,
    questions_beside_other_calls_are_all_answered,
    a_long_answer_is_delivered_to_the_byte,
    without_hooks_there_is_no_such_tool,
    where_hooks_are_switched_off_the_agent_is_told_another_way,
    a_prompt_tool_of_the_user_gets_the_questions,
    a_subagent_cannot_ask,
    a_half_answered_call_waits_through_polls_and_lost_transcripts
);

on_every_version_of_a_whole_run!(what_is_no_question_is_refused, a_grandchild_asks_with_options);

fn question(text: &str, multi_select: bool, labels: &[&str]) -> Value {
    let options: Vec<_> = labels.iter().map(|label| json!({"label": label, "description": "as it says"})).collect();
    json!({"question": text, "header": "Header", "multiSelect": multi_select, "options": options})
}

fn asking(questions: &[Value]) -> Turn {
    Turn::call("AskUserQuestion", json!({"questions": questions}))
}

/// A root that makes these calls and then replies with their results, in the order of the calls.
fn caller(version: &str, calls: impl Fn() -> Turn + Send + Sync + 'static) -> Chain {
    let chain = Chain::with_model(version, MessagesApi::start(move |said| replying(said, &calls)));
    chain.home.write("ins.md", "Do what the model does.");
    chain
}

fn replying(said: &Conversation, calls: impl Fn() -> Turn) -> Turn {
    let results: Vec<_> = said.results_by_call().into_iter().map(|(text, _)| text).collect();
    if results.is_empty() { calls() } else { Turn::text(results.join("\n")) }
}

fn has_the_tool(chain: &Chain) -> bool {
    let requests = chain.api.requests();
    let named = |request: &Value| {
        request["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "AskUserQuestion"))
    };
    requests.iter().any(|request| named(&request.body))
}

fn a_grandchild_asks_with_options(version: &str) {
    let chain = Chain::with_model(
        version,
        MessagesApi::start(|said| {
            replying(said, || match said.task() {
                task if task.contains("root.md") => Turn::bash("agent-cli spawn child.md"),
                task if task.contains("child.md") && !task.contains("grand") => {
                    Turn::bash("agent-cli spawn grandchild.md")
                }
                _ => asking(&[question("Which fruit?", true, &["Apple", "Pear", "Fig"])]),
            })
        }),
    );
    for name in ["root.md", "child.md", "grandchild.md"] {
        chain.home.write(name, "Do what the model does.");
    }
    let root = chain.started(&["spawn", "root.md"]);
    let before = chain.api.requests();

    let [listed] = chain.json(&["questions", "--json"]).as_array().unwrap().clone().try_into().unwrap();
    assert_eq!((&listed["question"], &listed["header"]), (&json!("Which fruit?"), &json!("Header")));
    assert_eq!((&listed["multiple"], &listed["options"][1]["key"]), (&json!(true), &json!("Pear")));
    assert_eq!(listed["options"][1]["description"], "as it says");
    let shown = chain.ok(&["questions"]);
    assert!(shown.contains("1. Apple: as it says") && shown.contains("choose one or more"), "{shown}");
    let waits = chain.json(&["resume", &root, "--json"]);
    assert_eq!(waits["waiting_on"][0]["options"][2]["key"], "Fig", "{waits}");

    chain.answer("3, Apple");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains("\"Which fruit?\"=\"Fig, Apple\""), "{reply}");
    assert_eq!(chain.ok(&["resume", &root]), reply);
    let after = chain.api.requests();
    assert_eq!(after.len() - before.len(), 3);
    // The first after the pause is of the agent that asked.
    shares_its_prefix(before.last().unwrap(), &after[before.len()]);
}

fn the_questions_of_a_call_are_answered_in_any_order(version: &str) {
    let chain = caller(version, || {
        asking(&[
            question("A?", false, &["x", "y"]),
            question("B?", true, &["1", "2"]),
            question("C?", false, &["x", "y"]),
            question("D?", false, &["x", "y"]),
        ])
    });
    let root = chain.started(&["spawn", "ins.md"]);
    let asked = chain.api.count();
    for (question, answer) in [("C?", "free \"text\", and\nmore"), ("A?", "2"), ("D?", "x"), ("B?", "2,1")] {
        assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
        chain.answer_to(question, answer);
    }
    assert_eq!(chain.api.count(), asked);
    let reply = chain.ok(&["resume", &root]);
    for (question, answer) in [("A?", "y"), ("B?", "2, 1"), ("C?", "free \"text\", and\nmore"), ("D?", "x")] {
        assert!(reply.contains(&format!("\"{question}\"=\"{answer}\"")), "{reply}");
    }
    assert_eq!(chain.api.count(), asked + 1);
}

/// Two calls of the tool, one of agent-cli, and one that runs, in one turn, the tool first: none of them can be resumed as
/// such.
fn questions_beside_other_calls_are_all_answered(version: &str) {
    let chain = caller(version, || {
        asking(&[question("A?", false, &["x", "y"])])
            .and_call("AskUserQuestion", json!({"questions": [question("B?", false, &["x", "y"])]}))
            .and_bash("agent-cli ask 'C?'")
            .and_bash("echo ran")
    });
    let root = chain.started(&["spawn", "ins.md"]);
    for (question, answer) in [("B?", "2"), ("A?", "1"), ("C?", "1")] {
        assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
        chain.answer_to(question, answer);
    }
    let reply = chain.ok(&["resume", &root]);
    let lines: Vec<_> = reply.lines().collect();
    let [a, b, c, ran] = lines[..] else { panic!("{reply}") };
    assert!(a.contains("\"A?\"=\"x\"") && b.contains("\"B?\"=\"y\""), "{reply}");
    assert_eq!((c, ran), ("1", "ran"));
}

fn a_long_answer_is_delivered_to_the_byte(version: &str) {
    let chain = caller(version, || asking(&[question("A?", false, &["x", "y"])]));
    let root = chain.started(&["spawn", "ins.md"]);
    let long = "0123456789 \"abc\" @ins.md\n".repeat(10_000);
    chain.answer_to("A?", &long);
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains(long.trim_end()), "{} bytes", reply.len());
}

fn without_hooks_there_is_no_such_tool(version: &str) {
    let chain = caller(version, || Turn::text("over"));
    chain.ok(&["spawn", "ins.md", "--no-hooks"]);
    assert!(!has_the_tool(&chain));
    chain.ok(&["spawn", "ins.md"]);
    assert!(has_the_tool(&chain));
}

fn where_hooks_are_switched_off_the_agent_is_told_another_way(version: &str) {
    let chain = caller(version, || asking(&[question("A?", false, &["x", "y"])]));
    let folder = chain.home.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), r#"{"disableAllHooks": true}"#).unwrap();
    let reply = chain.ok(&["spawn", "ins.md"]);
    assert!(reply.contains("run `agent-cli ask QUESTION`"), "{reply}");
    assert_eq!(chain.ok(&["questions", "--json"]), "[]\n");
}

fn a_prompt_tool_of_the_user_gets_the_questions(version: &str) {
    let chain = caller(version, || asking(&[question("A?", false, &["x", "y"])]));
    let reply = chain.ok(&["spawn", "ins.md", "--", "--permission-prompt-tool", "stdio"]);
    assert!(reply.contains("Stream closed"), "{reply}");
    assert_eq!(chain.ok(&["questions", "--json"]), "[]\n");
}

fn what_is_no_question_is_refused(version: &str) {
    for input in [json!({"questions": []}), json!({"questions": [{"question": "A?"}]}), json!({"questions": "A?"})] {
        let asked = input.clone();
        let chain = caller(version, move || Turn::call("AskUserQuestion", asked.clone()));
        let reply = chain.ok(&["spawn", "ins.md"]);
        assert!(!reply.contains("agent-cli"), "{input}: {reply}");
        assert_eq!(chain.ok(&["questions", "--json"]), "[]\n");
    }
}

fn a_subagent_cannot_ask(version: &str) {
    let task = json!({"description": "d", "prompt": "in a subagent", "subagent_type": "general-purpose"});
    let chain = Chain::with_model(
        version,
        MessagesApi::start(move |said| {
            replying(said, || match said.task().contains("in a subagent") {
                true => asking(&[question("A?", false, &["x", "y"])]),
                false => Turn::call("Agent", task.clone()),
            })
        }),
    );
    chain.home.write("ins.md", "Do what the model does.");
    chain.ok(&["spawn", "ins.md"]);
    assert_eq!(chain.ok(&["questions", "--json"]), "[]\n");
    // No version gives the tool to subagents, so far.
    let refused = |request: &RecordedRequest| {
        let last = request.conversation().last_result().map(str::to_owned);
        last.is_some_and(|text| text.contains("AskUserQuestion") || text.contains("a subagent cannot wait"))
    };
    assert!(chain.api.requests().iter().any(refused));
}

/// The frame keeps the tools that it began with, whoever drives it.
fn a_half_answered_call_waits_through_polls_and_lost_transcripts(version: &str) {
    let chain = caller(version, || asking(&[question("A?", false, &["x", "y"]), question("B?", false, &["x", "y"])]));
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer_to("B?", "neither");
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    for transcript in chain.home.transcripts() {
        std::fs::remove_file(transcript).unwrap();
    }
    chain.answer_to("A?", "1");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains("\"A?\"=\"x\"") && reply.contains("\"B?\"=\"neither\""), "{reply}");
}

/// It has the tool in any case, and refuses every call of it.
#[test]
fn a_version_that_cannot_suspend_refuses_the_call() {
    if !is_whole() {
        return;
    }
    let chain = caller("2.1.88", || asking(&[question("A?", false, &["x", "y"])]));
    chain.ok(&["spawn", "ins.md"]);
    assert_eq!(chain.ok(&["questions", "--json"]), "[]\n");
}

#[test]
fn the_first_version_that_can_suspend_asks() {
    if !is_whole() {
        return;
    }
    let chain = caller("2.1.89", || asking(&[question("A?", false, &["x", "y"])]));
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer("2");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains("\"A?\"=\"y\""), "{reply}");
}
