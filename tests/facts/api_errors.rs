//! How API errors are reported: the events show which of them can be temporary, without parsing messages.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};

use crate::session::Session;
use crate::support::extent::{is_whole, some_of};
use crate::support::{Conversation, Turn, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(
    an_error_of_the_api_has_a_kind_and_a_status,
    an_api_that_cannot_be_reached_is_a_server_error_without_a_status,
    a_stream_that_breaks_off_is_a_server_error_without_a_status,
);

/// The kind of the last message of a run, and the status and the text of its result.
fn reported(events: &[Value]) -> (Value, Value, String) {
    let last = |kind: &str| events.iter().rfind(|event| event["type"] == kind).unwrap_or(&Value::Null);
    let result = last("result");
    assert_eq!(result["is_error"], true, "{events:?}");
    let text = result["result"].as_str().unwrap_or_default().to_owned();
    (last("assistant")["error"].clone(), result["api_error_status"].clone(), text)
}

fn failing(version: &str, status: u16, kind: &'static str, message: &'static str) -> Session {
    let error = move |_: &Conversation| Turn::error(status, kind, message).header("x-should-retry", "false");
    let mut session = Session::with_model(version, error);
    session.settings["env"] = json!({"CLAUDE_CODE_MAX_RETRIES": "0"});
    session
}

fn an_error_of_the_api_has_a_kind_and_a_status(version: &str) {
    let cases = [
        (429, "rate_limit_error", "slow down", "rate_limit"),
        (500, "api_error", "oops", "server_error"),
        (503, "api_error", "later", "server_error"),
        (529, "overloaded_error", "Overloaded", "server_error"),
        (408, "timeout_error", "too slow", "unknown"),
        (400, "invalid_request_error", "out of order", "unknown"),
        (402, "billing_error", "no money", "unknown"),
        (409, "conflict_error", "at the same time", "unknown"),
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", "billing_error"),
        (401, "authentication_error", "invalid x-api-key", "authentication_failed"),
        (403, "permission_error", "no", "authentication_failed"),
        (404, "not_found_error", "model: nobody", "model_not_found"),
        (413, "request_too_large", "too large", "invalid_request"),
    ];
    for (status, kind, message, told_as) in some_of(cases, 4) {
        let run = failing(version, status, kind, message).start();
        let (error, found, _) = reported(&run.events);
        assert_eq!((error, found), (json!(told_as), json!(status)), "{message}");
    }
}

fn an_api_that_cannot_be_reached_is_a_server_error_without_a_status(version: &str) {
    let session = failing(version, 500, "api_error", "never asked");
    // Nothing listens there any more.
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    for url in [format!("http://{address}"), "http://nowhere.invalid".to_owned()] {
        let (error, status, _) = reported(&asking(&session, &url));
        assert_eq!((error, status), (json!("server_error"), Value::Null), "{url}");
    }
}

fn a_stream_that_breaks_off_is_a_server_error_without_a_status(version: &str) {
    let session = failing(version, 500, "api_error", "never asked");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // It answers for as long as the test's process lives.
    thread::spawn(move || listener.incoming().flatten().for_each(|connection| drop(begin_to_answer(connection))));
    let (error, status, _) = reported(&asking(&session, &url));
    assert_eq!((error, status), (json!("server_error"), Value::Null));
}

/// The beginning of an answer, and then nothing.
fn begin_to_answer(connection: TcpStream) -> io::Result<()> {
    let mut request = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        request.read_line(&mut line)?;
        match line.trim().to_lowercase().strip_prefix("content-length:") {
            Some(given) => length = given.trim().parse().unwrap(),
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    request.read_exact(&mut vec![0; length])?;
    let begin = json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
    }});
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\n";
    write!(request.get_mut(), "{head}event: message_start\ndata: {begin}\n\n")
}

/// The output when the API is at `url`.
fn asking(session: &Session, url: &str) -> Vec<Value> {
    let mut command = session.command();
    command.env("ANTHROPIC_BASE_URL", url).args(["--", "go"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let events = String::from_utf8(output.stdout).unwrap();
    events.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn version_2_1_89_tells_it_in_words_only() {
    if !is_whole() {
        return;
    }
    for (status, kind) in [(529, "overloaded_error"), (400, "invalid_request_error")] {
        let run = failing("2.1.89", status, kind, "words").start();
        let (error, found, text) = reported(&run.events);
        assert_eq!((error, found), (json!("unknown"), Value::Null));
        assert!(text.starts_with(&format!("API Error: {status} {{")), "{text}");
    }
}
