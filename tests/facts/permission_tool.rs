//! A tool of the Model Context Protocol that decides on calls which need an approval.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::session::{Run, Session, decision, results};
use crate::support::{Conversation, OLDER, Turn, on_every_version};

on_every_version!(
    with_it_there_is_the_tool_for_questions,
    a_slow_server_does_not_change_the_tools_if_it_is_always_loaded,
    it_is_told_the_id_of_the_call_and_its_denial_is_the_result_to_the_byte,
    it_can_stop_the_agent_at_the_call,
    a_server_that_ends_after_listing_its_tools_is_started_again_for_a_call,
    a_call_that_was_stopped_at_can_be_marked_as_deferred_and_is_asked_about_again,
    where_it_is_missing_claude_ends_at_the_first_approval,
    a_permission_request_hook_does_not_win_over_a_closed_standard_input,
);

const NAMES: [&str; 2] = ["--permission-prompt-tool", "mcp__asker__permission"];

/// A server with the one tool, as a shell script. It records each call, and answers with the file `permission`.
fn with_the_tool(session: &mut Session, answer: &Value) {
    let server = session.script(
        "server",
        r#"while read -r line; do
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\)}$/\1/p')
            version=$(printf '%s' "$line" | sed -n 's/.*"protocolVersion":"\([^"]*\)".*/\1/p')
            case $line in
                *'"method":"initialize"'*) result="{\"protocolVersion\":\"$version\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"asker\",\"version\":\"1\"}}" ;;
                *'"method":"tools/list"'*) result='{"tools":[{"name":"permission","description":"x","inputSchema":{"type":"object"}}]}' ;;
                *'"method":"tools/call"'*) printf '%s\n' "$line" >> permissions; result="{\"content\":[{\"type\":\"text\",\"text\":$(cat permission)}]}" ;;
                *) continue ;;
            esac
            printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
        done
        "#,
    );
    answer_with(session, answer);
    let config = json!({"mcpServers": {"asker": {"type": "stdio", "command": server, "args": []}}});
    let config = session.write("mcp.json", &config.to_string()).to_str().unwrap().to_owned();
    session.arguments = vec!["--mcp-config", Box::leak(config.into_boxed_str()), NAMES[0], NAMES[1]];
    // Nothing else decides.
    session.write("otherwise", "");
    session.write("decision", "");
}

fn a_slow_server_does_not_change_the_tools_if_it_is_always_loaded(version: &str) {
    let tools = |seconds: u32, always: bool| {
        let mut session = Session::new(version, Turn::text("done"));
        with_the_tool(&mut session, &stop());
        let mut config: Value = serde_json::from_str(&session.read("mcp.json")).unwrap();
        let server = config["mcpServers"]["asker"].clone();
        let command = format!("sleep {seconds}; exec {}", server["command"].as_str().unwrap());
        config["mcpServers"]["asker"] =
            json!({"type": "stdio", "command": "/bin/sh", "args": ["-c", command], "alwaysLoad": always});
        session.write("mcp.json", &config.to_string());
        session.start();
        session.api.requests().remove(0).tools().to_string()
    };
    let usual = tools(0, false);
    assert_eq!(tools(4, false).contains("WaitForMcpServers"), version == OLDER);
    assert!(tools(4, true) == usual && tools(0, true) == usual);
}

fn answer_with(session: &Session, answer: &Value) {
    session.write("permission", &Value::from(answer.to_string()).to_string());
}

/// The calls of the tool so far.
fn asked(session: &Session) -> Vec<Value> {
    let lines = session.read("permissions");
    let arguments = |line: &str| serde_json::from_str::<Value>(line).unwrap()["params"]["arguments"].clone();
    lines.lines().map(arguments).collect()
}

fn stop() -> Value {
    json!({"behavior": "deny", "message": "no", "interrupt": true})
}

fn with_it_there_is_the_tool_for_questions(version: &str) {
    let mut session = Session::new(version, Turn::text("done"));
    let names = |session: &Session| {
        let request = session.api.requests().pop().unwrap();
        let names = request.tools().as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let plain = {
        session.start();
        names(&session)
    };
    with_the_tool(&mut session, &stop());
    session.id = Uuid::new_v4().to_string();
    session.start();
    let mut with = names(&session);
    assert!(with.contains(&"AskUserQuestion".to_owned()) && !plain.contains(&"AskUserQuestion".to_owned()));
    // The tool itself is not offered to the model. On 2.1.197 the tools for planning are.
    with.retain(|name| !plain.contains(name));
    let (questions, both) = (vec!["AskUserQuestion"], vec!["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"]);
    assert_eq!(with, if version == OLDER { both } else { questions });
}

fn it_is_told_the_id_of_the_call_and_its_denial_is_the_result_to_the_byte(version: &str) {
    let mut session = Session::new(version, Turn::bash("touch made"));
    with_the_tool(&mut session, &json!({"behavior": "deny", "message": " no \"thanks\"\n"}));
    let run = session.start();
    let denied = &run.result()["permission_denials"][0];
    assert_eq!(denied["tool_use_id"], asked(&session)[0]["tool_use_id"]);
    assert_eq!(asked(&session)[0]["input"]["command"], "touch made");
    assert_eq!(asked(&session)[0]["tool_name"], "Bash");
    assert_eq!(run.requests[1].last_result(), Some(" no \"thanks\"\n"));
}

/// The calls before it have run. Those after it have not, and are not asked about.
fn a_server_that_ends_after_listing_its_tools_is_started_again_for_a_call(version: &str) {
    let mut session =
        Session::with_model(version, |conversation: &Conversation| match conversation.results().count() {
            done @ 0..2 => Turn::bash(&format!("touch made-{done}")),
            _ => Turn::text("done"),
        });
    with_the_tool(&mut session, &json!({"behavior": "deny", "message": "no"}));
    let mut config: Value = serde_json::from_str(&session.read("mcp.json")).unwrap();
    let server = config["mcpServers"]["asker"]["command"].as_str().unwrap().to_owned();
    // Its first process ends with the list, the next ones with their input.
    let ending = session.script(
        "ending",
        &format!(
            r#"echo started >> starts
            test $(wc -l < starts) -gt 1 && exec {server}
            while read -r line; do
                printf '%s\n' "$line" | {server}
                case $line in *'"method":"tools/list"'*) exit ;; esac
            done
            "#
        ),
    );
    config["mcpServers"]["asker"]["command"] = ending.into();
    session.write("mcp.json", &config.to_string());
    let run = session.start();
    let results: Vec<_> = run.requests.last().unwrap().results().map(|(text, _)| text).collect();
    assert_eq!(results, ["no", "no"]);
    assert_eq!(asked(&session).len(), 2);
    assert_eq!(session.read("starts").lines().count(), 2, "one for the list, one for both calls");
}

fn it_can_stop_the_agent_at_the_call(version: &str) {
    let mut session =
        Session::new(version, Turn::bash("echo hi").and_bash("touch made").and_bash("touch other").and_bash("echo so"));
    with_the_tool(&mut session, &stop());
    let run = session.start();
    stopped(&run);
    assert_eq!(asked(&session).len(), 1);
    let rejected = session.transcript().into_iter().filter(|line| line["toolUseResult"] == "User rejected tool use");
    assert_eq!(rejected.count(), 3);
}

fn stopped(run: &Run) {
    assert_eq!((run.code, run.requests.len()), (Some(1), 1));
    let result = run.result();
    assert_eq!((&result["is_error"], &result["terminal_reason"]), (&json!(true), &json!("aborted_tools")));
}

/// The call need not be the last of its message, not even on 2.1.197.
fn a_call_that_was_stopped_at_can_be_marked_as_deferred_and_is_asked_about_again(version: &str) {
    let mut session = Session::new(version, Turn::bash("touch made; echo ran").and_bash("touch other"));
    with_the_tool(&mut session, &stop());
    stopped(&session.start());
    let call = asked(&session)[0]["tool_use_id"].clone();
    let marked = session.write("marked.jsonl", &marked(&session.transcript(), &call));
    for (answer, text, is_error) in [
        (json!({"behavior": "deny", "message": "never"}), "never", true),
        (json!({"behavior": "allow", "updatedInput": asked(&session)[0]["input"]}), "ran", false),
    ] {
        answer_with(&session, &answer);
        let run = session.resume_from(marked.to_str().unwrap(), "");
        assert_eq!(asked(&session).pop().unwrap()["tool_use_id"], call);
        let mut got = results(run.request());
        got.sort_by_key(|(command, ..)| command != "touch made; echo ran");
        assert_eq!(got[0], ("touch made; echo ran".to_owned(), text, is_error));
        assert_eq!((got.len(), got[1].2), (2, true));
    }
    assert_eq!(asked(&session).len(), 3);
}

/// The transcript without the call's result and what follows on it, and with a mark.
fn marked(transcript: &[Value], call: &Value) -> String {
    let blocks = |line: &Value| line["message"]["content"].as_array().cloned().unwrap_or_default();
    let has = |line: &Value, name: &str| blocks(line).iter().any(|block| block[name] == *call);
    let interruption = |line: &Value| {
        blocks(line)
            .iter()
            .any(|block| block["text"].as_str().is_some_and(|text| text.starts_with("[Request interrupted")))
    };
    let made = transcript.iter().find(|line| has(line, "id")).unwrap();
    let block = blocks(made).into_iter().find(|block| block["id"] == *call).unwrap();
    let mark = json!({
        "type": "attachment", "uuid": Uuid::new_v4(), "parentUuid": made["uuid"], "sessionId": made["sessionId"],
        "timestamp": made["timestamp"], "cwd": made["cwd"], "version": made["version"], "isSidechain": false,
        "userType": made["userType"],
        "attachment": {"type": "hook_deferred_tool", "toolUseID": call, "toolName": block["name"],
            "toolInput": block["input"]},
    });
    let kept = transcript.iter().filter(|line| !has(line, "tool_use_id") && !interruption(line)).chain([&mark]);
    kept.map(|line| format!("{line}\n")).collect()
}

fn where_it_is_missing_claude_ends_at_the_first_approval(version: &str) {
    let mut session = Session::new(version, Turn::bash("touch made"));
    session.arguments = NAMES.to_vec();
    session.write("otherwise", "");
    let run = session.start();
    assert_eq!((run.code, run.requests.len()), (Some(1), 1));
    assert!(run.err.contains("(passed via --permission-prompt-tool) not found"), "{run:?}");
}

fn a_permission_request_hook_does_not_win_over_a_closed_standard_input(version: &str) {
    let model = |said: &Conversation| {
        if said.last_result().is_some() { Turn::text("done") } else { Turn::bash("touch made") }
    };
    let mut session = Session::with_model(version, model);
    session.write("otherwise", "");
    let said = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest",
        "decision": {"behavior": "deny", "message": "no"}}});
    session.write("said", &said.to_string());
    let hook = session.script("on-permission", "cat said\n");
    session.settings["hooks"]["PermissionRequest"] =
        json!([{"matcher": "*", "hooks": [{"type": "command", "command": hook}]}]);
    session.arguments = vec!["--permission-prompt-tool", "stdio"];
    session.decide(&decision("allow", json!({})));
    let run = session.start();
    // The hook may have been ended before it had written anything.
    let told = run.requests[1].last_result().unwrap().to_owned();
    assert!(told.contains("Stream closed"), "{told}");
}
