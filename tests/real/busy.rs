//! An agent two levels deep with tasks and endless background work, when it pauses or is killed.

use std::fs;

use serde_json::{Value, json};

use crate::beside::{Beside, Task, started, task};
use crate::chain::Chain;
use crate::processes::wait_until;
use crate::support::extent::some_of;
use crate::support::{
    Conversation, Hold, MessagesApi, NEWEST, Turn, on_every_version, on_every_version_of_a_whole_run,
};

on_every_version!(it_pauses_and_its_server_is_ended, it_stops_for_an_approval_and_its_server_is_ended);

on_every_version_of_a_whole_run!(its_claude_is_killed_and_it_continues, its_runner_is_killed_and_it_continues);

/// One of the models that are offered tools for tasks.
const MODEL: &str = "claude-sonnet-4-5-20250929";
/// `beside` covers commands and subagents in the background of killed agents.
const KILLED_WITH: [Beside; 3] = [Beside::Late, Beside::Monitor, Beside::Workflow];
const ASK: &str = "agent-cli ask 'Go?'";

/// A chain whose root starts an agent that creates three tasks, begins one, starts something in its background, and then does
/// something else.
struct Busy {
    chain: Chain,
    /// Holds back the agent's next step.
    then: Hold,
    _never: Hold,
}

impl Busy {
    fn new(version: &'static str, beside: Beside, then: &'static str) -> Self {
        let (never, hold) = (Hold::new(), Hold::new());
        // A line of a monitor would make the agent continue.
        let server = if beside == Beside::Monitor { "sleep 100000" } else { "echo ready; sleep 100000" };
        let (waits, held) = (never.clone(), hold.clone());
        let (tool, input) = beside.call(server);
        let api = MessagesApi::start(move |said| match task(said) {
            Task::Subagent => Turn::text("done").held(&waits),
            Task::Child => agent(version, said, (tool, &input), then, &held),
            Task::Agent => match said.last_result() {
                None => Turn::bash("agent-cli spawn child.md"),
                Some(reply) => Turn::text(reply),
            },
        });
        let chain = Chain::with_model(version, api).without_lingering();
        chain.home.write("root.md", "Start an agent.\n");
        chain.home.write("child.md", "Do what you do.\n");
        Self { chain, then: hold, _never: never }
    }

    /// Waits until the agent takes the next step.
    fn is_there(&self) {
        let is_busy = |said: &Conversation| matches!(task(said), Task::Child) && started(said);
        self.chain.api.wait_until(|requests| requests.iter().any(|request| is_busy(&request.conversation())));
    }

    /// Claude Code writes a little later than it asks.
    fn is_written(&self) -> bool {
        let results = |text: String| text.lines().filter(|line| line.contains("\"toolUseResult\"")).count();
        let written = self.chain.home.transcripts().into_iter().filter_map(|path| fs::read_to_string(path).ok());
        let asked = self.chain.api.requests().pop().map(|request| request.conversation());
        let made = asked.map_or(0, |said| said.results().count());
        written.map(results).any(|written| written >= made)
    }

    /// The waiting agent gets its answer: it has its tasks and was told once that the background work has ended, and whether it
    /// was cut short.
    #[track_caller]
    fn continues(&self, beside: Beside, root: &str, answer: &str, cut_short: bool) {
        self.chain.nothing_runs();
        self.chain.answer(answer);
        let said = self.chain.ok(&["resume", root]);
        for line in ["#1 [in_progress] one", "#2 [pending] two", "#3 [pending] three", "Task #4 created"] {
            assert!(said.contains(line), "{said}");
        }
        let last = self.chain.api.requests().into_iter().rev().map(|request| request.conversation());
        let last = last.into_iter().find(|said| matches!(task(said), Task::Child)).unwrap();
        let told: Vec<_> = last.user_texts().collect();
        let all = format!("{told:?} {}", last.context());
        assert_eq!(all.matches("<task-notification>").count(), 1, "{beside:?}: {told:?}");
        assert_eq!(all.contains("Your last turn was cut short"), cut_short, "{beside:?}: {told:?}");
        self.chain.nothing_runs();
        self.chain.ok(&["fsck"]);
    }
}

/// Newer versions offer some tools only when they are asked for.
fn agent(version: &str, said: &Conversation, (tool, input): (&'static str, &Value), then: &str, held: &Hold) -> Turn {
    let create = |subject: &str| ("TaskCreate", json!({"subject": subject, "description": "Do it."}));
    let search = json!({"query": "select:TaskCreate,TaskUpdate,TaskList,Monitor", "max_results": 9});
    let begin = ("TaskUpdate", json!({"taskId": "1", "status": "in_progress"}));
    let mut calls = vec![create("one"), create("two"), create("three"), begin, (tool, input.clone())];
    calls.extend([("Bash", json!({"command": then})), ("TaskList", json!({})), create("four")]);
    if version == NEWEST {
        calls.insert(0, ("ToolSearch", search));
    }
    let made = said.calls().count();
    match calls.get(made) {
        Some((name, input)) if input["command"] == then => Turn::call(name, input.clone()).held(held),
        Some((name, input)) => Turn::call(name, input.clone()),
        None => Turn::text(said.result_texts().join("\n")),
    }
}

const SPAWN: [&str; 6] = ["spawn", "root.md", "--model", MODEL, "--permission-mode", "bypassPermissions"];

fn it_pauses_and_its_server_is_ended(version: &'static str) {
    let busy = Busy::new(version, Beside::Command, ASK);
    busy.then.release();
    let root = busy.chain.started(&SPAWN);
    busy.continues(Beside::Command, &root, "yes", false);
}

fn it_stops_for_an_approval_and_its_server_is_ended(version: &'static str) {
    let busy = Busy::new(version, Beside::Command, "touch made");
    busy.then.release();
    let asking = ["--on-permission", "ask", "--", "--allowedTools=Bash(echo:*),Bash(sleep:*)"];
    let root = busy.chain.started(&[&SPAWN[..4], &asking].concat());
    busy.continues(Beside::Command, &root, "allow", false);
    assert!(busy.chain.home.project().join("made").exists());
}

fn its_claude_is_killed_and_it_continues(version: &'static str) {
    for beside in some_of(KILLED_WITH, 1).filter(|beside| beside.is_there(version)) {
        let busy = Busy::new(version, beside, ASK);
        let runner = busy.chain.start(&SPAWN);
        busy.is_there();
        wait_until("the transcript has it", || busy.is_written());
        runner.claude().kill();
        let said = runner.ends();
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{beside:?}: {said:?}");
        busy.chain.nothing_runs();
        busy.then.release();
        let root = busy.chain.only_root();
        assert_eq!(busy.chain.started(&["resume", &root]), root, "{beside:?}");
        busy.continues(beside, &root, "yes", true);
    }
}

fn its_runner_is_killed_and_it_continues(version: &'static str) {
    for beside in some_of(KILLED_WITH, 1).filter(|beside| beside.is_there(version)) {
        let busy = Busy::new(version, beside, ASK);
        let runner = busy.chain.start(&SPAWN);
        busy.is_there();
        let claude = runner.claude();
        runner.killed();
        busy.then.release();
        let root = busy.chain.only_root();
        wait_until("a resume concludes the attempt", || {
            let said = busy.chain.run(&["resume", &root]);
            assert_eq!(said.code, Some(0), "{beside:?}: {said:?}");
            said.out.starts_with("SGN_PEND_STARTED (")
        });
        claude.has_ended();
        busy.continues(beside, &root, "yes", false);
    }
}
