//! Agents that fork themselves: the call returns in the fork with its task, and in the caller with the fork's reply.

use serde_json::Value;

use crate::birthday::shares_its_prefix;
use crate::chain::Chain;
use crate::support::extent::size;
use crate::support::{Conversation, Hold, MessagesApi, NEWEST, RecordedRequest, ToolCall, Turn, on_every_version};

on_every_version!(
    a_fork_continues_from_the_call, without_hooks_the_prompt_says_that_it_is_a_fork,
    several_forks_and_forks_of_forks_share_the_prefix, many_forks_take_one_request_each,
    forks_in_forks_in_a_group_reply_to_their_callers, what_would_miss_the_cache_is_refused,
    forks_in_the_background_begin_while_their_caller_works,
);

/// The words with which a task begins that a fork is given.
const TASK: &str = "FORK ";

/// The last task of a conversation: a fork's comes after the conversation that it began with.
fn last_task(said: &Conversation) -> Option<String> {
    let lines: Vec<&str> = said.user_texts().flat_map(str::lines).collect();
    lines.into_iter().rev().find_map(|line| line.strip_prefix(TASK)).map(str::to_owned)
}

fn project(version: &str, model: impl Fn(&Conversation) -> Turn + Send + Sync + 'static) -> Chain {
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Do what the model does.");
    chain
}

/// The requests of the agent that was given this task last, or of the root.
fn requests_of(chain: &Chain, task: Option<&str>) -> Vec<RecordedRequest> {
    let of = |request: &RecordedRequest| last_task(&request.conversation()).as_deref() == task;
    chain.api.requests().into_iter().filter(of).collect()
}

fn a_fork_continues_from_the_call(version: &str) {
    let chain = project(version, |said| match (last_task(said), said.result_texts().len()) {
        (None, 0) => Turn::bash("echo known"),
        (None, 1) => Turn::bash(&format!("agent-cli spawn --fork --prompt '{TASK}look'")),
        (None, _) => Turn::text(format!("the fork says: {}", said.last_result().unwrap_or_default())),
        // The fork has its caller's conversation, and the call that created it.
        (Some(_), 2) => Turn::bash("agent-cli ask 'Is it so?'"),
        (Some(_), _) => Turn::text(format!("{} and {}", said.result_texts()[0].trim(), said.last_result().unwrap())),
    });
    let root = chain.started(&["spawn", "ins.md", "--", "--allowedTools=Bash(echo:*)"]);
    chain.answer("yes");
    assert_eq!(chain.ok(&["resume", &root]), "the fork says: known and yes\n");
    let [caller, fork] = [requests_of(&chain, None), requests_of(&chain, Some("look"))];
    assert_eq!((caller.len(), fork.len()), (3, 2));
    shares_its_prefix(&caller[1], &fork[0]);
    shares_its_prefix(&caller[1], &caller[2]);
    let told = fork[0].conversation();
    assert!(told.last_result().unwrap().contains("you are its fork"), "{told:?}");
    // The earlier cost of the conversation is the caller's.
    let agents = chain.json(&["tree", &root, "--json"]);
    let requests = |at: usize| agents[at]["requests"].as_u64().unwrap();
    assert_eq!((requests(0), requests(1)), (3, 2), "{agents}");
    let cost = |at: usize| agents[at]["cost_usd"].as_f64().unwrap();
    assert!(cost(1) < cost(0), "{agents}");
}

fn without_hooks_the_prompt_says_that_it_is_a_fork(version: &str) {
    let chain = project(version, |said| {
        let last = said.last_user_text().unwrap_or_default();
        match (last_task(said), said.last_result()) {
            _ if last.contains("SGN_RESUME") => Turn::text(format!("I know: {last}")),
            (None, None) => Turn::bash(&format!("agent-cli spawn --fork --prompt '{TASK}look'")),
            (None, Some(_)) => Turn::text("SGN_PEND_STARTED"),
            (Some(_), _) => Turn::text(last),
        }
    });
    let reply = chain.ok(&["spawn", "ins.md", "--no-hooks"]);
    assert!(reply.starts_with("I know: ") && reply.contains("You are a fork of the agent"), "{reply}");
    let fork = requests_of(&chain, Some("look")).remove(0);
    assert!(fork.conversation().user_texts().any(|text| text.contains("ins.md")), "it has the conversation");
}

fn several_forks_and_forks_of_forks_share_the_prefix(version: &str) {
    let chain = project(version, |said| match (last_task(said).as_deref(), said.last_result()) {
        (None, None) => Turn::default()
            .and(ToolCall::bash(&format!("agent-cli spawn --fork --prompt '{TASK}a' --prompt '{TASK}b'")))
            .and_bash("agent-cli ask 'Which?'"),
        (Some("a"), Some(told)) if told.contains("belongs to the conversation") => {
            Turn::bash(&format!("agent-cli spawn --fork --prompt '{TASK}deep'"))
        }
        (None, Some(_)) => {
            Turn::text(said.results_by_call().into_iter().map(|(text, _)| text).collect::<Vec<_>>().join("|"))
        }
        (Some("a"), Some(reply)) => Turn::text(format!("a: {reply}")),
        (task, _) => Turn::text(task.unwrap_or("none")),
    });
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer("this");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains("a: deep") && reply.contains("\nb") && reply.trim_end().ends_with("|this"), "{reply}");
    let first = |task: Option<&str>| requests_of(&chain, task).remove(0);
    for fork in ["a", "b"] {
        shares_its_prefix(&first(None), &first(Some(fork)));
    }
    shares_its_prefix(&first(Some("a")), &first(Some("deep")));
    let agents = chain.json(&["tree", &root, "--json"]);
    assert!(agents.as_array().unwrap().iter().all(|agent| agent["status"] == "done"), "{agents}");
    assert_eq!(chain.json(&["questions", "--json"]), Value::Array(Vec::new()));
}

fn many_forks_take_one_request_each(version: &str) {
    let count = size([6, 12, 40]);
    let chain = project(version, move |said| match last_task(said) {
        None => {
            let prompts: Vec<_> = (1..=count).map(|file| format!("--prompt '{TASK}file {file}'")).collect();
            Turn::bash(&format!("agent-cli spawn --fork --handoff {}", prompts.join(" ")))
        }
        Some(task) => Turn::text(format!("read {task}")),
    });
    let reply = chain.ok(&["spawn", "ins.md"]);
    let read = reply.lines().filter_map(|line| line.strip_prefix("read file ")).collect::<Vec<_>>();
    assert_eq!(read, (1..=count).map(|file| file.to_string()).collect::<Vec<_>>());
    assert_eq!(chain.api.count(), 1 + count);
    let caller = requests_of(&chain, None).remove(0);
    for request in chain.api.requests().iter().filter(|request| last_task(&request.conversation()).is_some()) {
        shares_its_prefix(&caller, request);
    }
}

fn forks_in_forks_in_a_group_reply_to_their_callers(version: &str) {
    let fork = |tasks: [&str; 2]| {
        Turn::bash(&format!("agent-cli spawn --fork --prompt '{TASK}{}' --prompt '{TASK}{}'", tasks[0], tasks[1]))
    };
    let chain = project(version, move |said| {
        let task = last_task(said);
        // The result of the call that started a fork is the last one that it begins with.
        let result = said.last_result().filter(|result| !result.contains("belongs to the conversation"));
        match (task.as_deref(), result.filter(|result| !result.contains("you are its fork"))) {
            (None, None) => Turn::bash(&format!("agent-cli spawn --prompt '{TASK}x' --prompt '{TASK}y'")),
            (Some("x"), None) => fork(["x1", "x2"]),
            (Some("x1"), None) => fork(["deep", "deeper"]),
            (Some("deeper"), None) => Turn::bash("agent-cli ask 'How deep?'"),
            (task, reply) => {
                let replies = reply.unwrap_or_default().lines().filter(|line| line.starts_with('<'));
                let answer = reply.filter(|reply| !reply.contains("## ")).unwrap_or_default();
                Turn::text(format!("<{}:{answer}{}>", task.unwrap_or("root"), replies.collect::<String>()))
            }
        }
    });
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer("five");
    assert_eq!(chain.ok(&["resume", &root]), "<root:<x:<x1:<deep:><deeper:five>><x2:>><y:>>\n");
    let first = |task: &str| requests_of(&chain, Some(task)).remove(0);
    for (caller, forks) in [("x", ["x1", "x2"]), ("x1", ["deep", "deeper"])] {
        for fork in forks {
            shares_its_prefix(&first(caller), &first(fork));
        }
    }
    assert_eq!(chain.ok(&["fsck"]), "");
}

/// Two forks of one message, a fork of one of them, and a caller that goes on before any of them has replied.
fn forks_in_the_background_begin_while_their_caller_works(version: &str) {
    let fork = |task: &str| format!("agent-cli spawn --background --fork --prompt '{TASK}{task}'");
    let hold = Hold::new();
    let held = hold.clone();
    let chain = project(version, move |said| {
        let results = said.result_texts();
        let id = |at: usize| results[at].trim();
        match (last_task(said).as_deref(), results.len()) {
            (None, 0) => Turn::bash("echo known"),
            (None, 1) => Turn::bash(&fork("a")).and_bash(&fork("b")).and_bash("echo beside"),
            (None, 4) => Turn::bash("echo later").held(&held),
            (None, 5) => Turn::bash(&format!("agent-cli wait --agent {} --agent {} --all", id(1), id(2))),
            (Some("a"), 4) => Turn::bash(&fork("deep")),
            (Some("a"), 5) => Turn::bash(&format!("agent-cli wait --agent {}", id(4))),
            (Some("b" | "deep"), _) => Turn::text(format!("{} of {}", last_task(said).unwrap(), results[0].trim())),
            (_, _) => Turn::text(said.last_result().unwrap_or_default()),
        }
    });
    let spawn = chain.start(&["spawn", "ins.md", "--", "--allowedTools=Bash(echo:*)"]);
    let is_of = |task: &str, request: &RecordedRequest| last_task(&request.conversation()).as_deref() == Some(task);
    chain.api.wait_until(|requests| {
        ["a", "b", "deep"].iter().all(|task| requests.iter().any(|request| is_of(task, request)))
    });
    hold.release();
    let said = spawn.ends();
    assert_eq!(said.code, Some(0), "{said:?}");
    for reply in ["deep of known", "b of known"] {
        assert!(said.out.contains(reply), "{said:?}");
    }
    let caller = requests_of(&chain, None);
    let first = |task: &str| requests_of(&chain, Some(task)).remove(0);
    for task in ["a", "b"] {
        let fork = first(task);
        shares_its_prefix(&caller[1], &fork);
        let told = fork.conversation();
        let results = told.result_texts();
        let is_own = |result: &&&str| result.contains("you are its fork");
        assert_eq!((results.len(), results.iter().filter(is_own).count()), (4, 1), "{task}: {results:?}");
    }
    shares_its_prefix(&first("a"), &first("deep"));
    let agents = chain.json(&["tree", &chain.only_root(), "--json"]);
    let costs: Vec<_> = agents.as_array().unwrap().iter().map(|agent| agent["requests"].as_u64().unwrap()).collect();
    assert_eq!(costs.iter().sum::<u64>() as usize, chain.api.count(), "{agents}");
    assert_eq!(chain.ok(&["fsck"]), "");
}

fn what_would_miss_the_cache_is_refused(version: &str) {
    let chain = project(version, |said| {
        let options = ["--model sonnet", "--worktree", "--fork-from x", "-- --max-turns=3"];
        match options.get(said.result_texts().len()) {
            Some(option) => {
                let (before, after) = option
                    .split_once("-- ")
                    .map_or((*option, String::new()), |(before, after)| (before, format!(" -- {after}")));
                Turn::bash(&format!("agent-cli spawn --fork {before} --prompt x{after}"))
            }
            None => Turn::text(said.result_texts().join("\n")),
        }
    });
    let reply = chain.ok(&["spawn", "ins.md"]);
    assert_eq!(reply.matches("would not share the caller's prompt cache").count(), 3, "{reply}");
    assert!(reply.contains("cannot be used with"), "{reply}");
}

/// A person has no conversation that could be forked.
#[test]
fn a_person_cannot_fork() {
    let chain = project(NEWEST, |_| Turn::text("x"));
    let said = chain.run(&["spawn", "--fork", "ins.md"]);
    assert!(said.code == Some(2) && said.err.contains("only an agent can fork"), "{said:?}");
}
