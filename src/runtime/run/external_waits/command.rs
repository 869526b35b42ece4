//! Runs a command that an agent waits for.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinHandle;

use crate::claude::invocation::{ATTEMPT, FRAME, NO_ATTEMPT, STATE_DIR, restore_environment};
use crate::claude::processes::process::{ProcessExit, Running};
use crate::core::chain::frame::Frame;
use crate::core::waits::command_output::KeptOutput;
use crate::core::waits::wait_progress::CheckResult;

/// How long output is read after the command has ended. Processes that it has left behind may hold its pipes open indefinitely.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Runs a command in its own process group, which ends with this call, however the call ends.
///
/// An agent wrote the command, so it has the agent's mark, with an attempt id under which no request can be made. The outer shell
/// lives as long as the command, and keeps the mark even if the command clears its environment.
pub(super) async fn run(state_dir: &Path, frame: &Frame, command: &str, timeout: Duration) -> CheckResult {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"sh -c "$1"; exit $?"#, "sh", command]).current_dir(&frame.cwd);
    restore_environment(&mut shell, None, &frame.launch);
    shell.env(FRAME, frame.id.to_string()).env(ATTEMPT, NO_ATTEMPT.to_string()).env(STATE_DIR, state_dir);
    match outcome(shell, timeout).await {
        Ok((ended, printed, complained)) => look(ended, timeout, &printed, &complained),
        Err(error) => CheckResult::NotYet(format!("could not be started: {error}")),
    }
}

/// How a command ended (`None`: not in time), with its output and error output.
async fn outcome(mut shell: Command, timeout: Duration) -> io::Result<(Option<ProcessExit>, KeptOutput, KeptOutput)> {
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(shell)?;
    let group = running.kill_group_on_drop();
    let (stdout, stderr) = running.output();
    let readers = [stdout.map(reading), stderr.map(reading)];
    let ended = tokio::time::timeout(timeout, running.ended()).await.ok();
    drop(group);
    let until = tokio::time::Instant::now() + LAST_WORDS;
    let mut kept = [KeptOutput::default(), KeptOutput::default()];
    for (reader, kept) in readers.into_iter().zip(&mut kept) {
        let Some((mut reading, read)) = reader else { continue };
        if tokio::time::timeout_at(until, &mut reading).await.is_err() {
            reading.abort();
        }
        *kept = std::mem::take(&mut *read.lock().unwrap_or_else(PoisonError::into_inner));
    }
    let [printed, complained] = kept;
    Ok((ended, printed, complained))
}

/// Reads everything, so that the writer never blocks, and keeps a part of it.
fn reading(mut pipe: impl AsyncRead + Send + Unpin + 'static) -> (JoinHandle<()>, Arc<Mutex<KeptOutput>>) {
    let kept = Arc::new(Mutex::new(KeptOutput::default()));
    let into = Arc::clone(&kept);
    let reading = tokio::spawn(async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
            into.lock().unwrap_or_else(PoisonError::into_inner).add(&buffer[..read]);
        }
    });
    (reading, kept)
}

fn look(ended: Option<ProcessExit>, timeout: Duration, printed: &KeptOutput, complained: &KeptOutput) -> CheckResult {
    let how = match ended {
        Some(ProcessExit::Code(0)) => return CheckResult::Met(printed.text()),
        None => format!("did not end within {} s", timeout.as_secs()),
        Some(ProcessExit::Code(code)) => format!("exit status {code}"),
        Some(ProcessExit::Signal(signal)) => format!("ended by signal {signal}"),
        Some(_) => "its exit status is unknown".to_owned(),
    };
    let said = complained.last_line().or_else(|| printed.last_line());
    CheckResult::NotYet(said.map_or_else(|| how.clone(), |said| format!("{how}: {said}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn look_at(script: &str, timeout: Duration) -> CheckResult {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        let (ended, printed, complained) = outcome(shell, timeout).await.unwrap();
        look(ended, timeout, &printed, &complained)
    }

    #[tokio::test]
    async fn only_a_command_that_ends_with_0_is_met_and_its_output_is_the_result() {
        let long = Duration::from_secs(60);
        assert_eq!(look_at("echo merged; echo noise >&2", long).await, CheckResult::Met(Some("merged".into())));
        assert_eq!(look_at("true", long).await, CheckResult::Met(None));
        for (script, why) in [
            ("echo open; exit 1", "exit status 1: open"),
            ("echo open; echo 'gh: not logged in' >&2; exit 4", "exit status 4: gh: not logged in"),
            ("kill -9 $$", "ended by signal 9"),
        ] {
            assert_eq!(look_at(script, long).await, CheckResult::NotYet(why.into()));
        }
        let CheckResult::NotYet(why) = look_at("agent-cli-no-such-program", long).await else { panic!("it is met") };
        assert!(why.starts_with("exit status 127: ") && why.contains("not found"), "{why}");
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_ended_with_its_children() {
        let why = look_at("sleep 1000 & sleep 1000", Duration::from_millis(1)).await;
        assert_eq!(why, CheckResult::NotYet("did not end within 0 s".into()));
    }

    #[tokio::test]
    async fn a_command_that_floods_is_read_to_its_end_and_kept_in_part() {
        let flood =
            "i=0; while [ $i -lt 40 ]; do head -c 1000000 /dev/zero | tr '\\0' x; i=$((i+1)); done; echo; echo end";
        let CheckResult::Met(Some(text)) = look_at(flood, Duration::from_secs(600)).await else {
            panic!("it is not met")
        };
        assert!(text.len() < 30_000 && text.ends_with("\nend"), "{}", text.len());
    }

    #[tokio::test]
    async fn what_a_command_leaves_behind_keeps_nobody() {
        assert_eq!(
            look_at("echo over; sleep 1000 &", Duration::from_secs(60)).await,
            CheckResult::Met(Some("over".into()))
        );
    }
}
