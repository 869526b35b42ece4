//! A deferred call beside other calls of one turn.

use crate::session::{REQUEST, Session, commands, results, run_instead};
use crate::support::{OLDER, Turn, on_every_version};

on_every_version!(
    the_other_calls_of_the_turn_are_run_before_it_ends,
    a_call_that_was_the_last_gets_its_result,
    a_call_that_was_not_the_last_gets_its_result_or_an_error,
    of_two_deferred_calls_one_is_resumed_and_the_other_vanishes,
    a_command_that_fails_leaves_the_others_alone,
);

/// The hook is asked about all of them, in no fixed order.
fn the_other_calls_of_the_turn_are_run_before_it_ends(version: &str) {
    let session = Session::new(version, Turn::bash("touch before").and_bash(REQUEST).and_bash("touch after"));
    assert!(session.start().is_deferred());
    assert!(session.home.project().join("before").exists() && session.home.project().join("after").exists());
    assert_eq!(session.asked().len(), 3);
    // They are not run again.
    session.decide(&run_instead("echo answer"));
    session.resume();
    assert_eq!(session.asked().len(), 4);
}

fn a_call_that_was_the_last_gets_its_result(version: &str) {
    let session = Session::new(version, Turn::bash("echo other").and_bash(REQUEST));
    session.start();
    session.decide(&run_instead("echo answer"));
    let run = session.resume();
    let expected = [("echo other".to_owned(), "other", false), (REQUEST.to_owned(), "answer", false)];
    assert_eq!(results(run.request()), expected);
}

fn a_call_that_was_not_the_last_gets_its_result_or_an_error(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST).and_bash("echo other"));
    session.start();
    session.decide(&run_instead("echo answer"));
    let run = session.resume();
    let mut got = results(run.request());
    got.sort_by_key(|(command, ..)| command != REQUEST);
    let (text, is_error) =
        if version == OLDER { ("[Tool result missing due to internal error]", true) } else { ("answer", false) };
    assert_eq!(got, [(REQUEST.to_owned(), text, is_error), ("echo other".to_owned(), "other", false)]);
}

fn of_two_deferred_calls_one_is_resumed_and_the_other_vanishes(version: &str) {
    let session = Session::new(version, Turn::bash("agent-cli ask 'A'").and_bash("agent-cli ask 'B'"));
    let start = session.start();
    let deferred = &start.result()["deferred_tool_use"];
    session.decide(&run_instead("echo answer"));
    let run = session.resume();
    assert_eq!(session.asked().len(), 3);
    assert_eq!(session.asked()[2]["tool_use_id"], deferred["id"]);
    assert_eq!(commands(run.request()), [deferred["input"]["command"].as_str().unwrap()]);
    assert_eq!(run.tool_result(), ("answer", false));
}

fn a_command_that_fails_leaves_the_others_alone(version: &str) {
    let fails = "echo SGN_PEND_STARTED; exit 75";
    let session = Session::new(version, Turn::bash(fails).and_bash("sleep 0.2; echo later").and_bash("exit 75"));
    let run = session.start();
    let mut got: Vec<_> =
        results(run.requests.last().unwrap()).into_iter().map(|(_, text, is_error)| (text, is_error)).collect();
    got.sort_unstable();
    assert_eq!(got, [("Exit code 75", true), ("Exit code 75\nSGN_PEND_STARTED", true), ("later", false)]);
}
