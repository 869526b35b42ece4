//! A suspended call gets its result on standard input: the conversation is then the same as without a pause.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::session::{REQUEST, Run, Session, commands, results, said_at_the_end};
use crate::support::{Conversation, NEWEST, OLDER, Turn};

/// Older versions do not take a result from a file.
macro_rules! on_the_newest_version {
    ($($test:ident),+ $(,)?) => {
        mod on_the_newest_version {
            $(#[test] fn $test() { super::$test(super::NEWEST); })+
        }
    };
}

on_the_newest_version!(
    a_result_from_standard_input_is_all_that_is_added,
    any_result_and_a_notice_beside_it_arrive_exactly,
    of_several_calls_one_is_handed_its_result_and_the_others_have_theirs,
    a_conversation_can_pause_so_again_and_again,
    a_result_for_another_call_is_lost_without_a_word,
    the_call_stands_open_after_a_process_that_was_handed_nothing,
);

const OTHER: &str = "agent-cli ask 'And?'";

/// Standard input is a regular file, which ends after the message.
fn message(blocks: &[Value]) -> String {
    let message = json!({"role": "user", "content": blocks});
    format!("{}\n", json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""}))
}

fn result_of(call: &Value, text: &str, is_error: bool) -> Value {
    json!({"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error})
}

fn deferred(run: &Run) -> Value {
    run.result()["deferred_tool_use"]["id"].clone()
}

fn hand(session: &mut Session, from: &str, blocks: &[Value]) -> Run {
    session.arguments = vec!["--input-format", "stream-json"];
    session.resume_from(from, &message(blocks))
}

fn a_result_from_standard_input_is_all_that_is_added(version: &str) {
    let mut session = Session::new(version, Turn::bash(REQUEST));
    let call = deferred(&session.start());
    let from = session.id.clone();
    let run = hand(&mut session, &from, &[result_of(&call, "Jan 1st", false)]);
    assert_eq!(run.tool_result(), ("Jan 1st", false));
    assert_eq!(commands(run.request()), [REQUEST]);
    assert_eq!(said_at_the_end(run.request()), [""; 0], "nobody says anything");
    // The hook is asked once more, and defers again; the process then ends.
    assert_eq!((session.asked().len(), run.code, &run.result()["result"]), (2, Some(0), &json!("done")));
    let ends: Vec<_> = run.events.iter().filter(|event| event["type"] == "result").collect();
    assert_eq!((ends.len(), &ends[0]["stop_reason"]), (2, &json!("tool_deferred")));
    assert_eq!((&ends[0]["deferred_tool_use"]["id"], &ends[0]["is_error"]), (&call, &json!(false)));
    // The result is not printed.
    assert!(!run.events.iter().any(|event| event["type"] == "user"));
}

fn any_result_and_a_notice_beside_it_arrive_exactly(version: &str) {
    let text = format!("\n \n --help 'q' \r\n{}\n\nSGN_PEND_STARTED\n\n", "0123456789abcde\n".repeat(26_000));
    for (text, is_error) in [(text.as_str(), false), ("it\nfailed\n", true), ("/compact @secret", false)] {
        let mut session = Session::new(version, Turn::bash(REQUEST));
        let call = deferred(&session.start());
        let from = session.id.clone();
        let notice = json!({"type": "text", "text": "SGN_RESUME\n\na notice"});
        let run = hand(&mut session, &from, &[result_of(&call, text, is_error), notice]);
        assert_eq!(run.tool_result(), (text, is_error));
        assert_eq!(said_at_the_end(run.request()), ["SGN_RESUME\n\na notice"]);
    }
}

fn of_several_calls_one_is_handed_its_result_and_the_others_have_theirs(version: &str) {
    let turn =
        Turn::bash("agent-cli ask 'A'").and_bash("echo other").and_bash("agent-cli ask 'B'").and_bash("echo last");
    let mut session = Session::new(version, turn);
    session.start();
    let (copy, call) = with_one_open(&session);
    let run = hand(&mut session, &copy, &[result_of(&call, "of B", false)]);
    let mut got = results(run.request());
    got.sort();
    let expected = [
        ("agent-cli ask 'A'".to_owned(), "of A", false),
        ("agent-cli ask 'B'".to_owned(), "of B", false),
        ("echo last".to_owned(), "last", false),
        ("echo other".to_owned(), "other", false),
    ];
    assert_eq!(got, expected);
    assert_eq!(said_at_the_end(run.request()), [""; 0]);
}

/// A copy of the transcript in which the first call has its result, and the mark of the other is the last line. Its path, and that
/// call.
fn with_one_open(session: &Session) -> (String, Value) {
    let (mut marks, mut lines): (Vec<_>, Vec<_>) =
        session.transcript().into_iter().partition(|line| line["attachment"]["type"] == "hook_deferred_tool");
    let is_first = |mark: &Value| mark["attachment"]["toolInput"]["command"] == "agent-cli ask 'A'";
    marks.sort_by_key(|mark| !is_first(mark));
    let made = |of: &Value| {
        let has = |line: &&Value| line["message"]["content"][0]["id"] == *of;
        lines.iter().find(has).unwrap().clone()
    };
    let (first, other) = (marks[0]["attachment"]["toolUseID"].clone(), marks[1]["attachment"]["toolUseID"].clone());
    let (made_first, made_other) = (made(&first), made(&other));
    let mut line = json!({
        "type": "user", "uuid": Uuid::new_v4(), "parentUuid": made_first["uuid"],
        "sourceToolAssistantUUID": made_first["uuid"],
        "message": {"role": "user", "content": [result_of(&first, "of A", false)]},
    });
    for same in ["sessionId", "timestamp", "cwd", "version", "gitBranch", "userType", "isSidechain"] {
        line[same] = made_first[same].clone();
    }
    let mut mark = marks.pop().unwrap();
    (mark["uuid"], mark["parentUuid"]) = (json!(Uuid::new_v4()), made_other["uuid"].clone());
    // The lines after the marks belong to the paused turn only.
    lines.retain(|line| line["attachment"]["type"] != "prompt_snapshot" || line["parentUuid"] != marks[0]["uuid"]);
    lines.extend([line, mark]);
    let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    (session.write("copy.jsonl", &text).to_str().unwrap().to_owned(), other)
}

fn asks_twice(said: &Conversation) -> Turn {
    match said.results().count() {
        0 => Turn::bash(REQUEST),
        1 => Turn::bash(OTHER),
        _ => Turn::text("done"),
    }
}

fn a_conversation_can_pause_so_again_and_again(version: &str) {
    let mut session = Session::with_model(version, asks_twice);
    let call = deferred(&session.start());
    let from = session.id.clone();
    let between = hand(&mut session, &from, &[result_of(&call, "Jan 1st", false)]);
    assert!(between.is_deferred());
    let call = deferred(&between);
    let run = hand(&mut session, &between.session, &[result_of(&call, "nobody", true)]);
    let expected = [(REQUEST.to_owned(), "Jan 1st", false), (OTHER.to_owned(), "nobody", true)];
    assert_eq!(results(run.request()), expected);
    assert_eq!(said_at_the_end(run.request()), [""; 0]);
}

/// So the id is checked first, and afterwards where the transcript has the result.
fn a_result_for_another_call_is_lost_without_a_word(version: &str) {
    let mut session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    let from = session.id.clone();
    let run = hand(&mut session, &from, &[result_of(&json!("toolu_none"), "Jan 1st", false)]);
    assert_eq!(run.tool_result(), ("[Tool result missing due to internal error]", true));
    assert_eq!((run.code, &run.result()["is_error"]), (Some(0), &json!(false)));
}

fn the_call_stands_open_after_a_process_that_was_handed_nothing(version: &str) {
    let mut session = Session::new(version, Turn::bash(REQUEST));
    let call = deferred(&session.start());
    session.arguments = vec!["--input-format", "stream-json"];
    let nothing = session.resume();
    assert!(nothing.is_deferred() && nothing.requests.is_empty() && nothing.code == Some(0), "{nothing:?}");
    let from = session.id.clone();
    let run = hand(&mut session, &from, &[result_of(&call, "Jan 1st", false)]);
    assert_eq!(run.tool_result(), ("Jan 1st", false));
}

#[test]
fn an_older_version_has_ended_before_it_reads_a_file() {
    let mut session = Session::new(OLDER, Turn::bash(REQUEST));
    let call = deferred(&session.start());
    let from = session.id.clone();
    let run = hand(&mut session, &from, &[result_of(&call, "Jan 1st", false)]);
    assert!(run.is_deferred() && run.requests.is_empty() && run.code == Some(0), "{run:?}");
}

#[test]
fn an_older_version_reads_a_pipe_that_stays_open_until_the_turn_begins() {
    let mut session = Session::new(OLDER, Turn::bash(REQUEST));
    let call = deferred(&session.start());
    let from = session.id.clone();
    session.input_stays_open = true;
    let text = "0123456789abcde\n".repeat(10_000);
    let run = hand(&mut session, &from, &[result_of(&call, &text, false)]);
    assert_eq!(run.tool_result(), (text.as_str(), false));
    assert_eq!(said_at_the_end(run.request()), [""; 0], "nobody says anything");
    assert_eq!((run.code, &run.result()["result"]), (Some(0), &json!("done")));
}
