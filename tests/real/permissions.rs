//! What agents may do without any given permission.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::birthday::shares_its_prefix;
use crate::chain::{Chain, TEMPLATE};
use crate::support::extent::some_of;
use crate::support::{
    Conversation, Item, MessagesApi, RecordedRequest, ToolCall, Turn, follow, on_every_version,
    on_every_version_of_a_whole_run,
};
use crate::wakeups::wakeup;

/// A model that makes these calls, one a turn, and replies with a list: whether each came back as an error.
fn caller(commands: &'static [&'static str]) -> MessagesApi {
    MessagesApi::start(|conversation| {
        let results: Vec<_> = conversation.results().collect();
        match commands.get(results.len()) {
            Some(command) => Turn::bash(command),
            None => Turn::text(json!(results.iter().map(|(_, denied)| denied).collect::<Vec<_>>()).to_string()),
        }
    })
}

/// The instructions of the root lie outside the project, where a person may point to; those of its child as well, where
/// an agent may not.
fn a_chain_works_with_no_permission_at_all(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(follow));
    chain.home.write("CLAUDE.md", TEMPLATE);
    let outside = chain.home.home().join("else where (1)");
    std::fs::create_dir(&outside).unwrap();
    let write = |name: &str, text: &str| std::fs::write(outside.join(name), text).unwrap();
    write("ins1.md", "spawn ../project/inside.md ++ spawn outside.md\nreply {result}\n");
    write("outside.md", "end a secret\n");
    chain.home.write("inside.md", "ask When?\nreply {result}\n");

    let root = chain.started(&["spawn", outside.join("ins1.md").to_str().unwrap()]);
    chain.answer("Jan 1st");
    let reply = chain.ok(&["resume", &root]);
    let replies = reply.split_once('\n').unwrap();
    assert_eq!(replies.0, "Jan 1st", "{reply}");
    assert!(replies.1.starts_with("I cannot read my instructions"), "{reply}");
}

fn other_commands_are_denied_unless_the_user_allows_them(version: &str) {
    let commands = &["touch made", "agent-cli answer abcd x", "mkdir made.d", "agent-cli resume none"];
    let chain = Chain::with_model(version, caller(commands));
    chain.home.write("ins.md", "Try this and that.");
    // The last is allowed, and fails because there is no such frame.
    assert_eq!(chain.ok(&["spawn", "ins.md"]), "[true,true,true,true]\n");
    assert!(!chain.home.project().join("made").exists());
    let last = chain.api.last_conversation();
    assert!(last.last_result().unwrap().contains("error: "), "{:?}", last.last_result());

    let allowed = chain.ok(&["spawn", "ins.md", "--", "--allowedTools", "Bash(touch:*)"]);
    assert_eq!(allowed, "[false,true,true,true]\n");
    assert!(chain.home.project().join("made").exists());
    assert!(!chain.home.project().join("made.d").exists());
    let last = chain.api.last_conversation();
    assert!(last.last_result().unwrap().contains("error: "), "the rules of requests are lost: {last:?}");
}

on_every_version!(
    a_chain_works_with_no_permission_at_all,
    a_denied_call_is_denied_as_by_plain_claude,
    an_allowed_call_runs_once_and_only_that_one,
    a_call_with_the_id_of_an_earlier_one_is_denied,
    half_a_character_in_a_call_stops_nothing,
    a_person_is_told_of_all_of_a_call_and_what_became_of_it_is_on_record,
    a_call_that_a_person_denies_does_not_run_and_says_why,
    where_a_call_leads_is_shown_and_a_change_of_it_denies_the_call,
    an_allowed_write_with_a_relative_path_runs_where_it_was_shown,
    a_call_beside_others_is_asked_about_alone,
    a_call_of_a_subagent_is_denied,
    why_a_hook_asks_is_what_plain_claude_says
);

on_every_version_of_a_whole_run!(
    other_commands_are_denied_unless_the_user_allows_them, an_allowed_call_that_was_cut_short_does_not_run_again,
    a_person_is_told_why_a_hook_asks, calls_side_by_side_are_denied_each_for_its_own_reason
);

/// An agent that makes these calls, one after another, and replies with their results.
fn asking(version: &str, turns: Vec<Turn>) -> Chain {
    let chain = Chain::with_model(
        version,
        MessagesApi::start(move |said| {
            let calls = said.items().iter().filter(|item| matches!(item, Item::Call { .. })).count();
            let mut made = 0;
            let next = turns.iter().find(|turn| {
                made += turn.tool_calls().len();
                made > calls
            });
            next.cloned().unwrap_or_else(|| Turn::text(json!(said.results().collect::<Vec<_>>()).to_string()))
        }),
    );
    chain.home.write("ins.md", "Do what the model does.");
    chain
}

const ASKING: [&str; 4] = ["spawn", "ins.md", "--on-permission", "ask"];

/// The denials in what `claude` printed.
fn denials(chain: &Chain, root: &str) -> Vec<String> {
    let output = chain.json(&["show", root, "--json"])["output"].as_str().unwrap().to_owned();
    let text = std::fs::read_to_string(output).unwrap();
    let mut events = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let last = events.rfind(|event| event["type"] == "result").unwrap();
    let denied = last["permission_denials"].as_array().unwrap().iter();
    denied.map(|denial| denial["tool_input"]["command"].as_str().unwrap_or_default().to_owned()).collect()
}

fn a_denied_call_is_denied_as_by_plain_claude(version: &str) {
    let chain = asking(version, vec![Turn::bash("touch made")]);
    let reply = chain.ok(&["spawn", "ins.md"]);
    assert!(reply.contains("Claude requested permissions to use Bash, but you haven't granted it yet."), "{reply}");
    assert!(!chain.home.project().join("made").exists());
    assert_eq!(denials(&chain, &chain.only_root()), ["touch made"]);
}

fn an_allowed_call_runs_once_and_only_that_one(version: &str) {
    let chain = asking(version, vec![Turn::bash("echo x >> made"), Turn::bash("echo x >> made")]);
    let root = chain.started(&ASKING);
    let asked = chain.api.count();
    let [listed] = chain.json(&["questions", "--json"]).as_array().unwrap().clone().try_into().unwrap();
    assert_eq!((&listed["kind"], &listed["tool"]), (&json!("permission"), &json!("Bash")));
    assert_eq!(listed["input"]["command"], "echo x >> made");
    assert_eq!(chain.json(&["tree", "--json"])[0]["waiting_on"][0]["for"], "permission");
    let id = listed["id"].as_str().unwrap();
    let said = chain.run(&["answer", id, "yes"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("\"allow\"") && said.err.contains("hint: agent-cli answer"), "{said:?}");
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    assert_eq!(chain.api.count(), asked);
    chain.ok(&["answer", id, "allow"]);

    // The same call once more is another one.
    assert_eq!(chain.ok(&["resume", &root]), format!("SGN_PEND_STARTED ({root})\n"));
    let made = || std::fs::read_to_string(chain.home.project().join("made")).unwrap();
    assert_eq!(made(), "x\n");
    let requests = chain.api.requests();
    shares_its_prefix(&requests[asked - 1], &requests[asked]);
    chain.answer("deny: once is enough");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains("false],[\"once is enough\",true]"), "{reply}");
    assert_eq!(made(), "x\n");
}

/// Ids of calls come from the API, which may repeat one.
fn a_call_with_the_id_of_an_earlier_one_is_denied(version: &str) {
    let make = |kind: &str, text: &str| match kind {
        "approval" => ToolCall::bash(&format!("echo {text} >> made")),
        "request" => ToolCall::bash(&format!("agent-cli ask '{text}?'")),
        "question" => {
            let options =
                [json!({"label": "yes", "description": "Yes."}), json!({"label": "no", "description": "No."})];
            let question =
                json!({"question": format!("{text}?"), "header": "Header", "multiSelect": false, "options": options});
            ToolCall::new("AskUserQuestion", json!({"questions": [question]}))
        }
        _ => wakeup(version, 1_200, text).tool_calls()[0].clone(),
    };
    let seconds = ["request", "approval", "wakeup", "question"];
    let pairs = ["approval", "request", "question"].into_iter().flat_map(|first| seconds.map(|second| (first, second)));
    for (number, (first, second)) in some_of(pairs, 4).enumerate() {
        let pauses_between = number % 2 == 1;
        let same = |kind: &str, text: &str| Turn::default().and(make(kind, text).with_id("toolu_same"));
        let between = pauses_between.then(|| Turn::bash("agent-cli ask 'When?'"));
        let turns: Vec<_> =
            [Some(same(first, "one")), between, Some(same(second, "other"))].into_iter().flatten().collect();
        let requests = AtomicUsize::new(0);
        let model = move |_: &Conversation| {
            let next = turns.get(requests.fetch_add(1, Ordering::Relaxed)).cloned();
            next.unwrap_or_else(|| Turn::text("it is done"))
        };
        let chain = Chain::with_model(version, MessagesApi::start(model));
        chain.home.write("ins.md", "Do what the model does.");
        let root = chain.started(&ASKING);
        chain.answer(if first == "approval" { "allow" } else { "yes" });
        if pauses_between {
            assert_eq!(chain.ok(&["resume", &root]), format!("SGN_PEND_STARTED ({root})\n"));
            chain.answer("tomorrow");
        }
        assert_eq!(chain.ok(&["resume", &root]), "it is done\n", "{first}, {second}");
        // The model may not see it: Claude Code sends it one result for an id.
        let logs = chain.ok(&["logs", &root]);
        assert!(logs.contains("has the id of an earlier call"), "{first}, {second}: {logs}");
        let made = std::fs::read_to_string(chain.home.project().join("made")).unwrap_or_default();
        assert_eq!(made, if first == "approval" { "one\n" } else { "" }, "{first}, {second}");
    }
}

/// `claude` writes half of a character that was cut as an escape that strict JSON does not have.
fn half_a_character_in_a_call_stops_nothing(version: &str) {
    let call = |command: &str| Turn::call("Bash", json!({"command": command, "description": "cut \u{e000}"}));
    let chain = asking(version, vec![call("echo x >> made")]);
    assert!(chain.ok(&["spawn", "ins.md"]).contains("you haven't granted it yet"));
    let root = chain.started(&ASKING);
    let asked = chain.json(&["questions", "--json"]);
    assert_eq!(asked[0]["input"]["description"], "cut \u{fffd}");
    chain.ok(&["answer", asked[0]["id"].as_str().unwrap(), "allow"]);
    chain.ok(&["resume", &root]);
    assert_eq!(std::fs::read_to_string(chain.home.project().join("made")).unwrap(), "x\n");
    assert!(chain.ok(&["logs", &root]).contains("echo x >> made"));

    // Longer than `claude` takes a line to be followed by the next one whose parent is missing.
    let chain = asking(version, vec![call("sleep 6; echo one"), Turn::bash("agent-cli ask When")]);
    let root = chain.started(&["spawn", "ins.md", "--", "--allowedTools=Bash(sleep:*),Bash(echo:*)"]);
    chain.answer("now");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains("one") && reply.contains("now"), "{reply}");
    chain.ok(&["fsck"]);
}

fn a_person_is_told_of_all_of_a_call_and_what_became_of_it_is_on_record(version: &str) {
    use std::os::unix::fs::PermissionsExt;

    let call = "echo x >> made # $(touch pwned)\ntrue";
    let chain = asking(version, vec![Turn::bash(call)]);
    let folder = chain.home.home().join("config");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    let config = folder.join("config.toml");
    std::fs::write(&config, "[on]\napproval = \"cat > told; env > variables\"\ndone = \"cat > done\"\n").unwrap();
    std::fs::set_permissions(&config, PermissionsExt::from_mode(0o600)).unwrap();
    let run = |arguments: &[&str]| {
        let said = chain.command().env("AGENT_CLI_CONFIG", &config).args(arguments).output().unwrap();
        crate::chain::Said::from(said)
    };
    assert_eq!(run(&ASKING).code, Some(0));
    let told = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
    };
    let asked = &told("told")["question"];
    assert_eq!(
        (&asked["permission"]["tool"], &asked["permission"]["input"]["command"]),
        (&json!("Bash"), &json!(call))
    );
    let variables = std::fs::read_to_string(folder.join("variables")).unwrap();
    assert!(
        variables.contains("\nAGENT_CLI_EVENT=approval\n") || variables.starts_with("AGENT_CLI_EVENT"),
        "{variables}"
    );
    assert!(!variables.contains("AGENT_CLI_ATTEMPT="), "{variables}");
    let id = asked["id"].as_str().unwrap();
    chain.ok(&["answer", id, "allow"]);
    let root = told("told")["chain"]["id"].as_str().unwrap().to_owned();
    assert_eq!(run(&["resume", &root]).code, Some(0));
    assert_eq!(told("done")["event"], "done");
    assert!(!folder.join("pwned").exists());
    let record = &chain.json(&["history", id, "--json"])[0];
    assert_eq!((&record["status"], &record["records"][0]["answer"]), (&json!("delivered"), &json!("allow")));
    assert_eq!(record["then"]["type"], "text", "{record}");
}

/// A link is approved as what it leads to. When it leads elsewhere, the approval is for another call.
fn where_a_call_leads_is_shown_and_a_change_of_it_denies_the_call(version: &str) {
    for is_moved in [true, false] {
        let write = json!({"file_path": "dirl/rc", "content": "export A=1\n"});
        let chain = asking(version, vec![Turn::call("Write", write)]);
        let folder = std::fs::canonicalize(chain.home.home()).unwrap();
        let [one, other, link] = [folder.join("one"), folder.join("other"), chain.home.project().join("dirl")];
        [&one, &other].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let root = chain.started(&ASKING);
        let question = chain.json(&["questions", "--json"])[0].clone();
        assert_eq!(question["place"]["paths"][0]["real"], one.join("rc").to_str().unwrap(), "{question}");
        let shown = chain.ok(&["questions", question["id"].as_str().unwrap()]);
        assert!(shown.contains(&format!("\n  leads to: {}\n", one.join("rc").display())), "{shown}");
        if is_moved {
            std::fs::remove_file(&link).unwrap();
            std::os::unix::fs::symlink(&other, &link).unwrap();
        }
        chain.answer("allow");
        let reply = chain.ok(&["resume", &root]);
        let says = reply.contains("not run: a person has allowed this call, but ");
        assert_eq!((says, one.join("rc").exists()), (is_moved, !is_moved), "{reply}");
        assert!(!other.join("rc").exists());
    }
}

/// A resumed `claude` reads a relative path from where it began.
fn an_allowed_write_with_a_relative_path_runs_where_it_was_shown(version: &str) {
    let write = json!({"file_path": "made", "content": "x\n"});
    let chain = asking(version, vec![Turn::bash("cd sub"), Turn::call("Write", write)]);
    let sub = chain.home.project().join("sub");
    std::fs::create_dir(&sub).unwrap();
    let root = chain.started(&ASKING);
    let place = chain.json(&["questions", "--json"])[0]["place"].clone();
    assert_eq!(place["directory"]["path"], sub.to_str().unwrap());
    chain.answer("allow");
    let reply = chain.ok(&["resume", &root]);
    assert!(sub.join("made").exists() && !chain.home.project().join("made").exists(), "{reply}");
}

fn a_call_that_a_person_denies_does_not_run_and_says_why(version: &str) {
    let chain = asking(version, vec![Turn::bash("touch made")]);
    let root = chain.started(&ASKING);
    for transcript in chain.home.transcripts() {
        std::fs::remove_file(transcript).unwrap();
    }
    chain.answer("deny");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains("[\"a person has denied this call\",true]"), "{reply}");
    assert!(!chain.home.project().join("made").exists());
}

/// One runs, one needs an approval, one more does, and one asks: the first is over, and the others are not lost.
fn a_call_beside_others_is_asked_about_alone(version: &str) {
    let turn = Turn::bash("echo hi").and_bash("touch a").and_bash("touch b").and_bash("agent-cli ask 'When?'");
    let chain = asking(version, vec![turn]);
    let root = chain.started(&ASKING);
    let questions = chain.json(&["questions", "--json"]);
    for question in questions.as_array().unwrap() {
        chain.ok(&["answer", question["id"].as_str().unwrap(), "allow"]);
    }
    let reply: Vec<(String, bool)> = serde_json::from_str(&chain.ok(&["resume", &root])).unwrap();
    assert!(reply.contains(&("hi".to_owned(), false)), "{reply:?}");
    assert!(chain.home.project().join("a").exists() && !chain.home.project().join("b").exists());
    let not_run = reply.iter().filter(|(text, is_error)| *is_error && text.starts_with("not run: ")).count();
    assert!(not_run >= 1 && reply.len() == 4, "{reply:?}");
    assert!(!reply.iter().any(|(text, _)| text.contains("doesn't want to proceed")), "{reply:?}");
}

/// The agent dies while the allowed call runs.
fn an_allowed_call_that_was_cut_short_does_not_run_again(version: &str) {
    // It kills the agent that runs it, once.
    let call = "echo x >> made; test -e killed || { touch killed; kill -9 $(cat ../claude); }";
    let chain = asking(version, vec![Turn::bash(call)]);
    let claude = chain.home.home().join("claude.sh");
    let script = format!(
        "#!/bin/sh\ncase $1 in -p) echo $$ > '{}' ;; esac\nexec '{}' \"$@\"\n",
        chain.home.home().join("claude").display(),
        crate::support::claude(version).display()
    );
    crate::support::write_executable(&claude, script);
    let named = [&ASKING[..], &["--claude", claude.to_str().unwrap()]].concat();
    let root = chain.started(&named);
    chain.answer("allow");
    let run = |arguments: &[&str]| {
        let mut command = chain.command();
        command.env("AGENT_CLI_CLAUDE", &claude).args(arguments);
        crate::chain::Said::from(command.output().unwrap())
    };
    let died = run(&["resume", &root]);
    assert_eq!(died.code, Some(1), "{died:?}");
    let over = run(&["resume", &root]);
    assert_eq!(over.code, Some(0), "{over:?}");
    assert_eq!(std::fs::read_to_string(chain.home.project().join("made")).unwrap(), "x\n");
    let last = chain.api.requests().pop().unwrap().body.to_string();
    assert!(last.contains("it may have run before you were cut short"), "{last}");
}

fn a_call_of_a_subagent_is_denied(version: &str) {
    let task = json!({"description": "d", "prompt": "in a subagent", "subagent_type": "general-purpose"});
    let chain = Chain::with_model(
        version,
        MessagesApi::start(move |said| match (said.last_result().is_none(), said.task().contains("in a subagent")) {
            (true, true) => Turn::bash("touch made"),
            (true, _) => Turn::call("Agent", task.clone()),
            (false, _) => Turn::text("over"),
        }),
    );
    chain.home.write("ins.md", "Do what the model does.");
    assert_eq!(chain.ok(&ASKING), "over\n");
    let denied = |request: &RecordedRequest| request.body.to_string().contains("you haven't granted it yet");
    assert!(chain.api.requests().iter().any(denied));
    assert_eq!(chain.ok(&["questions", "--all", "--json"]), "[]\n");
    assert!(!chain.home.project().join("made").exists());
}

/// Hooks of the user that run before calls of `tool`, each a shell script.
fn hooks_before(chain: &Chain, tool: &str, scripts: &[String]) {
    let folder = chain.home.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    let hooks: Vec<_> = scripts.iter().map(|script| json!({"type": "command", "command": script})).collect();
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": tool, "hooks": hooks}]}});
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
}

/// What a hook prints that asks for an approval.
fn asking_because(reason: &str) -> String {
    let said = json!({"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": reason});
    json!({"hookSpecificOutput": said}).to_string()
}

/// What a plain `claude -p` sends last.
fn results_of_plain_claude(chain: &Chain, version: &str) -> Vec<(String, bool)> {
    let mut command = chain.home.command(crate::support::claude(version));
    let output = command.args(["-p", "Do what the model does."]).stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    chain.last_results()
}

/// The reasons of hooks reach the agent to the byte: with line breaks, none, of the one of two hooks that counts, a long one,
/// and of two calls of one message.
fn why_a_hook_asks_is_what_plain_claude_says(version: &str) {
    let print = |reason: &str| format!("printf '%s' '{}'", asking_because(reason));
    let fast = print("fast");
    let slow = format!("sleep 1; {}", print("slow"));
    let of_each =
        format!("case $(cat) in *'touch a'*) {} ;; *) {} ;; esac", print("because of a"), print("because of b"));
    let cases = [
        (vec![print(" ask \"first\",\nthen touch\n")], Turn::bash("touch a")),
        (vec![print("")], Turn::bash("touch a")),
        (vec![slow, fast, "echo no JSON".to_owned()], Turn::bash("touch a")),
        (vec![print(&"long ".repeat(10_000))], Turn::bash("touch a")),
        (vec![of_each], Turn::bash("touch a").and_bash("touch b")),
    ];
    for (hooks, turn) in some_of(cases, 1) {
        let chain = asking(version, vec![turn]);
        hooks_before(&chain, "Bash", &hooks);
        let plain = results_of_plain_claude(&chain, version);
        let before = chain.api.count();
        chain.ok(&["spawn", "ins.md"]);
        assert_eq!(chain.api.count(), before + 2);
        assert_eq!(chain.last_results(), plain);
        assert!(plain.iter().all(|(text, is_error)| *is_error && !text.contains("granted")), "{plain:?}");
    }
}

/// The second call has no hook that asks, and is not given the reason of the first.
fn a_person_is_told_why_a_hook_asks(version: &str) {
    let chain = asking(version, vec![Turn::bash("touch a"), Turn::bash("python3 b.py")]);
    let print = format!("printf '%s' '{}'", asking_because("a is\nprecious \u{1b}[2J"));
    hooks_before(&chain, "Bash", &[format!("case $(cat) in *'touch a'*) {print} ;; esac")]);
    let root = chain.started(&ASKING);
    let question = chain.json(&["questions", "--json"])[0].clone();
    assert_eq!(question["reason"], "a is\nprecious \u{1b}[2J");
    assert_eq!(chain.json(&["tree", "--json"])[0]["waiting_on"][0]["reason"], question["reason"]);
    let id = question["id"].as_str().unwrap();
    for shown in [chain.ok(&["questions", id]), chain.ok(&["show", id])] {
        assert!(shown.contains("why a hook asks:\n  │  a is\n  │  precious \\u{1b}[2J\n"), "{shown}");
    }
    chain.ok(&["answer", id, "allow"]);
    assert_eq!(chain.ok(&["resume", &root]), format!("SGN_PEND_STARTED ({root})\n"));
    assert!(chain.home.project().join("a").exists());
    assert!(chain.json(&["questions", "--json"])[0]["reason"].is_null());
}

/// Files are read side by side, and the hook before the first ends last.
fn calls_side_by_side_are_denied_each_for_its_own_reason(version: &str) {
    let read = |path: &str| json!({"file_path": path});
    let turn = Turn::call("Read", read("/etc/hostname")).and_call("Read", read("/etc/passwd"));
    let chain = asking(version, vec![turn]);
    let print = |reason: &str| format!("printf '%s' '{}'", asking_because(reason));
    let each =
        format!("case $(cat) in */etc/hostname*) sleep 1; {} ;; *) {} ;; esac", print("of one"), print("of two"));
    hooks_before(&chain, "Read", &[each]);
    let plain = results_of_plain_claude(&chain, version);
    chain.ok(&["spawn", "ins.md"]);
    assert_eq!(chain.last_results(), plain);
    assert_eq!(plain, [("of two".to_owned(), true), ("of one".to_owned(), true)], "in the order in which they end");
}
