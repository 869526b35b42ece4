//! Plans that a person approves or refuses, of agents two levels deep.

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::processes::wait_until;
use crate::support::{
    Conversation, Hold, MessagesApi, NEWEST, Turn, on_every_version, on_every_version_of_a_whole_run, processes_of,
};

on_every_version!(an_approved_plan_is_carried_out_in_the_chosen_mode_from_then_on,);

on_every_version_of_a_whole_run!(
    a_refused_plan_leaves_the_agent_in_plan_mode, a_plan_survives_a_killed_runner_and_a_killed_claude,
    no_agent_approves_a_plan, an_agent_that_entered_plan_mode_is_asked_about_too,
);

const PLAN: &str = "# The plan\n\n1. write made.txt\n\u{1b}[2J2. say so\n";

/// The file in which Claude Code expects the plan.
fn plan_file(said: &Conversation) -> String {
    let all = said.context();
    let end = all.find(".md").into_iter().chain(all.match_indices(".md").map(|(at, _)| at));
    let paths = end.map(|at| &all[..at + 3]).filter_map(|text| text.rsplit([' ', '\n', '`', '"']).next());
    paths.into_iter().find(|path| path.contains("/plans/")).expect("the agent is told where").to_owned()
}

fn write(file: &str, content: &str) -> Turn {
    Turn::call("Write", json!({"file_path": file, "content": content}))
}

/// A root that starts a child in plan mode, which takes `steps` one after the other and then replies with `done`.
fn planning(
    version: &str,
    spawn: &'static str,
    steps: impl Fn(&Conversation, usize, &str) -> Turn + Send + Sync + 'static,
) -> Chain {
    let loads = version == NEWEST;
    let project = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let of = std::sync::Arc::clone(&project);
    let model = move |said: &Conversation| match (said.task().contains("root.md"), said.last_result()) {
        (true, None) => Turn::bash(spawn),
        (true, Some(reply)) => Turn::text(format!("the child says: {reply}")),
        (false, _) => match said.results().count() {
            0 if loads => Turn::load("EnterPlanMode,ExitPlanMode"),
            0 => Turn::bash("true"),
            made => steps(said, made - 1, of.get().unwrap()),
        },
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    project.set(chain.home.project().display().to_string()).unwrap();
    chain.home.write("root.md", "Start child.md.");
    chain.home.write("child.md", "Plan it.");
    chain
}

const IN_PLAN_MODE: &str = "agent-cli spawn --permission-mode plan child.md";

fn only_question(chain: &Chain) -> Value {
    let questions = chain.json(&["questions", "--json"]);
    assert_eq!(questions.as_array().map(Vec::len), Some(1), "{questions}");
    questions[0].clone()
}

fn an_approved_plan_is_carried_out_in_the_chosen_mode_from_then_on(version: &str) {
    let chain = planning(version, IN_PLAN_MODE, |said, step, project| match step {
        0 => write(&plan_file(said), PLAN),
        1 => Turn::call("ExitPlanMode", json!({})),
        2 => write(&format!("{project}/made.txt"), "x"),
        3 => Turn::bash("agent-cli ask 'More?'"),
        4 => write(&format!("{project}/more.txt"), "x"),
        _ => Turn::text("done"),
    });
    let root = chain.started(&["spawn", "root.md", "--permission-mode", "acceptEdits"]);
    assert!(processes_of(&chain.state()).is_empty());
    let question = only_question(&chain);
    assert_eq!((&question["kind"], &question["text"]), (&json!("plan"), &json!(PLAN)), "{question}");
    assert_eq!(question["modes"], json!(["default", "acceptEdits", "dontAsk"]));
    let id = question["id"].as_str().unwrap();
    for shown in [chain.ok(&["questions", id]), chain.ok(&["show", id])] {
        assert!(shown.contains("  │  1. write made.txt\n  │  \\u{1b}[2J2. say so\n"), "{shown}");
    }
    let waits = chain.run(&["resume", &root]);
    assert_eq!(waits.out, "SGN_PEND_ONGOING\n");
    assert!(waits.err.contains(&format!("of its plan {}: # The plan", &id[..8])), "{waits:?}");
    let wrong = chain.run(&["answer", id, "allow", "--mode", "bypassPermissions"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("default, acceptEdits, dontAsk"), "{wrong:?}");

    let before = chain.api.count();
    chain.ok(&["answer", id, "allow", "--mode", "acceptEdits"]);
    chain.started(&["resume", &root]);
    let told = chain.api.requests()[before].conversation();
    let result = told.last_result().unwrap();
    assert!(result.starts_with("User has approved your plan.") && result.ends_with(PLAN), "{result}");
    assert!(chain.home.project().join("made.txt").is_file());
    chain.answer("no");
    assert_eq!(chain.ok(&["resume", &root]), "the child says: done\n");
    assert!(chain.home.project().join("more.txt").is_file(), "the mode holds after the next pause");
}

fn a_refused_plan_leaves_the_agent_in_plan_mode(version: &str) {
    let chain = planning(version, IN_PLAN_MODE, |said, step, project| match step {
        0 => write(&plan_file(said), PLAN),
        1 | 3 => Turn::call("ExitPlanMode", json!({})),
        2 => write(&format!("{project}/made.txt"), "x"),
        _ => Turn::text(format!("{:?}", said.results().next_back().unwrap())),
    });
    let root = chain.started(&["spawn", "root.md", "--permission-mode", "acceptEdits"]);
    chain.answer("deny not yet: ask Ann first");
    chain.started(&["resume", &root]);
    assert!(!chain.home.project().join("made.txt").exists(), "it is still in plan mode");
    let requests = chain.api.requests();
    let refused = requests
        .iter()
        .any(|request| request.conversation().results().any(|result| result == ("not yet: ask Ann first", true)));
    assert!(refused);
    chain.answer("deny");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains("you are still in plan mode"), "{reply}");
}

/// Its own mode is the first that is offered.
fn an_agent_that_entered_plan_mode_is_asked_about_too(version: &str) {
    let chain = planning(version, "agent-cli spawn child.md", |said, step, project| match step {
        0 => Turn::call("EnterPlanMode", json!({})),
        1 => Turn::call("ExitPlanMode", json!({})),
        2 => write(&format!("{project}/made.txt"), "x"),
        _ => Turn::text(format!("{:?}", said.results().next_back().unwrap())),
    });
    let root = chain.started(&["spawn", "root.md", "--permission-mode", "acceptEdits"]);
    let question = only_question(&chain);
    assert_eq!((&question["kind"], &question["text"]), (&json!("plan"), &Value::Null), "{question}");
    assert_eq!(question["modes"], json!(["acceptEdits", "default", "dontAsk"]));
    assert!(chain.ok(&["questions", question["id"].as_str().unwrap()]).contains("no plan was written"));
    chain.answer("allow");
    let reply = chain.ok(&["resume", &root]);
    assert!(chain.home.project().join("made.txt").is_file(), "{reply}");
    let told = chain.api.requests().into_iter().rev().map(|request| request.conversation());
    let approved = ("User has approved exiting plan mode. You can now proceed.", false);
    assert!(told.into_iter().any(|said| said.results().any(|result| result == approved)));
}

/// The runner dies while the plan is written, and `claude` right after it was approved.
fn a_plan_survives_a_killed_runner_and_a_killed_claude(version: &str) {
    let (holds, first) = ([Hold::new(), Hold::new()], std::sync::atomic::AtomicBool::new(true));
    let held = holds.clone();
    let chain = planning(version, IN_PLAN_MODE, move |said, step, project| match step {
        0 => write(&plan_file(said), PLAN),
        1 => Turn::call("ExitPlanMode", json!({})).held(&held[0]),
        2 if first.swap(false, std::sync::atomic::Ordering::Relaxed) => Turn::text("never heard").held(&held[1]),
        2 => write(&format!("{project}/made.txt"), "x"),
        _ => Turn::text("done"),
    })
    .without_lingering();
    let runner = chain.start(&["spawn", "root.md", "--permission-mode", "acceptEdits"]);
    chain.api.wait_until(|requests| requests.len() == 4);
    let claude = runner.claude();
    runner.killed();
    holds[0].release();
    claude.has_ended();
    let root = chain.only_root();
    assert_eq!(chain.ok(&["resume", &root]).lines().next().map(|line| line.starts_with("SGN_PEND")), Some(true));
    let id = only_question(&chain)["id"].as_str().unwrap().to_owned();
    chain.ok(&["answer", &id, "allow acceptEdits"]);
    let resume = chain.start(&["resume", &root]);
    chain.api.wait_until(|requests| requests.len() == 5);
    resume.claude().kill();
    assert_eq!(resume.ends().code, Some(1));
    holds[1].release();
    assert_eq!(chain.ok(&["resume", &root]), "the child says: done\n");
    assert!(chain.home.project().join("made.txt").is_file());
    assert_eq!(chain.json(&["questions", "--json"]), json!([]), "nobody is asked twice");
}

/// Neither the agent itself approves it, beside the call or later, nor another agent.
fn no_agent_approves_a_plan(version: &str) {
    const APPROVE: &str = "agent-cli questions --json > asked; agent-cli answer $(cat id) allow --mode bypassPermissions; \
        agent-cli answer --replace $(cat id) allow; echo $?";
    let hold = Hold::new();
    let held = hold.clone();
    let loads = version == NEWEST;
    let model = move |said: &Conversation| {
        let made = said.results().count();
        let replies = || Turn::text(said.result_texts().join("\n"));
        match (said.task(), made) {
            (task, 0) if task.contains("root.md") => Turn::bash("agent-cli spawn planner.md hostile.md"),
            (task, 0) if task.contains("hostile.md") => Turn::bash(APPROVE).held(&held),
            (task, 0) if task.contains("planner.md") && loads => Turn::load("EnterPlanMode,ExitPlanMode"),
            (task, 0) if task.contains("planner.md") => Turn::bash("true"),
            (task, 1) if task.contains("planner.md") => Turn::call("EnterPlanMode", json!({})),
            (task, 2) if task.contains("planner.md") => Turn::bash(APPROVE).and_call("ExitPlanMode", json!({})),
            (task, 4) if task.contains("planner.md") => Turn::bash(APPROVE),
            _ => replies(),
        }
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    for name in ["root.md", "planner.md", "hostile.md"] {
        chain.home.write(name, "Do what you do.");
    }
    chain.home.write("id", "none");
    let allow = "--allowedTools=Bash(agent-cli:*),Bash(cat:*),Bash(echo:*)";
    let runner = chain.start(&["spawn", "root.md", "--permission-mode", "bypassPermissions", "--", allow]);
    chain
        .api
        .wait_until(|requests| requests.iter().any(|request| request.conversation().task().contains("hostile.md")));
    wait_until("the plan is asked about", || chain.json(&["questions", "--json"]) != json!([]));
    let question = only_question(&chain);
    chain.home.write("id", question["id"].as_str().unwrap());
    hold.release();
    assert_eq!(runner.ends().code, Some(0));
    assert_eq!(only_question(&chain)["id"], question["id"], "nobody has answered");
    chain.answer("deny not yet");
    let reply = chain.ok(&["resume", &chain.only_root()]);
    let refused = reply.matches("agents cannot answer questions").count();
    // In plan mode most commands are refused before they run.
    assert!(refused >= 2 && !reply.contains("the answer is recorded"), "{reply}");
    assert!(reply.contains("not yet"), "{reply}");
    let asked = chain.json(&["questions", "--all", "--json"]);
    assert_eq!((asked.as_array().map(Vec::len), &asked[0]["answer"]), (Some(1), &json!("deny not yet")), "{asked}");
}
