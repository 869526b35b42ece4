//! What Claude Code keeps next to a session, what a fork needs of it, and when it is deleted.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use crate::session::Session;
use crate::support::{Conversation, Hold, Turn, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(
    a_large_result_stays_beside_the_session_that_it_came_in,
    a_session_is_forked_from_any_project_that_has_its_transcript,
    old_sessions_are_cleaned_up_by_whatever_runs_next,
);

/// The model runs a command with a large output, and later reads the file that it was put into.
fn with_large_result(version: &str) -> Session {
    let model = |said: &Conversation| match *said.result_texts() {
        [] => Turn::bash("cat large"),
        [large] if said.last_user_text() == Some("read it") => {
            Turn::call("Read", json!({"file_path": place(large), "offset": 3000, "limit": 1}))
        }
        _ => Turn::text("done"),
    };
    let mut session = Session::with_model(version, model);
    session.settings = json!({});
    session.write("project/large", &"0123456789abcde\n".repeat(3000).replace("abcde\n", "abcdef\n"));
    session.start();
    session
}

/// The file that a result was put into.
fn place(result: &str) -> PathBuf {
    let place = result.split_once("saved to: ").and_then(|(_, rest)| rest.lines().next());
    place.unwrap_or_else(|| panic!("no file: {result}")).into()
}

fn large_result(session: &Session) -> PathBuf {
    place(session.api.requests()[1].conversation().last_result().unwrap())
}

fn a_large_result_stays_beside_the_session_that_it_came_in(version: &str) {
    let session = with_large_result(version);
    let transcript = session.home.transcript(&session.id).unwrap();
    let result = large_result(&session);
    assert_eq!(result.parent(), Some(transcript.with_extension("").join("tool-results").as_path()));
    let fork = session.resume_from(&session.id, "read it");
    let read = fork.requests.last().unwrap().last_result().unwrap();
    assert!(read.contains("0123456789abcdef"), "it may be read in every permission mode: {read}");
    let beside = session.home.transcript(&fork.session).unwrap().with_extension("");
    assert!(!beside.join("tool-results").exists(), "the fork has no copy of it");
    fs::remove_file(result).unwrap();
    let fork = session.resume_from(&session.id, "read it");
    assert!(!fork.requests.last().unwrap().last_result().unwrap().contains("0123456789abcdef"));
}

fn a_session_is_forked_from_any_project_that_has_its_transcript(version: &str) {
    let session = with_large_result(version);
    let transcript = session.home.transcript(&session.id).unwrap();
    // As if it had worked in another directory, which does not exist.
    let text = fs::read_to_string(&transcript).unwrap();
    let project = session.home.project().display().to_string();
    fs::write(&transcript, text.replace(&format!("\"cwd\":\"{project}\""), "\"cwd\":\"/gone/project\"")).unwrap();
    let fork = session.resume_from(&session.id, "go on");
    assert_eq!(fork.result()["result"], "done", "{fork:?}");
}

fn old_sessions_are_cleaned_up_by_whatever_runs_next(version: &str) {
    let session = with_large_result(version);
    let result = large_result(&session);
    let transcript = session.home.transcript(&session.id).unwrap();
    session.write(".claude/settings.json", &json!({"cleanupPeriodDays": 30}).to_string());
    age(&result, 40);
    age(&transcript, 40);
    // It is done at most once a day, some seconds after a start.
    let _ = fs::remove_file(session.home.home().join(".claude/.last-cleanup"));
    let hold = Hold::new();
    let held = hold.clone();
    let other = crate::support::MessagesApi::start(move |_| Turn::text("done").held(&held));
    thread::scope(|scope| {
        let mut command = session.command();
        command.env("ANTHROPIC_BASE_URL", other.url()).arg("hello");
        let running = scope.spawn(move || command.output().unwrap());
        wait_until_gone(&[&transcript, &result]);
        hold.release();
        assert!(running.join().unwrap().status.success());
    });
}

fn age(file: &Path, days: u64) {
    let time = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
}

fn wait_until_gone(files: &[&Path]) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while files.iter().any(|file| file.exists()) {
        assert!(Instant::now() < deadline, "still there: {files:?}");
        thread::sleep(Duration::from_millis(50));
    }
}
