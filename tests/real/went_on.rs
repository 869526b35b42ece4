//! A person continues the session that an agent waits or works in, with Claude Code itself.

use std::fs;
use std::process::Stdio;

use serde_json::json;

use crate::chain::{Chain, Said};
use crate::processes::Gate;
use crate::support::{
    Conversation, Hold, Item, MessagesApi, RecordedRequest, Turn, claude, on_every_version,
    on_every_version_of_a_whole_run,
};

on_every_version!(
    an_agent_goes_on_though_a_person_spoke_in_its_session, an_agent_goes_on_though_a_person_spoke_while_it_worked,
);

on_every_version_of_a_whole_run!(
    an_agent_goes_on_though_its_session_was_summed_up,
    an_agent_goes_on_though_its_call_was_run_by_a_person,
    without_a_kept_copy_the_answer_comes_by_prompt,
    an_answer_comes_by_prompt_where_the_tool_of_the_call_is_gone,
);

const WORDS: &str = "what are you doing?";

/// Works, asks, and repeats the answer that it gets, however it comes.
fn model(said: &Conversation) -> Turn {
    let last = said.items().iter().rev().find(|item| !matches!(item, Item::Assistant(_)));
    match last {
        Some(Item::User(text)) if text.contains(WORDS) => Turn::text("I wait."),
        Some(Item::User(text)) if text.contains("have their results now") => Turn::text(answer(said)),
        Some(Item::User(text)) if text.starts_with("SGN_RESUME") => Turn::text(text.lines().last().unwrap_or_default()),
        Some(Item::User(text)) if text.contains("ins.md") => Turn::bash("echo some work"),
        Some(Item::Result { text, .. }) if text == "some work" => Turn::bash("agent-cli ask 'When?'"),
        Some(Item::Result { .. } | Item::User(_)) => Turn::text(answer(said)),
        _ => Turn::text("nothing was said"),
    }
}

fn answer(said: &Conversation) -> String {
    said.last_result().unwrap_or_default().to_owned()
}

fn paused(version: &str) -> (Chain, String) {
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Work and ask.\n");
    let root = chain.started(&["spawn", "ins.md"]);
    (chain, root)
}

/// What a person does, who knows nothing of agent-cli.
fn person(chain: &Chain, version: &str, arguments: &[&str]) -> Said {
    let mut command = chain.home.command(claude(version));
    Said::from(command.arg("-p").args(arguments).stdin(Stdio::null()).output().unwrap())
}

/// The agent is given the exact answer, and what was said meanwhile is a session that a person can open.
fn goes_on(chain: &Chain, version: &str, root: &str, before: &[u8]) {
    let transcript = chain.home.transcript(root).unwrap();
    assert_ne!(fs::read(&transcript).unwrap(), before, "somebody has gone on in it");
    assert!(chain.ok(&["fsck"]).contains("a person has continued"));
    chain.answer("May 1st");
    let requests = chain.api.count();
    let said = chain.run(&["resume", root]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "May 1st\n"), "{said:?}");
    assert_eq!(chain.api.count(), requests + 1);
    let request = chain.api.last_conversation();
    assert!(!format!("{request:?}").contains(WORDS) && format!("{request:?}").contains("some work"), "{request:?}");
    let own = fs::read_to_string(&transcript).unwrap();
    assert!(own.contains("May 1st") && !own.contains(WORDS), "the session is the agent's");
    let (_, rest) = said.err.split_once("claude --resume ").unwrap_or_else(|| panic!("{said:?}"));
    let opened = person(chain, version, &["--resume", &rest[..36], "and now?"]);
    assert_eq!(opened.code, Some(0), "{opened:?}");
    chain.ok(&["fsck"]);
}

fn an_agent_goes_on_though_a_person_spoke_in_its_session(version: &str) {
    let (chain, root) = paused(version);
    let before = fs::read(chain.home.transcript(&root).unwrap()).unwrap();
    let said = person(&chain, version, &["--resume", &root, WORDS]);
    assert_eq!(said.code, Some(0), "{said:?}");
    goes_on(&chain, version, &root, &before);
    let request = chain.api.last_conversation();
    assert!(format!("{request:?}").contains(WORDS), "what the person said is in the saved session");
}

/// The person speaks while a command of the agent runs, and is answered before it has ended, or when the agent has paused.
fn an_agent_goes_on_though_a_person_spoke_while_it_worked(version: &str) {
    for is_answered_late in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let gate = Gate::new(folder.path().join("gate"));
        let (command, hold) = (gate.wait_command(), Hold::new());
        let held = hold.clone();
        let chain = Chain::with_model(
            version,
            MessagesApi::start(move |said| match said.items().last() {
                Some(Item::User(text)) if text.contains(WORDS) => Turn::text("I wait.").held(&held),
                Some(Item::User(text)) if text.contains("ins.md") => Turn::bash(&command),
                Some(Item::Result { text, .. }) if text == "go" => Turn::bash("agent-cli ask 'When?'"),
                _ => model(said),
            }),
        );
        chain.home.write("ins.md", "Work and ask.\n");
        let runner = chain.start(&["spawn", "ins.md", "--permission-mode", "bypassPermissions"]);
        gate.reached();
        let root = chain.only_root();
        let mut person = chain.home.command(claude(version));
        person.args(["-p", "--resume", &root, WORDS]).stdin(Stdio::null()).stdout(Stdio::piped());
        let person = person.spawn().unwrap();
        let is_asked = |request: &RecordedRequest| request.conversation().last_user_text() == Some(WORDS);
        chain.api.wait_until(|requests| requests.iter().any(is_asked));
        let ends = || Said::from(person.wait_with_output().unwrap());
        let answered = if is_answered_late {
            gate.open();
            assert_eq!(runner.ends().code, Some(0));
            hold.release();
            ends()
        } else {
            hold.release();
            let answered = ends();
            gate.open();
            assert_eq!(runner.ends().code, Some(0));
            answered
        };
        assert_eq!(answered.out, "I wait.\n");
        chain.answer("May 1st");
        let said = chain.run(&["resume", &root]);
        assert_eq!((said.code, said.out.as_str()), (Some(0), "May 1st\n"), "{said:?}");
        let request = format!("{:?}", chain.api.last_conversation().items());
        assert!(request.contains("\"go\"") && !request.contains("interrupted"), "{request}");
        assert!(!request.contains(WORDS), "{request}");
        let own = fs::read_to_string(chain.home.transcript(&root).unwrap()).unwrap();
        assert!(!own.contains("I wait."), "the session is the agent's");
        let (_, rest) = said.err.split_once("claude --resume ").unwrap_or_else(|| panic!("{said:?}"));
        let opened = self::person(&chain, version, &["--resume", &rest[..36], "and now?"]);
        assert_eq!(opened.code, Some(0), "{opened:?}");
        let request = format!("{:?}", chain.api.last_conversation().items());
        assert!(request.contains(WORDS) && request.contains("I wait."), "{request}");
        chain.ok(&["fsck"]);
    }
}

fn an_agent_goes_on_though_its_session_was_summed_up(version: &str) {
    let (chain, root) = paused(version);
    let before = fs::read(chain.home.transcript(&root).unwrap()).unwrap();
    person(&chain, version, &["--resume", &root, WORDS]);
    let said = person(&chain, version, &["--resume", &root, "/compact"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    goes_on(&chain, version, &root, &before);
}

fn an_agent_goes_on_though_its_call_was_run_by_a_person(version: &str) {
    let (chain, root) = paused(version);
    let before = fs::read(chain.home.transcript(&root).unwrap()).unwrap();
    let said = person(&chain, version, &["--resume", &root]);
    assert_eq!(said.code, Some(0), "{said:?}");
    goes_on(&chain, version, &root, &before);
}

fn without_a_kept_copy_the_answer_comes_by_prompt(version: &str) {
    let (chain, root) = paused(version);
    person(&chain, version, &["--resume", &root, WORDS]);
    let checkpoint = chain.json(&["show", &root, "--json"])["checkpoint"].as_str().unwrap().to_owned();
    fs::remove_file(chain.state().join(format!("frames/{root}/{checkpoint}.jsonl"))).unwrap();
    chain.answer("May 1st");
    assert_eq!(chain.ok(&["resume", &root]), "May 1st\n");
    let request = format!("{:?}", chain.api.last_conversation());
    assert!(request.contains("some work") && request.contains(WORDS), "nothing is lost: {request}");
    chain.ok(&["fsck"]);
}

fn an_answer_comes_by_prompt_where_the_tool_of_the_call_is_gone(version: &str) {
    let (chain, root) = paused(version);
    let settings = json!({"permissions": {"deny": ["Bash"]}}).to_string();
    fs::write(chain.home.home().join(".claude/settings.json"), settings).unwrap();
    chain.answer("May 1st");
    assert_eq!(chain.ok(&["resume", &root]), "May 1st\n");
    let request = format!("{:?}", chain.api.last_conversation());
    assert!(request.contains("some work"), "{request}");
}
