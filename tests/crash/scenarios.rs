//! Chains that together pass every point, each with a person who acts sensibly until there is a reply.

use rustix::process::Signal;
use serde_json::json;

use agent_cli::records::{FrameId, FrameState, chains};

use crate::gate::{Gate, wait_until};
use crate::invocation::Running;
use crate::person::{Person, detached};
use crate::repository::repository;
use crate::world::{World, files_below, write_config};

/// A chain, and how it is resumed.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) world: fn() -> World,
    pub(crate) play: fn(&mut Person) -> String,
    /// The possible replies. Results come in the order of their requests, or those of suspended calls first.
    pub(crate) replies: &'static [&'static str],
}

/// All of them.
pub(crate) const SCENARIOS: [Scenario; 24] = [
    Scenario { name: "signals", world: with_signals, play: answer_and_carry_on, replies: &["root: when: Jan 1st"] },
    Scenario {
        name: "suspended",
        world: with_suspended_calls,
        play: answer_and_carry_on,
        replies: &["left: Jan 1st; right: ok", "right: ok; left: Jan 1st"],
    },
    Scenario { name: "handed_off", world: with_handoffs, play: answer_and_carry_on, replies: &["Jan 1st"] },
    Scenario { name: "in_background", world: with_a_child_beside, play: answer_and_carry_on, replies: &["Jan 1st"] },
    Scenario {
        name: "detached",
        world: with_a_detached_chain,
        play: carry_on_both,
        replies: &["root: Jan 1st; other: Jan 1st"],
    },
    Scenario {
        name: "forked",
        world: with_forks,
        play: answer_and_carry_on,
        replies: &["a: deep: Jan 1st; b: ok", "b: ok; a: deep: Jan 1st"],
    },
    Scenario { name: "shaped", world: with_a_schema, play: answer_and_carry_on, replies: &["{\"a\": 1}"] },
    Scenario { name: "lingering", world: with_a_quick_child, play: answer_and_carry_on, replies: &["slow: Jan 1st"] },
    Scenario { name: "in_place", world: with_an_entered_worktree, play: answer_and_carry_on, replies: &["there"] },
    Scenario { name: "beside", world: with_background, play: answer_and_carry_on, replies: &["Jan 1st"] },
    Scenario { name: "worktrees", world: with_worktrees, play: answer_and_carry_on, replies: &["both are done"] },
    Scenario { name: "trouble", world: with_trouble, play: lose_transcripts_and_carry_on, replies: &["done"] },
    Scenario { name: "stopped", world: with_gate, play: stop_and_carry_on, replies: &["done"] },
    Scenario { name: "over_budget", world: with_a_budget, play: raise_and_carry_on, replies: &["done"] },
    Scenario { name: "orphaned", world: with_gate, play: kill_and_carry_on, replies: &["done"] },
    Scenario {
        name: "adopted",
        world: with_foreign_session,
        play: adopt_and_carry_on,
        replies: &["top: the command succeeded; Jan 1st"],
    },
    Scenario { name: "native_waits", world: with_native_waits, play: wait_and_carry_on, replies: &["carried out"] },
    Scenario { name: "posted", world: with_a_posted_question, play: mend_and_carry_on, replies: &["over"] },
    Scenario { name: "notified", world: with_a_config_file, play: be_notified_and_continue, replies: &["Jan 1st"] },
    Scenario {
        name: "expired",
        world: with_a_question_that_expires,
        play: expire_and_carry_on,
        replies: &["root: never\n\n(This is the default: no answer until 2026-01-01T00:00:00Z.)"],
    },
    Scenario { name: "put_off", world: with_a_folder, play: move_the_folder_and_carry_on, replies: &["root: Jan 1st"] },
    Scenario { name: "in_a_file", world: with_a_question_file, play: edit_and_carry_on, replies: &["Jan 1st"] },
    Scenario {
        name: "afresh",
        world: with_a_child_that_asks_twice,
        play: start_afresh_and_carry_on,
        replies: &["root: Jan 1st; Jan 1st"],
    },
    Scenario { name: "steered", world: with_a_child_that_asks, play: steer_and_carry_on, replies: &["second"] },
];

/// How long calls linger.
pub(crate) const LINGER: &str = "AGENT_CLI_LINGER";

const SESSION: &str = "0193e7b0-1c2d-4abc-8def-0123456789ff";

/// The maximum number of commands that it takes to resume a chain once more.
const ROUNDS: usize = 12;

fn with_signals() -> World {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply root: {result}\n");
    world.file("child.md", "wait --file sign\nask When?\nreply when: {result}\n");
    world
}

fn with_suspended_calls() -> World {
    let world = World::with_hooks();
    world.file("root.md", "spawn left.md ++ spawn right.md\nreply {results}\n");
    world.file("left.md", "ask When?\nreply left: {result}\n");
    world.file("right.md", "wait --file sign\nreply right: ok\n");
    world
}

/// None of the agents above is woken.
fn with_handoffs() -> World {
    let world = World::with_hooks();
    world.file("root.md", "spawn --handoff middle.md\nreply root: {result}\n");
    world.file("middle.md", "spawn --handoff last.md\nreply middle: {result}\n");
    world.file("last.md", "wait --file sign\nask When?\nreply {result}\n");
    world
}

/// The end of the turn joins the child.
fn with_a_child_beside() -> World {
    let world = World::with_hooks();
    world.file("root.md", "spawn --background child.md\nend too early\nreply {results}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    world
}

fn with_a_detached_chain() -> World {
    let world = World::with_hooks();
    world.file("root.md", "spawn --detach other.md\nask When?\nreply root: {result}\n");
    world.file("other.md", "ask When?\nreply other: {result}\n");
    world
}

/// A person who calls again after a kill may have detached a chain already.
fn carry_on_both(person: &mut Person) -> String {
    let mut replied = vec![answer_and_carry_on(person)];
    for chain in detached(&person.world) {
        let reply = until_replied(person, |person| {
            let outcome = person.runs(&["resume", &chain]);
            person.answers("Jan 1st");
            outcome.stdout
        });
        let reply = reply.trim_end().to_owned();
        if !replied.contains(&reply) {
            replied.push(reply);
        }
    }
    replied.join("; ")
}

/// Agents that begin with the conversation of an agent whose call is open, one of them with that of a fork.
fn with_forks() -> World {
    let world = World::with_hooks();
    world.file("root.md", "run echo known\nspawn --fork a.md ++ spawn --fork b.md\nreply {results}\n");
    world.file("a.md", "spawn --fork deep.md\nreply a: {result}\n");
    world.file("b.md", "wait --file sign\nreply b: ok\n");
    world.file("deep.md", "ask When?\nreply deep: {result}\n");
    world
}

/// The first reply does not fit.
fn with_a_schema() -> World {
    let world = World::with_hooks();
    world.file("schema.json", r#"{"type": "object", "required": ["a"]}"#);
    world.file("root.md", "spawn child.md --schema schema.json\nreply {result}\n");
    world.file("child.md", "end no\nend {\"a\": 1}\n");
    world
}

/// The first call lingers until its result is there, the second until the child asks.
fn with_a_quick_child() -> World {
    let world = World::with_hooks().with(LINGER, "20s");
    world.file("root.md", "spawn quick.md\nspawn slow.md\nreply {result}\n");
    world.file("quick.md", "reply quick\n");
    world.file("slow.md", "ask When?\nreply slow: {result}\n");
    world
}

/// The session of an agent that entered a worktree is resumed in place.
fn with_an_entered_worktree() -> World {
    let world = World::with_hooks();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "call EnterWorktree {\"path\": \"/\"}\nask When?\nwait --file sign\nreply there\n");
    world
}

/// While a subagent runs, nothing is printed when the call is suspended.
fn with_background() -> World {
    let world = World::with_hooks();
    world.file("root.md", "beside subagent\nask When?\nreply {result}\n");
    world
}

fn answer_and_carry_on(person: &mut Person) -> String {
    let replied = until_replied(person, |person| {
        let outcome = person.carries_on();
        person.world.file("sign", "");
        person.answers("Jan 1st");
        outcome.stdout
    });
    replied.trim_end().to_owned()
}

fn with_a_question_file() -> World {
    let world = World::with_hooks();
    // The agent prepares an answer, which does not count.
    let prepared = "printf 'When?\\nA: mine\\n---\\n' > q.md";
    // In a script, a request is not suspended: the agent continues.
    world.file("ask.sh", "agent-cli ask --file q.md When?\n");
    world.file("root.md", format!("run sh ask.sh &\nrun {prepared}\nreply {{results}}\n"));
    world
}

/// The person saves again when the chain does not continue: an answer counts only after the agent's turn.
fn edit_and_carry_on(person: &mut Person) -> String {
    let replied = until_replied(person, |person| {
        let outcome = match person.root() {
            Some(root) => person.runs(&["resume", &root]),
            None => person.runs(&["spawn", "root.md", "--permission-mode", "acceptEdits"]),
        };
        let open = person.store().map(|store| store.questions(None, true).expect("a database"));
        if open.is_some_and(|open| !open.is_empty()) {
            person.world.file("q.md", "When?\n\nA: Jan 1st\n---\n");
        }
        outcome.stdout
    });
    replied.trim_end().to_owned()
}

/// A group whose agents work apart.
fn with_worktrees() -> World {
    let root = "spawn --worktree left.md right.md\nreply both are done\n";
    repository(&[("root.md", root), ("left.md", "ask When?\nreply left\n"), ("right.md", "run pwd\nreply right\n")])
}

/// The first attempt prints half a line, the second meets an error after it has worked, and later ones poll.
fn with_trouble() -> World {
    let world = World::new();
    world.file("root.md", "once garbage\nonce fail Overloaded\ndecide sign\nreply done\n");
    world
}

fn lose_transcripts_and_carry_on(person: &mut Person) -> String {
    let replied = until_replied(person, |person| {
        let outcome = person.carries_on();
        if outcome.stdout == "SGN_PEND_ONGOING\n" {
            person.world.file("sign", "");
        }
        if waits(person) {
            for transcript in person.world.transcripts() {
                std::fs::remove_file(transcript).expect("nobody writes it");
            }
        }
        outcome.stdout
    });
    replied.trim_end().to_owned()
}

fn waits(person: &Person) -> bool {
    let roots = person.store().as_ref().map(chains);
    roots.into_iter().flatten().any(|root| matches!(root.state, FrameState::Waiting { .. }))
}

fn with_gate() -> World {
    let world = World::new();
    world.file("root.md", "run true\nhold gate\nreply done\n");
    world
}

fn stop_and_carry_on(person: &mut Person) -> String {
    signal_and_carry_on(person, Signal::INT)
}

/// An agent that has spent the budget while its tool runs.
fn with_a_budget() -> World {
    let world = World::with_hooks();
    let price = "[prices.claude-opus-4-8]\ninput = 10\noutput = 50\ncache-write = 10\ncache-read = 1\n";
    write_config(&world, &format!("[limits]\nmax-budget-usd = 0.015\n{price}"));
    world.file("root.md", "run true\nhold gate\nrun true\nreply done\n");
    world
}

/// The person raises the budget when the agent has been stopped.
fn raise_and_carry_on(person: &mut Person) -> String {
    let gate = Gate::new(person.world.project().join("gate"));
    person.spawns_and(|world, running| {
        let stop = |agent: &str| world.state().join("frames").join(agent).join("stop");
        let is_told = || world.log().starts.iter().any(|start| stop(start.session()).exists());
        let fails = |running: &Running<'_>| running.has_said("cannot be stopped after its running tool");
        wait_until("the agent is told to stop", || is_told() || fails(running) || !running.is_alive());
        gate.open_for_one();
    });
    carry_on_beyond(person, &gate, &["--max-budget-usd", "1"])
}

/// The agent finishes its turn without a runner.
fn kill_and_carry_on(person: &mut Person) -> String {
    signal_and_carry_on(person, Signal::KILL)
}

fn signal_and_carry_on(person: &mut Person, signal: Signal) -> String {
    let gate = Gate::new(person.world.project().join("gate"));
    person.spawns_and(|world, running| {
        let held = world.project().join("gate.held");
        wait_until("an agent comes to the gate", || held.exists() || !running.is_alive());
        if running.is_alive() {
            running.signal(signal);
        }
    });
    carry_on_beyond(person, &gate, &["--max-depth", "9"])
}

/// Opens the gate and continues with this limit.
fn carry_on_beyond(person: &mut Person, gate: &Gate, limit: &[&str]) -> String {
    // The stopped call may still be waiting, and is made again.
    for _ in 0..4 {
        gate.open_for_one();
    }
    let replied = until_replied(person, |person| {
        person.agents_have_ended();
        match person.root() {
            Some(root) => person.runs(&[&["resume", &root], limit].concat()).stdout,
            None => person.carries_on().stdout,
        }
    });
    replied.trim_end().to_owned()
}

fn with_a_child_that_asks() -> World {
    let world = World::with_hooks();
    world.file("root.md", "spawn child.md\nreply first\nreply second\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    world
}

fn with_a_child_that_asks_twice() -> World {
    let world = World::with_hooks().with("STAND_IN_SUMMARY", "late");
    world.file("root.md", "spawn child.md\nreply root: {result}\n");
    world.file("child.md", "ask When?\nask Where?\nreply {results}\n");
    world
}

/// Both agents start afresh while the child waits for its first answer. The first summary of each lacks something.
fn start_afresh_and_carry_on(person: &mut Person) -> String {
    let replied = until_replied(person, |person| {
        if let Some(agent) = next_to_start_afresh(person) {
            return person.runs(&["resume", &agent, "--afresh"]).stdout;
        }
        let outcome = person.carries_on();
        if next_to_start_afresh(person).is_none() {
            person.answers("Jan 1st");
        }
        outcome.stdout
    });
    replied.trim_end().to_owned()
}

/// An agent that waits and has not started afresh yet, the child first.
fn next_to_start_afresh(person: &Person) -> Option<String> {
    let (store, root) = (person.store()?, person.root()?);
    let tree = store.tree(root.parse::<FrameId>().expect("an id")).expect("a database");
    let agents = tree.children(tree.top()).iter().copied().chain([tree.top()]);
    let frames = agents.filter_map(|agent| store.frame(agent).expect("a database"));
    let mut waiting = frames.filter(|frame| matches!(frame.state, FrameState::Waiting { .. }));
    waiting.find(|frame| frame.afresh.is_none() && frame.checkpoint.is_some()).map(|frame| frame.id.to_string())
}

/// The root gets a message, the conversation of its child is opened, and the child is paused and then stopped, and the root
/// gets a new instruction when it has ended.
fn steer_and_carry_on(person: &mut Person) -> String {
    let replied = until_replied(person, |person| {
        let Some(root) = person.root() else { return person.carries_on().stdout };
        let (steering, replied) = next_step(person, &root);
        match steering.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] if replied => person.carries_on().stdout,
            [] => {
                person.carries_on();
                String::new()
            }
            ref command => {
                let printed = person.runs(command).stdout;
                if command.contains(&"--prompt") { printed } else { String::new() }
            }
        }
    });
    replied.trim_end().to_owned()
}

/// The next command of a person who checks first, and whether the last reply exists; none: the chain is continued.
fn next_step(person: &Person, root: &str) -> (Vec<String>, bool) {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let store = person.store().expect("there is a root");
    let tree = store.tree(root.parse::<FrameId>().expect("an id")).expect("a database");
    let child = tree.children(tree.top()).first().and_then(|child| tree.get(*child));
    let messages = store.steering(tree.top()).expect("a database").messages;
    let told = messages.iter().any(|message| !message.instructs);
    let instructed = messages.iter().any(|message| message.instructs);
    let root_is_done = tree.get(tree.top()).is_some_and(|node| node.state == FrameState::Done);
    let is_suspended = |child| store.frame(child).expect("a database").is_some_and(|frame| frame.suspended.is_some());
    let is_opened = files_below(&person.world.state()).iter().any(|file| file.ends_with("opened.jsonl"));
    match child {
        _ if root_is_done && !instructed => (words(&["resume", root, "--prompt", "Once more."]), false),
        _ if instructed => (Vec::new(), true),
        Some(child) if matches!(child.state, FrameState::Waiting { .. }) => match told {
            false => (words(&["tell", root, "Something."]), false),
            // A copy is made of a conversation that is suspended inside a call.
            true if is_suspended(child.id) && !is_opened => (words(&["open", &child.id.to_string()]), false),
            true => (words(&["pause", &child.id.to_string()]), false),
        },
        Some(child) if matches!(child.state, FrameState::Paused { .. }) => {
            (words(&["stop", &child.id.to_string()]), false)
        }
        _ => (Vec::new(), false),
    }
}

/// A session that was started without agent-cli and that started a chain.
fn with_foreign_session() -> World {
    let world = World::new();
    world.file("top.md", "spawn child.md\nreply top: {result}\n");
    world.file("child.md", "wait --command true &\nask When?\nreply {results}\n");
    world.foreign_session(SESSION, "top.md");
    world
}

fn adopt_and_carry_on(person: &mut Person) -> String {
    let replied = until_replied(person, |person| {
        let outcome = person.runs(&["resume", SESSION]);
        person.answers("Jan 1st");
        outcome.stdout
    });
    replied.trim_end().to_owned()
}

/// An agent that posts half a question as a file.
fn with_a_posted_question() -> World {
    let world = World::new();
    world.file("root.md", "run printf half > q/pending/q1.json\nend QUESTION_POSTED:q1\nreply over\n");
    std::fs::create_dir_all(world.project().join("q/pending")).expect("it can be made");
    world
}

fn mend_and_carry_on(person: &mut Person) -> String {
    let replied = until_replied(person, |person| {
        let outcome = match person.root() {
            Some(root) => person.runs(&["resume", &root]),
            None => person.runs(&["spawn", "root.md", "--questions-dir", "q"]),
        };
        let posted = person.world.project().join("q/pending/q1.json");
        match std::fs::read_to_string(posted) {
            Ok(half) if half == "half" => drop(person.world.file("q/pending/q1.json", "{\"question\": \"When?\"}")),
            _ => person.answers("Jan 1st"),
        }
        outcome.stdout
    });
    replied.trim_end().to_owned()
}

/// An agent that schedules a wake-up, creates a job, and has a plan approved.
fn with_native_waits() -> World {
    let world = World::with_hooks();
    let input = json!({"cron": "0 9 * * *", "prompt": "Look at the job.", "recurring": false});
    let call = json!({"type": "tool_use", "id": "toolu_made", "name": "CronCreate", "input": input});
    let call = json!({"type": "assistant", "message": {"model": "m", "content": [call]}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_made", "content": "Scheduled"});
    let made = json!({"id": "j1", "recurring": false, "nextFireAt": 4_102_444_800_000_i64});
    let result = json!({"type": "user", "message": {"content": [result]}, "tool_use_result": made});
    world.file(
        "root.md",
        format!(
            "call ScheduleWakeup {{\"delaySeconds\": 60, \"prompt\": \"Look again.\"}}\nnoise {call}\nnoise {result}\n\
             call ExitPlanMode {{\"plan\": \"# The plan\"}}\nend I look later.\nend carried out\n"
        ),
    );
    world
}

fn wait_and_carry_on(person: &mut Person) -> String {
    let replied = until_replied(person, |person| {
        let outcome = match person.root() {
            Some(root) => person.runs(&["resume", &root]),
            None => person.runs(&["spawn", "root.md", "--permission-mode", "plan"]),
        };
        person.answers("allow acceptEdits");
        times_come(person);
        outcome.stdout
    });
    replied.trim_end().to_owned()
}

/// Makes the times arrive that agents wait for. A job that is due before its agent has ended its turn would come with the plan.
fn times_come(person: &Person) {
    let database = person.world.state().join("agent-cli.db");
    if !database.exists() {
        return;
    }
    let database = rusqlite::Connection::open(database).expect("a database");
    let sql = "UPDATE requests SET detail = json_replace(detail, '$.wait.scheduled.at', '2026-01-01T00:00:00Z')
               WHERE kind = 'wait' AND status = 'open' AND (json_extract(detail, '$.wait.scheduled.by.wakeup') IS NOT NULL
               OR NOT EXISTS (SELECT 1 FROM requests WHERE kind = 'ask' AND status IN ('open', 'resolved', 'delivering')))";
    // A command may have died before it created the table.
    let _ = database.execute(sql, []);
}

/// A person who wants to be told of questions and of the end.
fn with_a_config_file() -> World {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let command = r#"echo \"$AGENT_CLI_EVENT\" >> \"$HOME/told\""#;
    write_config(&world, &format!("[on]\nquestion = \"{command}\"\ndone = \"{command}\"\n"));
    world
}

/// Answers only after they were notified of the question, whichever process died.
fn be_notified_and_continue(person: &mut Person) -> String {
    let replied = until_replied(person, |person| {
        let mut outcome = person.carries_on();
        while is_to_be_notified(person) {
            outcome = person.carries_on();
        }
        if waits(person) {
            assert!(was_notified(person, "question"), "a question was lost");
        }
        person.answers("Jan 1st");
        outcome.stdout
    });
    assert!(was_notified(person, "done"), "the end was lost");
    replied.trim_end().to_owned()
}

fn was_notified(person: &Person, event: &str) -> bool {
    let told = std::fs::read_to_string(person.world.home().join("told")).unwrap_or_default();
    let times = told.lines().filter(|line| *line == event).count();
    assert!(times <= 2, "one accident makes one more: {told}");
    times > 0
}

/// Whether a command that died has left something in the outbox. If so, ends its claim.
fn is_to_be_notified(person: &Person) -> bool {
    let database = person.world.state().join("agent-cli.db");
    if !database.exists() {
        return false;
    }
    let database = rusqlite::Connection::open(database).expect("a database");
    let sql = "UPDATE notifications SET due = 0 WHERE status = 'pending'";
    // A command may have died before it created the table.
    database.execute(sql, []).is_ok_and(|changed| changed > 0)
}

fn with_a_question_that_expires() -> World {
    let world = World::with_hooks();
    world.file("root.md", "spawn child.md\nreply root: {result}\n");
    world.file("child.md", "run sh ask.sh\nreply {result}\n");
    world.file("ask.sh", "agent-cli ask When? --default never --expires 3d\n");
    world
}

fn expire_and_carry_on(person: &mut Person) -> String {
    let replied = until_replied(person, |person| {
        let outcome = person.carries_on();
        let database = person.world.state().join("agent-cli.db");
        if database.exists() {
            let database = rusqlite::Connection::open(database).expect("a database");
            let sql = "UPDATE requests SET detail = json_replace(detail, '$.ask.expires_at', '2026-01-01T00:00:00Z')
                       WHERE status = 'open'";
            // A command may have died before it created the table.
            let _ = database.execute(sql, []);
        }
        outcome.stdout
    });
    replied.trim_end().to_owned()
}

fn with_a_folder() -> World {
    let world = World::with_hooks();
    world.file("root.md", "spawn --cwd sub child.md\nreply root: {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    world.file("sub/there", "");
    world
}

/// An agent cannot be started as long as its directory is away.
fn move_the_folder_and_carry_on(person: &mut Person) -> String {
    let [here, away] = ["sub", "away"].map(|name| person.world.project().join(name));
    let mut is_moved = false;
    let replied = until_replied(person, |person| {
        let outcome = person.carries_on();
        person.answers("Jan 1st");
        if outcome.stdout.starts_with("SGN_") && !is_moved {
            std::fs::rename(&here, &away).expect("it is there");
            is_moved = true;
        } else if away.exists() {
            std::fs::rename(&away, &here).expect("it is away");
        }
        outcome.stdout
    });
    replied.trim_end().to_owned()
}

/// Continues until a round prints something other than a signal.
fn until_replied(person: &mut Person, mut round: impl FnMut(&mut Person) -> String) -> String {
    for _ in 0..ROUNDS {
        let printed = round(person);
        if !printed.is_empty() && !printed.starts_with("SGN_") {
            return printed;
        }
    }
    panic!("there is no reply after {ROUNDS} rounds");
}
