//! When Claude Code writes messages to the transcript, and how many of them a fork needs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::session::Session;
use crate::support::{Conversation, Hold, Turn, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(
    with_eager_flush_the_prompt_is_written_before_the_model_is_asked,
    with_eager_flush_all_is_written_before_the_result_is_printed,
    a_session_with_nothing_but_its_prompt_is_forked,
    a_session_in_which_nobody_has_spoken_is_not_found,
);

/// Starts the session with the switch that makes Claude Code write early.
fn eager(session: &Session) -> Child {
    let prompt = fs::File::open(session.write("prompt", "go")).unwrap();
    let mut command = session.command();
    command.args(["--session-id", &session.id]).env("CLAUDE_CODE_EAGER_FLUSH", "1");
    command.stdin(Stdio::from(prompt)).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn end(mut claude: Child) {
    claude.kill().unwrap();
    claude.wait().unwrap();
}

fn with_eager_flush_the_prompt_is_written_before_the_model_is_asked(version: &str) {
    let hold = Hold::new();
    let held = hold.clone();
    let session = Session::with_model(version, move |_: &Conversation| Turn::text("done").held(&held));
    let claude = eager(&session);
    session.api.wait_until(|requests| requests.len() == 1);
    end(claude);
    hold.release();
    assert!(session.transcript().iter().any(|line| line["message"]["content"] == "go"));
}

fn with_eager_flush_all_is_written_before_the_result_is_printed(version: &str) {
    let session = Session::new(version, Turn::bash("true"));
    let mut claude = eager(&session);
    let lines = BufReader::new(claude.stdout.take().unwrap()).lines();
    let is_result = |line: &String| line.contains(r#""type":"result""#);
    assert!(lines.map(Result::unwrap).any(|line| is_result(&line)));
    end(claude);
    let transcript = session.transcript();
    let said = transcript.iter().rfind(|line| line["type"] == "assistant").unwrap();
    assert_eq!(said["message"]["content"][0]["text"], "done");
}

fn a_session_with_nothing_but_its_prompt_is_forked(version: &str) {
    let session = cut(version, |line| line.contains(r#""content":"go""#));
    let fork = session.resume_from(&session.id, "and now?");
    assert_eq!(fork.result()["is_error"], false, "{fork:?}");
    assert_eq!(fork.request().last_user_text(), Some("and now?"));
}

fn a_session_in_which_nobody_has_spoken_is_not_found(version: &str) {
    let session = cut(version, |line| line.contains(r#""type":"queue-operation""#));
    let fork = session.resume_from(&session.id, "and now?");
    assert_eq!((fork.code, fork.requests.len()), (Some(1), 0));
    assert!(fork.err.contains("No conversation found with session ID"), "{fork:?}");
}

/// A session of whose transcript only the lines up to the last of these are left.
fn cut(version: &str, is_last: impl Fn(&str) -> bool) -> Session {
    let session = Session::new(version, Turn::bash("true"));
    session.start();
    let transcript = session.home.transcript(&session.id).unwrap();
    let text = fs::read_to_string(&transcript).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let last = lines.iter().rposition(|line| is_last(line)).unwrap_or_else(|| panic!("no such line: {text}"));
    fs::write(&transcript, lines[..=last].concat()).unwrap();
    session
}
