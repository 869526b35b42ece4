//! Runners, `claude` and tools are killed at random instants while an agent two levels deep has more than its conversation: tasks
//! and a server in the background, a worktree that it has entered, or plan mode.

use std::thread;
use std::time::{Duration, Instant};

use agent_cli::records::{Store, chains};
use serde_json::json;

use crate::chain::Chain;
use crate::chance::Chance;
use crate::processes::wait_until;
use crate::support::extent::{is_whole, sample_or_all};
use crate::support::{Conversation, Item, Kind, MessagesApi, NEWEST, OLDER, ToolCall, Turn, processes_of, victims};

/// How many processes are killed in all, of each kind of agent, in a sample and in a whole run: at the most as many as a chain
/// meets before it is left in peace. A longer test names its own number in the variable.
const KILLS: [usize; 2] = [1, 4];
const MORE_KILLS: &str = "AGENT_CLI_CRASH_KILLS";
/// The first seed; a failed test has printed it.
const SEED: &str = "AGENT_CLI_CRASH_SEED";
/// How much longer a turn of the real program takes.
const SLOWER: u32 = 15;
/// The maximum duration of a chain.
const PATIENCE: Duration = Duration::from_secs(240);

/// The surroundings and steps of an agent.
struct Agent {
    mode: &'static str,
    calls: fn(&str) -> Vec<ToolCall>,
    /// The final result of its last call, whatever was killed.
    ends_well: fn(&Chain, &str),
}

fn load(version: &str, tools: &str) -> Option<ToolCall> {
    (version == NEWEST).then(|| ToolCall::load(tools))
}

fn ask(question: &str) -> ToolCall {
    ToolCall::bash(&format!("agent-cli ask '{question}'"))
}

/// Tasks, and a server.
const BUSY: Agent = Agent {
    mode: "bypassPermissions",
    calls: |version| {
        let create = |subject: &str| ToolCall::new("TaskCreate", json!({"subject": subject, "description": "Do it."}));
        let server = json!({"command": "exec sleep 100000", "description": "serve", "run_in_background": true});
        let calls = [
            create("one"),
            create("two"),
            ToolCall::new("TaskUpdate", json!({"taskId": "1", "status": "in_progress"})),
            ToolCall::new("Bash", server),
            ask("First?"),
            ToolCall::new("TaskUpdate", json!({"taskId": "2", "status": "completed"})),
            ask("Second?"),
            ToolCall::new("TaskList", json!({})),
        ];
        load(version, "TaskCreate,TaskUpdate,TaskList").into_iter().chain(calls).collect()
    },
    ends_well: |_, said| {
        let has = |task: &str| said.lines().any(|line| line == task);
        assert!(has("#1 [in_progress] one"), "{said}");
        // A task may be created again if the call that created it was killed.
        assert!(has("#2 [completed] two") || has("#2 [completed] one"), "{said}");
    },
};

/// The last words of an agent that was told the former directory of its shell.
const IS_TOLD: &str = "(told where its shell was)";

/// A worktree that it has entered, and a folder in it.
const ELSEWHERE: Agent = Agent {
    mode: "bypassPermissions",
    calls: |version| {
        let calls = [
            ToolCall::new("EnterWorktree", json!({"name": "away"})),
            ToolCall::bash("mkdir -p sub && cd sub && pwd"),
            ask("First?"),
            ToolCall::bash("pwd && echo one > one.txt"),
            ask("Second?"),
            ToolCall::bash("pwd; git branch --show-current"),
        ];
        load(version, "EnterWorktree").into_iter().chain(calls).collect()
    },
    ends_well: |chain, said| {
        let away = chain.home.project().join(".claude/worktrees/away");
        let place = away.join("sub");
        // If it continues with a prompt, no command returns its shell to its directory: it is told the directory.
        let is_told = said.contains(IS_TOLD);
        let is_there = said.starts_with(&format!("{}\n", place.display()));
        assert!(is_there || is_told && said.starts_with(&format!("{}\n", away.display())), "{said}");
        assert!(said.contains("worktree-away"), "{said}");
        assert!(place.join("one.txt").exists() || is_told && away.join("one.txt").exists());
    },
};

/// Plan mode, in which nothing is written. It has entered it itself: before, it could write.
const PLANNING: Agent = Agent {
    mode: "acceptEdits",
    calls: |version| {
        let write = |name: &str| ToolCall::new("Write", json!({"file_path": name, "content": "x"}));
        let enter = ToolCall::new("EnterPlanMode", json!({}));
        let calls = [enter, ask("First?"), write("a.txt"), ask("Second?"), write("b.txt"), ToolCall::bash("ls")];
        load(version, "EnterPlanMode").into_iter().chain(calls).collect()
    },
    ends_well: |chain, _| {
        for name in ["a.txt", "b.txt"] {
            assert!(!chain.home.project().join(name).exists(), "{name}");
        }
    },
};

#[test]
fn an_agent_with_tasks_and_a_server_survives_kills() {
    survives(&BUSY);
}

#[test]
fn an_agent_in_another_worktree_survives_kills() {
    if !is_whole() {
        return;
    }
    survives(&ELSEWHERE);
}

#[test]
fn an_agent_in_plan_mode_survives_kills() {
    if !is_whole() {
        return;
    }
    survives(&PLANNING);
}

fn survives(agent: &Agent) {
    let number = |name: &str| std::env::var(name).ok().map(|number| number.parse::<usize>().expect("a number"));
    let wanted = number(MORE_KILLS).unwrap_or_else(|| sample_or_all(KILLS[0], KILLS[1]));
    let (mut killed, mut seed) = ([0; 3], number(SEED).unwrap_or(1));
    while killed.iter().sum::<usize>() < wanted {
        // A failing test shows its output: with the seed it can be repeated.
        println!("seed {seed}, before: {killed:?}");
        for (all, more) in killed.iter_mut().zip(one_chain(agent, seed)) {
            *all += more;
        }
        seed += 1;
    }
    println!("runners, agents, tools: {killed:?}");
}

/// Whether a call only said that the request is made, which it does if the hook that would have suspended it was killed. Claude
/// Code puts the exit status before it.
fn is_started(result: &str) -> bool {
    result.lines().any(|line| line.starts_with("SGN_PEND_STARTED"))
}

/// A model that makes each call until it has returned. It recognises its own calls by their input.
fn model(calls: Vec<ToolCall>) -> impl Fn(&Conversation) -> Turn {
    move |said| {
        let is_child = said.task().contains("child.md");
        let over = |result: &str| {
            let cut_short = ["[Tool", "The user doesn't want", "[Request interrupted"];
            !cut_short.iter().any(|words| result.starts_with(words)) && !is_started(result)
        };
        let returned = |wanted: &ToolCall| {
            let made = said.items().iter().rev().find_map(|item| match item {
                Item::Call { id, name, input } if *name == wanted.name && *input == wanted.input => Some(id),
                _ => None,
            })?;
            said.items().iter().rev().find_map(|item| match item {
                Item::Result { id, text, .. } if id == made && over(text) => Some(text.clone()),
                _ => None,
            })
        };
        // The outcome of a request may come in a prompt.
        let told = |wanted: &ToolCall| {
            let command = wanted.input["command"].as_str().filter(|command| command.starts_with("agent-cli "))?;
            let question = command.split('\'').nth(1).unwrap_or("child.md");
            said.items().iter().find_map(|item| match item {
                Item::User(text) if text.contains("result of `agent-cli") && text.contains(question) => {
                    let text = text.split_once("):\n").map_or(text.as_str(), |(_, result)| result);
                    Some(text.split_once("\n--- end of result ---").map_or(text, |(result, _)| result).to_owned())
                }
                _ => None,
            })
        };
        let own = [ToolCall::bash("agent-cli spawn child.md")];
        let calls = if is_child { &calls[..] } else { &own };
        // A prompt brings what its call did not return.
        let is_pending = said.items().iter().rev().find_map(|item| match item {
            Item::Result { text, .. } => Some(is_started(text)),
            Item::User(text) if text.contains("SGN_RESUME") => Some(false),
            _ => None,
        });
        let mut last = String::new();
        for wanted in calls {
            match returned(wanted).or_else(|| told(wanted)) {
                Some(text) => last = text,
                None if is_pending == Some(true) => {
                    return Turn::text("SGN_PEND_STARTED");
                }
                None => return Turn::default().and(wanted.clone()),
            }
        }
        let moved =
            |text: &str| text.contains("away/sub") && (text.contains("when you stopped") || text.contains("directory"));
        let is_told = said.user_texts().any(moved);
        let is_told = is_told || moved(said.context());
        Turn::text(if is_told { format!("{last}\n{IS_TOLD}") } else { last })
    }
}

/// The events of the chain so far.
fn told(chain: &Chain) -> String {
    let first = chain.ok(&["tree"]);
    let id = first.split_whitespace().next().expect("a first agent").to_owned();
    [first, chain.ok(&["history", &id]), chain.ok(&["logs", &id])].join("\n")
}

/// Runners, agents and tools that were killed.
fn one_chain(agent: &Agent, seed: usize) -> [usize; 3] {
    let mut chance = Chance::new(seed as u64);
    let version = if is_whole() && seed.is_multiple_of(3) { OLDER } else { NEWEST };
    let chain = Chain::with_model(version, MessagesApi::start(model((agent.calls)(version))));
    for name in ["ins.md", "child.md"] {
        chain.home.write(name, "Do what the model does.");
    }
    let git = "git init -q -b main . && git add . && git -c user.name=a -c user.email=a@b.c commit -qm one";
    assert!(chain.home.command("/bin/sh").args(["-c", git]).status().unwrap().success());
    let mut killed = [0; 3];
    let deadline = Instant::now() + PATIENCE;
    let reply = loop {
        assert!(Instant::now() < deadline, "there is no reply: {killed:?}, {}", told(&chain));
        let store = Store::open(&chain.state()).unwrap();
        let root = chains(&store).pop().map(|root| root.id.to_string());
        let running = match &root {
            Some(root) => chain.start(&["resume", root]),
            None => {
                let options = ["--permission-mode", agent.mode, "--model", "claude-sonnet-4-5"];
                chain.start(&[&["spawn", "ins.md"][..], &options].concat())
            }
        };
        if killed.iter().sum::<usize>() < sample_or_all(KILLS[0], KILLS[1]) {
            // The instant is what is being tested: this waits for nothing.
            thread::sleep(chance.instant() * SLOWER);
            let mut found = victims(&chain.state());
            let wanted = [Kind::Runner, Kind::Agent, Kind::Agent, Kind::Tool][chance.below(4) as usize];
            if found.iter().any(|process| process.kind == wanted) {
                found.retain(|process| process.kind == wanted);
            }
            if let Some(victim) = found.pop() {
                victim.kill();
                killed[victim.kind as usize] += 1;
            }
        }
        let said = running.ends();
        assert!(matches!(said.code, None | Some(0 | 1 | 4)), "{said:?}");
        for question in store.questions(None, true).unwrap() {
            chain.ok(&["answer", &question.id.to_string(), "Jan 1st"]);
        }
        if !said.out.is_empty() && !said.out.starts_with("SGN_") {
            break said.out;
        }
    };
    (agent.ends_well)(&chain, &reply);
    chain.ok(&["fsck"]);
    wait_until("every process ends", || processes_of(&chain.state()).is_empty());
    killed
}
