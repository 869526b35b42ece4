//! A chain as a task of an interactive session, and what the server costs agents: nothing.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::processes::{Process, wait_until};
use crate::pty::{Screen, collect_screen, terminal};
use crate::support::{
    Conversation, Hold, Item, MessagesApi, NEWEST, RecordedRequest, Turn, claude, on_the_newest_version,
};

const START: &str = "Start the chain.";
const STARTED: &str = "It has been started.";

/// Starts a chain in the session, and asks for a colour in the chain.
fn model(said: &Conversation) -> Turn {
    let Some(Item::User(first)) = said.items().first() else { return Turn::text("?") };
    let asked = first.contains("Ask for a colour.");
    match (said.calls().count(), said.results_by_call().pop()) {
        (0, _) if asked => Turn::call(
            "AskUserQuestion",
            json!({"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": false,
                "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]}]}),
        ),
        (_, Some((answer, _))) if asked => Turn::text(answer),
        (0, _) if first.contains(START) => Turn::call("mcp__agent-cli__spawn", json!({"prompt": "Ask for a colour."})),
        // The session has ended its turn before, and no person has said anything since.
        _ if said.items().contains(&Item::Assistant(STARTED.to_owned())) => Turn::text("woken"),
        _ => Turn::text(STARTED),
    }
}

/// The requests that tell the session about the end of its task, with the task's result.
fn notifications(chain: &Chain) -> Vec<String> {
    let last = |request: &Value| request["messages"].as_array()?.last().map(Value::to_string);
    let requests = chain.api.requests().into_iter().filter_map(|request| last(&request.body));
    requests.filter(|message| message.contains("<task-notification>")).collect()
}

fn chain() -> Chain {
    let chain = Chain::with_model(NEWEST, MessagesApi::start(model));
    serve_mcp(&chain, &json!({ chain.home.project().to_str().unwrap(): { "hasTrustDialogAccepted": true } }));
    chain
}

/// The user's configuration of Claude Code, with the server in it.
fn serve_mcp(chain: &Chain, projects: &Value) {
    let server = json!({ "command": env!("CARGO_BIN_EXE_agent-cli"), "args": ["mcp"], "alwaysLoad": true });
    let config = json!({
        "hasCompletedOnboarding": true, "theme": "dark", "projects": projects, "mcpServers": { "agent-cli": server },
        "customApiKeyResponses": { "approved": ["dummy"], "rejected": [] },
    });
    std::fs::write(chain.home.home().join(".claude.json"), config.to_string()).unwrap();
}

/// An interactive session at a terminal.
struct Session {
    shown: Screen,
    keyboard: File,
    claude: Child,
    _collected: JoinHandle<String>,
}

impl Session {
    fn start(chain: &Chain, arguments: &[&str]) -> Self {
        let (screen, terminal) = terminal(100, 40, true).unwrap();
        let shown = Screen::new(100, 40);
        let keyboard = screen.try_clone().unwrap();
        let collected = collect_screen(screen, shown.clone());
        let mut command = chain.home.command(claude(NEWEST));
        command.env("AGENT_CLI_CLAUDE", claude(NEWEST)).env("AGENT_CLI_STATE_DIR", chain.state());
        // However long the session takes to show a question.
        command.env("AGENT_CLI_LINGER", "5m");
        command.args(["--allowedTools=mcp__agent-cli__spawn"]).args(arguments).env("TERM", "xterm-256color");
        let folders = std::env::var_os("PATH").unwrap();
        let own = Path::new(env!("CARGO_BIN_EXE_agent-cli")).parent().unwrap().to_owned();
        command.env("PATH", std::env::join_paths([own].into_iter().chain(std::env::split_paths(&folders))).unwrap());
        let copy = || Stdio::from(terminal.try_clone().unwrap());
        let claude = command.stdin(copy()).stdout(copy()).stderr(copy()).spawn().unwrap();
        let session = Self { shown, keyboard, claude, _collected: collected };
        session.shows("❯");
        session
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn shows(&self, text: &str) {
        wait_until(&format!("{text:?} is shown"), || self.shown.text().contains(text));
    }

    /// Kills the session, and nothing else.
    fn kill(mut self) {
        self.claude.kill().unwrap();
        self.claude.wait().unwrap();
    }

    /// Kills the session, its server, and the chain's runner and agent.
    fn kill_with_all_below(mut self) {
        let killed = Process::from_child(&self.claude).kill_with_all_below();
        self.claude.wait().unwrap();
        killed.into_iter().for_each(Process::has_ended);
    }
}

on_the_newest_version!(
    a_chain_is_a_task_of_the_session_that_starts_it,
    a_session_that_was_killed_gets_the_reply_when_it_continues,
    a_session_that_was_killed_while_an_agent_works_gets_the_reply_when_it_continues,
    a_session_that_was_killed_together_with_its_chain_continues_both,
    a_session_gets_the_reply_of_a_chain_that_has_ended_while_no_session_ran,
    an_idle_session_is_told_when_a_question_opens_in_its_project,
    claude_code_finds_nothing_wrong_with_the_plugin,
    neither_the_server_nor_the_plugin_adds_to_an_agents_request,
);

fn a_chain_is_a_task_of_the_session_that_starts_it() {
    let chain = chain();
    let mut session = Session::start(&chain, &[]);
    session.types(START);
    session.shows(START);
    session.types("\r");
    session.shows("requests your input");
    session.shows("Which colour?");
    session.types("\u{1b}");
    session.shows("needs your input");
    session.shows(STARTED);
    let before = chain.api.requests().len();
    // The question is open in every terminal.
    chain.answer("Blue");
    session.shows("woken");
    let told = notifications(&chain);
    assert!(told.len() == 1 && told[0].contains("Which colour?") && told[0].contains("Blue"), "{told:?}");
    // One of the agent, which ends, and one of the session, which gets its reply.
    assert_eq!(chain.api.requests().len(), before + 2, "{}", session.shown.text());
    // The person sat in front of the question, so the agent has waited for the answer.
    assert_eq!(chain.attempts_one_after_the_other(&chain.only_root()), 1);
    session.kill();
}

fn a_session_that_was_killed_gets_the_reply_when_it_continues() {
    let chain = chain();
    let mut session = Session::start(&chain, &[]);
    session.types(START);
    session.shows(START);
    session.types("\r");
    session.shows("Which colour?");
    session.kill();
    let session = Session::start(&chain, &["--continue"]);
    session.shows("Which colour?");
    session.kill();
    chain.answer("Blue");
    chain.ok(&["resume", &chain.only_root()]);
    let session = Session::start(&chain, &["--continue"]);
    session.shows("woken");
    session.kill();
    assert_eq!(notifications(&chain).len(), 1, "it is delivered once");
}

/// A session that has started a chain whose agent works until `hold` is released, and replies "blue".
fn session_with_working_agent(hold: &Hold) -> (Chain, Session) {
    let hold = hold.clone();
    let model = move |said: &Conversation| {
        let Some(Item::User(first)) = said.items().first() else { return Turn::text("?") };
        match said.calls().count() {
            _ if first.contains("Ask for a colour.") => Turn::text("blue").held(&hold),
            0 if first.contains(START) => Turn::call("mcp__agent-cli__spawn", json!({"prompt": "Ask for a colour."})),
            _ if said.items().contains(&Item::Assistant(STARTED.to_owned())) => Turn::text("woken"),
            _ => Turn::text(STARTED),
        }
    };
    let chain = Chain::with_model(NEWEST, MessagesApi::start(model));
    serve_mcp(&chain, &json!({ chain.home.project().to_str().unwrap(): { "hasTrustDialogAccepted": true } }));
    let mut session = Session::start(&chain, &[]);
    session.types(START);
    session.shows(START);
    session.types("\r");
    session.shows(STARTED);
    let asks = |request: &RecordedRequest| request.body["messages"][0].to_string().contains("Ask for a colour.");
    chain.api.wait_until(|requests| requests.iter().any(asks));
    (chain, session)
}

/// The agent's only reply is delivered to the session, once.
fn is_delivered_once(chain: &Chain, session: Session) {
    session.shows("woken");
    let told = notifications(chain);
    assert!(told.len() == 1 && told[0].contains("blue"), "{told:?}");
    session.kill_with_all_below();
    // What the session was told stays told.
    let mut session = Session::start(chain, &["--continue"]);
    let before = chain.api.requests().len();
    session.types("Anything else?");
    session.shows("Anything else?");
    session.types("\r");
    chain.api.wait_until(|requests| requests.len() > before);
    session.kill_with_all_below();
    assert_eq!(notifications(chain).len(), 1, "it is delivered once");
}

fn a_session_that_was_killed_while_an_agent_works_gets_the_reply_when_it_continues() {
    let hold = Hold::new();
    let (chain, session) = session_with_working_agent(&hold);
    session.kill();
    let session = Session::start(&chain, &["--continue"]);
    hold.release();
    is_delivered_once(&chain, session);
    assert_eq!(chain.attempts_one_after_the_other(&chain.only_root()), 1, "the agent was not disturbed");
}

fn a_session_that_was_killed_together_with_its_chain_continues_both() {
    let hold = Hold::new();
    let (chain, session) = session_with_working_agent(&hold);
    session.kill_with_all_below();
    hold.release();
    let session = Session::start(&chain, &["--continue"]);
    is_delivered_once(&chain, session);
    assert_eq!(chain.attempts_one_after_the_other(&chain.only_root()), 2);
}

fn a_session_gets_the_reply_of_a_chain_that_has_ended_while_no_session_ran() {
    let hold = Hold::new();
    let (chain, session) = session_with_working_agent(&hold);
    session.kill();
    hold.release();
    wait_until("the agent has replied", || chain.json(&["ls", "--all", "--json"])[0]["status"] == "done");
    let session = Session::start(&chain, &["--continue"]);
    is_delivered_once(&chain, session);
}

fn an_idle_session_is_told_when_a_question_opens_in_its_project() {
    let model = |said: &Conversation| match said.items().first() {
        Some(Item::User(first)) if first.contains("Use the skill.") => match said.calls().count() {
            0 => Turn::call("Skill", json!({ "skill": "agent-cli:headless-agents" })),
            _ => Turn::text("ready"),
        },
        Some(Item::User(first)) if first.contains("Ask for a colour.") => {
            Turn::bash("agent-cli ask 'Which colour is it?'")
        }
        _ => Turn::text("?"),
    };
    let chain = Chain::with_model(NEWEST, MessagesApi::start(model));
    serve_mcp(&chain, &json!({ chain.home.project().to_str().unwrap(): { "hasTrustDialogAccepted": true } }));
    chain.ok(&["init", "--plugin", "--yes"]);
    let mut session = Session::start(&chain, &["--allowedTools=Skill"]);
    session.types("Use the skill.");
    session.shows("Use the skill.");
    session.types("\r");
    session.shows("ready");
    chain.ok(&["spawn", "--prompt", "Ask for a colour.", "--linger", "0"]);
    let is_told = || {
        chain.api.requests().iter().any(|request| {
            let last = request.body["messages"].as_array().and_then(|messages| messages.last());
            last.is_some_and(|last| last.to_string().contains("asks: \\\"Which colour is it?"))
        })
    };
    wait_until("the session is told", is_told);
    session.kill();
}

fn claude_code_finds_nothing_wrong_with_the_plugin() {
    let chain = Chain::new(NEWEST);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in [repository.to_owned(), repository.join("plugins/agent-cli")] {
        let mut validate = chain.home.command(claude(NEWEST));
        validate.args(["plugin", "validate", "--strict"]).arg(&folder).stdin(Stdio::null());
        let output = validate.output().unwrap();
        assert!(output.status.success(), "{folder:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// The part of an agent's first request that does not depend on its session.
fn first_request(chain: &Chain, made: usize) -> Value {
    let request = chain.api.requests().swap_remove(made);
    ["model", "system", "tools", "messages"].into_iter().map(|part| (part, request.body[part].clone())).collect()
}

fn neither_the_server_nor_the_plugin_adds_to_an_agents_request() {
    let chain = Chain::with_model(NEWEST, MessagesApi::start(|_: &Conversation| Turn::text("done")));
    assert_eq!(chain.ok(&["spawn", "--prompt", "Reply."]), "done\n");
    serve_mcp(&chain, &json!({}));
    chain.ok(&["init", "--plugin", "--yes"]);
    let installed = || {
        let mut list = chain.home.command(claude(NEWEST));
        let output = list.args(["plugin", "list", "--json"]).stdin(Stdio::null()).output().unwrap();
        let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        // Newer versions list their own plugins, too.
        all.into_iter().find(|plugin| plugin["id"] == "agent-cli@agent-cli")
    };
    let plugin = installed().expect("it is installed");
    assert_eq!((&plugin["folderVersion"], &plugin["enabled"]), (&env!("CARGO_PKG_VERSION").into(), &true.into()));
    assert_eq!(chain.ok(&["spawn", "--prompt", "Reply."]), "done\n");
    assert_eq!(first_request(&chain, 1), first_request(&chain, 0));
    // A session that no chain has started has both.
    let mut plain = chain.home.command(claude(NEWEST));
    assert!(plain.args(["-p", "Reply."]).stdin(Stdio::null()).output().unwrap().status.success());
    let request = first_request(&chain, 2).to_string();
    assert!(request.contains("mcp__agent-cli__spawn") && request.contains("agent-cli:headless-agents"), "{request}");
    chain.ok(&["uninit", "--plugin", "--yes"]);
    assert_eq!(installed(), None);
}
