//! Runs the command of one notification.

use std::io::{self, Read, Seek, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::claude::invocation::{ATTEMPT, FRAME, STATE_DIR, STORE};
use crate::claude::processes::process::{ProcessExit, Running};
use crate::core::notifications::payload::{OPTIONAL_VARIABLES, Payload};
use crate::core::text::escape;
use crate::failpoint::{self, Moment, Step};

/// The environment of a command.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    /// The folder of the config file: a command that names a file without a folder must not find one that an agent wrote.
    pub cwd: std::path::PathBuf,
    pub state_dir: std::path::PathBuf,
    /// The executable of agent-cli.
    pub own_program: std::path::PathBuf,
    pub timeout: Duration,
}

/// How many bytes of a command's error output are kept.
const KEPT: usize = 400;

/// How long its error output may take to arrive after it has ended.
const ARRIVES: Duration = Duration::from_millis(100);

/// Runs a command in its own process group, which is killed at the timeout.
pub(crate) async fn run(shell: &Shell, command: &str, payload: &Payload) -> Result<(), String> {
    failpoint::at(Step::RunNotification, Moment::Before);
    let started = started(shell, command, payload).map_err(|error| format!("sh cannot be started: {error}"));
    let (mut running, complaints) = started?;
    let group = running.kill_group_on_drop();
    let ended = tokio::time::timeout(shell.timeout, running.ended()).await;
    failpoint::at(Step::RunNotification, Moment::After);
    let how = match ended {
        Ok(ProcessExit::Code(0)) => {
            // Processes that it left running on purpose may continue.
            std::mem::forget(group);
            return Ok(());
        }
        Ok(ProcessExit::Code(code)) => format!("exit status {code}"),
        Ok(ProcessExit::Signal(signal)) => format!("killed by signal {signal}"),
        Ok(_) => "its exit status is unknown".to_owned(),
        Err(_) => format!("killed after {} s", shell.timeout.as_secs()),
    };
    drop(group);
    let said = said(&complaints);
    Err(if said.is_empty() { how } else { format!("{how}: {said}") })
}

/// The payload is never part of the command: it is on standard input and in the environment.
fn started(shell: &Shell, command: &str, payload: &Payload) -> io::Result<(Running, Receiver<Vec<u8>>)> {
    let mut input = tempfile::tempfile()?;
    // The text may end up on a terminal.
    writeln!(input, "{}", escape::json(&serde_json::to_string(payload)?))?;
    input.rewind()?;
    let (reader, writer) = io::pipe()?;
    let mut sh = Command::new("sh");
    sh.args(["-c", command]).current_dir(&shell.cwd).stdin(input).stdout(Stdio::null()).stderr(writer);
    for name in [FRAME, ATTEMPT, STORE].into_iter().chain(OPTIONAL_VARIABLES) {
        sh.env_remove(name);
    }
    sh.envs(payload.environment()).env(STATE_DIR, &shell.state_dir).env("AGENT_CLI_PROGRAM", &shell.own_program);
    Ok((Running::start(sh)?, complaints(reader)))
}

/// Reads all output, so that the writer never blocks, and returns the first part of it.
fn complaints(mut reader: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let (mut piece, mut kept) = ([0; 4096], 0);
        while let Ok(length @ 1..) = reader.read(&mut piece) {
            let more = length.min(KEPT - kept);
            kept += more;
            if more > 0 {
                // The receiver may have been dropped. Processes that are still running would be killed if they could not write.
                let _ = sender.send(piece[..more].to_vec());
            }
        }
    });
    receiver
}

fn said(complaints: &Receiver<Vec<u8>>) -> String {
    let mut said = Vec::new();
    while let Ok(piece) = complaints.recv_timeout(ARRIVES) {
        said.extend(piece);
    }
    on_one_line(&String::from_utf8_lossy(&said))
}

/// Joins error output into one line, for the middle of a sentence. Repeated lines appear once.
fn on_one_line(said: &str) -> String {
    let mut lines: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.dedup();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn the_beginning_of_what_a_command_complains_about_is_kept() {
        let said = |text: &str| said(&complaints(Cursor::new(text.to_owned())));
        assert_eq!(said(" no such host\n"), "no such host");
        assert_eq!(said(""), "");
        assert_eq!(said(&format!("{}{}", "a".repeat(300), "b".repeat(20_000))), "a".repeat(300) + &"b".repeat(100));
    }

    #[test]
    fn what_a_command_complains_about_is_one_line() {
        assert_eq!(on_one_line("sh: 1: x: not found\n\n  try y \r\n"), "sh: 1: x: not found; try y");
        assert_eq!(on_one_line("y\ny\ny\nn\n"), "y; n");
        assert_eq!(on_one_line("\n"), "");
    }
}
