//! Which versions can defer.

use crate::session::{REQUEST, Session, run_instead};
use crate::support::Turn;
use crate::support::extent::is_whole;

/// Its result event has no `terminal_reason` yet.
#[test]
fn version_2_1_89_is_the_first_that_can_defer() {
    if !is_whole() {
        return;
    }
    let session = Session::new("2.1.89", Turn::bash(REQUEST));
    let run = session.start();
    assert!(run.is_deferred());
    assert_eq!(run.result().get("terminal_reason"), None);
    session.decide(&run_instead("echo answer"));
    // The list of skills may follow the result.
    assert_eq!(session.resume().tool_result().0.trim_end(), "answer");
}

/// It takes a deferral for no opinion, and a resume without a prompt for a success.
#[test]
fn version_2_1_88_is_the_last_that_cannot() {
    if !is_whole() {
        return;
    }
    let session = Session::new("2.1.88", Turn::bash(REQUEST));
    assert!(!session.start().is_deferred());
    assert_eq!(session.asked().len(), 1);
    let run = session.resume();
    assert_eq!((run.code, run.events.len(), run.requests.len()), (Some(0), 0, 0));
}
