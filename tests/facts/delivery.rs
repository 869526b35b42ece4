//! Results are delivered by lines at the end of a copy of the transcript, and a prompt.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::session::{REQUEST, Session, results, said_at_the_end};
use crate::support::extent::is_whole;
use crate::support::{OLDER, Turn, on_every_version};

on_every_version!(
    a_result_added_to_the_transcript_is_delivered_to_the_byte,
    results_added_for_several_calls_are_all_delivered,
    without_a_prompt_they_are_not_looked_at,
);

fn a_result_added_to_the_transcript_is_delivered_to_the_byte(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    let text = format!("\n \n --help 'q' \r\n{}\n\nSGN_PEND_STARTED\n\n", "0123456789abcde\n".repeat(65_536));
    let run = session.resume_from(&with_results(&session, |_| text.clone()), "SGN_RESUME");
    assert_eq!(results(run.request()), [(REQUEST.to_owned(), text.as_str(), false)]);
    // The price: the text that Claude Code puts between a result and a prompt.
    let between: &[_] = if version == OLDER { &["Continue from where you left off."] } else { &[] };
    let expected = [between, &["model: No response requested.", "SGN_RESUME"]].concat();
    assert_eq!(said_at_the_end(run.request()), expected);
    // The hook is not asked.
    assert_eq!(session.asked().len(), 1);
    assert_eq!((run.code, &run.result()["result"]), (Some(0), &json!("done")));
}

#[test]
fn the_first_version_that_can_defer_takes_them_too() {
    if !is_whole() {
        return;
    }
    results_added_for_several_calls_are_all_delivered("2.1.89");
}

fn results_added_for_several_calls_are_all_delivered(version: &str) {
    let turn = Turn::bash("agent-cli ask 'A'").and_bash("echo other").and_bash("agent-cli ask 'B'");
    let session = Session::new(version, turn);
    session.start();
    let run = session.resume_from(&with_results(&session, |command| format!("of {command}\n")), "SGN_RESUME");
    let mut got = results(run.request());
    got.sort();
    let expected = [
        ("agent-cli ask 'A'".to_owned(), "of agent-cli ask 'A'\n", false),
        ("agent-cli ask 'B'".to_owned(), "of agent-cli ask 'B'\n", false),
        ("echo other".to_owned(), "other", false),
    ];
    assert_eq!(got, expected);
}

fn without_a_prompt_they_are_not_looked_at(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    let run = session.resume_from(&with_results(&session, |_| "result".to_owned()), "");
    assert_eq!((run.code, run.requests.len()), (Some(1), 0));
    assert!(run.err.starts_with("Error: No deferred tool marker found"), "{}", run.err);
}

/// A copy of the transcript with a result for each deferred call, as a child of the line that holds the call (where 2.1.89
/// looks for it), and without the markers: with them the calls would be resumed all the same. Its path.
fn with_results(session: &Session, result: impl Fn(&str) -> String) -> String {
    let (markers, mut lines): (Vec<_>, Vec<_>) =
        session.transcript().into_iter().partition(|line| line["attachment"]["type"] == "hook_deferred_tool");
    for marker in markers {
        let of = &marker["attachment"]["toolUseID"];
        let call = lines.iter().find(|line| line["message"]["content"][0]["id"] == *of).unwrap().clone();
        let text = result(marker["attachment"]["toolInput"]["command"].as_str().unwrap());
        let mut line = json!({
            "type": "user", "uuid": Uuid::new_v4(), "parentUuid": call["uuid"], "sourceToolAssistantUUID": call["uuid"],
            "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": of, "content": text, "is_error": false},
            ]},
        });
        for same in ["sessionId", "timestamp", "cwd", "version", "gitBranch", "userType", "isSidechain"] {
            line[same] = call[same].clone();
        }
        lines.push(line);
    }
    let text = lines.iter().map(|line: &Value| format!("{line}\n")).collect::<String>();
    session.write("copy.jsonl", &text).to_str().unwrap().to_owned()
}
