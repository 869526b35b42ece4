//! A fork under its source's own session id, and a session that is resumed in place.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::session::{REQUEST, Run, Session, run_instead};
use crate::support::{Turn, on_every_version};

on_every_version!(
    a_copy_is_forked_under_the_id_of_its_session, a_fork_needs_the_place_of_its_session_to_be_free,
    a_session_goes_on_in_place, an_assistant_event_has_the_id_of_its_line,
);

/// A session that is suspended at a deferred call, its transcript, and a copy of that.
fn paused(version: &str) -> (Session, PathBuf, String) {
    let session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    session.decide(&run_instead("echo later"));
    let place = session.home.transcript(&session.id).unwrap();
    let copy = session.write("kept/copy.jsonl", &fs::read_to_string(&place).unwrap());
    (session, place, copy.to_str().unwrap().to_owned())
}

/// The call has returned its result, and there is one transcript.
fn has_gone_on(session: &Session, run: &Run) {
    assert_eq!((run.code, run.tool_result()), (Some(0), ("later", false)), "{run:?}");
    assert_eq!(session.home.transcripts().len(), 1);
    assert!(session.transcript().iter().all(|line| line.get("sessionId").is_none_or(|id| *id == session.id)));
    assert_eq!(session.asked().last().unwrap()["session_id"], json!(session.id));
}

fn a_copy_is_forked_under_the_id_of_its_session(version: &str) {
    let (session, place, copy) = paused(version);
    fs::remove_file(&place).unwrap();
    let before = fs::read(&copy).unwrap();
    has_gone_on(&session, &session.run_with(&["--resume", &copy, "--fork-session", "--session-id", &session.id], ""));
    assert_eq!(fs::read(&copy).unwrap(), before);
}

fn a_fork_needs_the_place_of_its_session_to_be_free(version: &str) {
    let (session, place, copy) = paused(version);
    let before = fs::read(&place).unwrap();
    let run = session.run_with(&["--resume", &copy, "--fork-session", "--session-id", &session.id], "");
    assert_eq!((run.code, run.requests.len()), (Some(1), 0));
    assert!(run.err.contains("is already in use"), "{}", run.err);
    assert_eq!(fs::read(&place).unwrap(), before);
}

fn a_session_goes_on_in_place(version: &str) {
    let (session, place, _) = paused(version);
    let before = fs::read_to_string(&place).unwrap();
    has_gone_on(&session, &session.run_with(&["--resume", &session.id], ""));
    assert!(fs::read_to_string(&place).unwrap().starts_with(&before), "it is added to");
}

fn an_assistant_event_has_the_id_of_its_line(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    let run = session.start();
    let ids = |lines: Vec<serde_json::Value>| -> Vec<_> {
        lines.into_iter().filter(|line| line["type"] == "assistant").map(|line| line["uuid"].clone()).collect()
    };
    assert!(!ids(run.events.clone()).is_empty());
    assert_eq!(ids(run.events), ids(session.transcript()));
}
