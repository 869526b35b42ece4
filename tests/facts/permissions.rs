//! A call that needs approval.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::session::Session;
use crate::support::{Turn, on_every_version};

const CALL: &str = "touch made";

on_every_version!(
    with_a_prompt_tool_and_no_one_to_ask_it_is_denied_with_another_text,
    with_a_prompt_tool_it_is_asked_for_and_the_answer_decides,
);

fn needing_approval(version: &str) -> Session {
    let session = Session::new(version, Turn::bash(CALL));
    session.write("otherwise", "");
    session
}

fn with_a_prompt_tool_and_no_one_to_ask_it_is_denied_with_another_text(version: &str) {
    let mut session = needing_approval(version);
    let plain = session.start();
    session.arguments = vec!["--permission-prompt-tool", "stdio"];
    session.id = uuid::Uuid::new_v4().to_string();
    let asked = session.start();
    for run in [&plain, &asked] {
        assert_eq!(run.result()["permission_denials"][0]["tool_input"]["command"], CALL);
        assert_eq!(run.requests.len(), 2);
    }
    let text = |run: &crate::session::Run| run.requests[1].last_result().unwrap().to_owned();
    assert!(text(&asked).starts_with("Tool permission request failed: "), "{}", text(&asked));
    assert!(!text(&plain).starts_with("Tool permission request failed: "), "{}", text(&plain));
}

fn with_a_prompt_tool_it_is_asked_for_and_the_answer_decides(version: &str) {
    for (answer, is_made) in [
        (json!({"behavior": "deny", "message": "no\n"}), false),
        (json!({"behavior": "allow", "updatedInput": {"command": CALL}}), true),
    ] {
        let session = needing_approval(version);
        let mut command = session.command();
        command.args(["--permission-prompt-tool", "stdio", "--input-format", "stream-json"]);
        let mut claude = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // It is kept open until the result: after its end nothing can be asked any more.
        let mut input = claude.stdin.take();
        let mut say = |line: Value| writeln!(input.as_mut().unwrap(), "{line}").unwrap();
        say(json!({"type": "user", "message": {"role": "user", "content": "go"}}));
        for line in BufReader::new(claude.stdout.take().unwrap()).lines() {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if event["type"] == "control_request" {
                let request = &event["request"];
                assert_eq!((&request["subtype"], &request["tool_name"]), (&json!("can_use_tool"), &json!("Bash")));
                assert_eq!(request["input"]["command"], CALL);
                let response = json!({"subtype": "success", "request_id": event["request_id"], "response": answer});
                say(json!({"type": "control_response", "response": response}));
            } else if event["type"] == "result" {
                break;
            }
        }
        drop(input);
        assert!(claude.wait().unwrap().success());
        assert_eq!(session.home.project().join("made").exists(), is_made);
        if !is_made {
            assert_eq!(session.api.requests()[1].conversation().last_result(), Some("no\n"));
        }
    }
}
