//! Background work of each kind that Claude Code has, when its agent pauses or has replied.
//!
//! The background work never ends. So anything that a test waits for happens because this program ends it, or never.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::chain::Chain;
use crate::processes::{Background, wait_until};
use crate::support::extent::is_whole;
use crate::support::{
    Conversation, Hold, Item, MessagesApi, NEWEST, Turn, on_every_version, on_every_version_of_a_whole_run,
    on_the_newest_version,
};

/// The kind of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// A command that was started in the background.
    Command,
    /// A command that was moved to the background because it took too long.
    Late,
    Monitor,
    Subagent,
    Workflow,
}

/// What the agent does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Asks,
    Spawns,
    Replies,
}

/// A sample includes both work that Claude Code ends with its process and work that it does not end.
const SAMPLE: [Beside; 2] = [Beside::Command, Beside::Subagent];
const ALL: [Beside; 5] = [Beside::Command, Beside::Late, Beside::Monitor, Beside::Subagent, Beside::Workflow];

/// Those of a list that a version supports.
fn of(list: &'static [Beside], version: &str) -> impl Iterator<Item = Beside> {
    list.iter().copied().filter(move |beside| beside.is_there(version))
}

/// All, or a sample of them.
fn sampled(version: &str) -> impl Iterator<Item = Beside> {
    of(if is_whole() { &ALL } else { &SAMPLE }, version)
}

/// The prompt of a subagent, which is never answered.
const SUBTASK: &str = "look into everything";
const SCRIPT: &str = "export const meta = {name: 'w', description: 'd', phases: [{title: 'P'}]}\n\
    return await agent('look into everything', {label: 'x'})\n";

impl Beside {
    pub(crate) fn call(self, server: &str) -> (&'static str, serde_json::Value) {
        let title = "the server";
        match self {
            Self::Command => ("Bash", json!({"command": server, "description": title, "run_in_background": true})),
            Self::Late => ("Bash", json!({"command": server, "description": title, "timeout": 2000})),
            Self::Monitor => ("Monitor", json!({"command": server, "description": title, "persistent": true})),
            Self::Subagent => {
                let input = json!({"description": title, "prompt": SUBTASK, "subagent_type": "general-purpose",
                    "run_in_background": true});
                ("Agent", input)
            }
            Self::Workflow => ("Workflow", json!({"script": SCRIPT})),
        }
    }

    pub(crate) fn is_there(self, version: &str) -> bool {
        version == NEWEST || self != Self::Monitor
    }
}

/// A chain whose agent starts something in its background, and then does something else.
struct World {
    chain: Chain,
    /// Holds back the agent's next step.
    then: Hold,
    _never: Hold,
}

impl World {
    fn new(version: &str, beside: Beside, then: Then) -> Self {
        let (never, hold) = (Hold::new(), Hold::new());
        // It ignores requests to end. A command with a trap 2.1.197 does not move to the background. A line of a monitor would
        // make the agent continue.
        let command =
            if beside == Beside::Monitor { "exec tail -f /dev/null" } else { "echo ready; exec tail -f /dev/null" };
        let command =
            if beside == Beside::Late { command.to_owned() } else { format!("trap '' TERM INT HUP; {command}") };
        let (name, input) = beside.call(&command);
        let (waits, held) = (never.clone(), hold.clone());
        let api = MessagesApi::start(move |said| match task(said) {
            Task::Subagent => Turn::text("done").held(&waits),
            Task::Child => Turn::text("the child's reply"),
            Task::Agent => agent(said, name, &input, then, &held),
        });
        let chain = Chain::with_model(version, api).without_lingering();
        chain.home.write("child.md", "child\n");
        Self { chain, then: hold, _never: never }
    }

    fn spawn(&self) -> Background {
        self.chain.start(&["spawn", "--prompt", "do it", "--permission-mode", "bypassPermissions"])
    }

    /// Waits until the agent takes the next step.
    fn is_there(&self) {
        self.chain.api.wait_until(|requests| requests.iter().any(|request| started(&request.conversation())));
    }
}

pub(crate) enum Task {
    Agent,
    Child,
    Subagent,
}

pub(crate) fn task(said: &Conversation) -> Task {
    let mut told = said.user_texts();
    let first = told.next().unwrap_or_default();
    match first.contains("child.md") {
        true => Task::Child,
        false if first.contains(SUBTASK) || told.any(|text| text.contains(SUBTASK)) => Task::Subagent,
        false => Task::Agent,
    }
}

fn calls(said: &Conversation) -> Vec<&str> {
    said.calls().map(|(name, _)| name).collect()
}

/// Whether something was started in the background.
pub(crate) fn started(said: &Conversation) -> bool {
    let marks = ["background", "Monitor started", "launched"];
    said.results().any(|(text, _)| marks.iter().any(|mark| text.contains(mark)))
}

/// The agent's next step is held back.
fn agent(said: &Conversation, name: &str, input: &serde_json::Value, then: Then, held: &Hold) -> Turn {
    let calls = calls(said);
    if !calls.contains(&name) && name == "Monitor" && !calls.contains(&"ToolSearch") {
        return Turn::load("Monitor");
    }
    if !started(said) {
        let is_called = calls.contains(&name);
        return if is_called { Turn::text("nothing was started") } else { Turn::call(name, input.clone()) };
    }
    let request = match then {
        Then::Asks => "agent-cli ask 'Go?'",
        Then::Spawns => "agent-cli spawn child.md",
        Then::Replies => return Turn::text("the reply").held(held),
    };
    let is_asked =
        said.items().iter().any(|item| matches!(item, Item::Call { input, .. } if input["command"] == request));
    if is_asked { Turn::text(format!("done: {}", result_of(said, request))) } else { Turn::bash(request).held(held) }
}

fn result_of<'a>(said: &'a Conversation, request: &str) -> &'a str {
    let call = said.items().iter().find_map(|item| match item {
        Item::Call { id, input, .. } if input["command"] == request => Some(id),
        _ => None,
    });
    let result = said.items().iter().find_map(|item| match item {
        Item::Result { id, text, .. } if Some(id) == call => Some(text.as_str()),
        _ => None,
    });
    result.unwrap_or_default()
}

/// What the agent was told when it continued: that the background work has ended, once, and not that it was cut short.
fn is_told(said: &Conversation, beside: Beside) {
    let told: Vec<_> = said.user_texts().collect();
    let told = format!("{told:?} {}", said.context());
    assert_eq!(told.matches("<task-notification>").count(), 1, "{beside:?}: {told}");
    assert!(!told.contains("cut short"), "{beside:?}: {told}");
}

fn is_ended_at_a_pause(version: &str) {
    for beside in sampled(version) {
        let world = World::new(version, beside, Then::Asks);
        world.then.release();
        let runner = world.spawn();
        world.is_there();
        let said = runner.ends();
        assert!(said.out.starts_with("SGN_PEND_STARTED ("), "{beside:?}: {said:?}");
        world.chain.nothing_runs();
        let root = world.chain.only_root();
        let asked = world.chain.api.count();
        assert_eq!(world.chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
        assert_eq!(world.chain.api.count(), asked);
        world.chain.answer("yes");
        assert_eq!(world.chain.ok(&["resume", &root]), "done: yes\n", "{beside:?}");
        let main = world.chain.api.requests().into_iter().map(|request| request.conversation());
        let main: Vec<_> = main.filter(|said| matches!(task(said), Task::Agent)).collect();
        is_told(main.last().unwrap(), beside);
        assert_eq!(world.chain.json(&["show", &root, "--json"])["sessions"].as_array().unwrap().len(), 2);
        world.chain.ok(&["fsck"]);
    }
}

fn is_ended_when_another_agent_is_called(version: &str) {
    for beside in sampled(version) {
        let world = World::new(version, beside, Then::Spawns);
        world.then.release();
        let runner = world.spawn();
        world.is_there();
        let said = runner.ends();
        assert_eq!(said.out, "done: the child's reply\n", "{beside:?}: {said:?}");
        world.chain.nothing_runs();
    }
}

/// An agent that ends its turn may wait for its background work: it is told, once, that this was ended.
fn is_ended_a_while_after_a_reply(version: &str) {
    let kinds = [Beside::Command, Beside::Monitor, Beside::Subagent].into_iter().filter(|kind| kind.is_there(version));
    for beside in kinds.chain(sampled(version).filter(|beside| *beside == Beside::Late)) {
        let world = World::new(version, beside, Then::Replies);
        world.then.release();
        let mut command = world.chain.command();
        command.env("AGENT_CLI_BACKGROUND_GRACE", "1s");
        command.args(["spawn", "--prompt", "do it", "--permission-mode", "bypassPermissions"]);
        let said = crate::chain::Said::from(command.output().unwrap());
        assert_eq!((said.code, said.out.as_str()), (Some(0), "the reply\n"), "{beside:?}: {said:?}");
        assert!(
            said.err.contains("ended its background work (the server)") || beside == Beside::Workflow,
            "{beside:?}: {said:?}"
        );
        world.chain.nothing_runs();
        let told = |text: &&str| text.contains("its time is up, and it was ended:\n- the server\n");
        let last = world.chain.api.last_conversation();
        assert_eq!(
            last.user_texts().filter(|text| told(&text.replace("Its", "its").as_str())).count(),
            1,
            "{:?}",
            last.items()
        );
        let root = world.chain.only_root();
        assert_eq!(world.chain.json(&["show", &root, "--json"])["sessions"].as_array().unwrap().len(), 2);
        world.chain.ok(&["fsck"]);
    }
}

/// The runner dies before the agent pauses: no process is left to end `claude`.
fn the_next_resume_ends_what_a_killed_runner_has_left(version: &str) {
    for beside in sampled(version) {
        let world = World::new(version, beside, Then::Asks);
        let runner = world.spawn();
        world.is_there();
        let claude = runner.claude();
        runner.killed();
        world.then.release();
        let root = world.chain.only_root();
        wait_until("a resume concludes the attempt", || {
            let said = world.chain.run(&["resume", &root]);
            assert_eq!(said.code, Some(0), "{beside:?}: {said:?}");
            said.out.starts_with("SGN_PEND_STARTED (")
        });
        claude.has_ended();
        world.chain.nothing_runs();
        world.chain.answer("yes");
        assert_eq!(world.chain.ok(&["resume", &root]), "done: yes\n", "{beside:?}");
    }
}

/// `claude` itself is killed when its agent begins to wait, or while it waits for background work.
fn a_killed_claude_has_paused(version: &str) {
    for beside in [Beside::Command, Beside::Subagent] {
        let world = World::new(version, beside, Then::Asks);
        let runner = world.spawn();
        world.is_there();
        let claude = runner.claude();
        // A stopped process ends nothing.
        runner.signal(rustix::process::Signal::STOP);
        world.then.release();
        let home = world.chain.home.home().to_owned();
        wait_until("the call is marked as suspended", || is_marked(&home));
        claude.kill();
        runner.signal(rustix::process::Signal::CONT);
        let said = runner.ends();
        assert!(said.out.starts_with("SGN_PEND_STARTED ("), "{beside:?}: {said:?}");
        world.chain.nothing_runs();
        world.chain.answer("yes");
        assert_eq!(world.chain.ok(&["resume", &world.chain.only_root()]), "done: yes\n", "{beside:?}");
    }
}

fn is_marked(home: &Path) -> bool {
    let projects = fs::read_dir(home.join(".claude/projects")).into_iter().flatten().flatten();
    let files = projects.flat_map(|project| fs::read_dir(project.path()).into_iter().flatten().flatten());
    let marked = |path: PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains("\"hook_deferred_tool\""));
    files.map(|file| file.path()).filter(|path| path.is_file()).any(marked)
}

/// Hooks see its command as one of Bash.
fn a_request_in_the_command_of_a_monitor_is_refused_with_advice() {
    let api = MessagesApi::start(|said| match calls(said).as_slice() {
        [] => Turn::load("Monitor"),
        [_] => {
            let input = json!({"command": "agent-cli ask 'Go?'", "description": "asks", "persistent": true});
            Turn::call("Monitor", input)
        }
        _ => Turn::text(said.last_result().unwrap_or_default()),
    });
    let chain = Chain::with_model(NEWEST, api);
    let told = chain.ok(&["spawn", "--prompt", "do it", "--permission-mode", "bypassPermissions"]);
    assert!(told.contains("a command that is monitored cannot wait"), "{told}");
    assert_eq!(chain.json(&["questions", "--all", "--json"]), json!([]));
}

/// A person's own list of disallowed tools still applies.
fn a_subagent_does_not_see_the_tool_for_approvals(version: &str) {
    let api = MessagesApi::start(|said| match (task(said), calls(said).as_slice()) {
        (Task::Subagent, []) => Turn::bash("touch made"),
        (Task::Subagent, _) => Turn::text("done"),
        (_, []) => {
            let input = json!({"description": "x", "prompt": SUBTASK, "subagent_type": "general-purpose",
                "run_in_background": false});
            Turn::call("Agent", input)
        }
        _ => Turn::text("over"),
    });
    let chain = Chain::with_model(version, api);
    chain.ok(&["spawn", "--prompt", "do it", "--", "--disallowedTools=Write"]);
    let requests = chain.api.requests();
    let theirs: Vec<_> = requests.iter().filter(|said| matches!(task(&said.conversation()), Task::Subagent)).collect();
    // It was nevertheless asked about the call, and has denied it.
    let denied = theirs.last().unwrap().conversation();
    assert!(denied.last_result().is_some_and(|said| said.contains("you haven't granted it")), "{denied:?}");
    for request in requests {
        let body = request.body.to_string();
        assert!(!body.contains("mcp__agent-cli__permission"), "{body}");
        let tools = request.body["tools"].as_array().unwrap();
        assert!(tools.iter().all(|tool| tool["name"] != "Write"));
    }
}

on_every_version!(is_ended_at_a_pause, is_ended_a_while_after_a_reply, a_subagent_does_not_see_the_tool_for_approvals);

on_every_version_of_a_whole_run!(
    the_next_resume_ends_what_a_killed_runner_has_left, a_killed_claude_has_paused,
    is_ended_when_another_agent_is_called
);
on_the_newest_version!(a_request_in_the_command_of_a_monitor_is_refused_with_advice,);
