//! The Bash tool.
//!
//! As in Claude Code, a tool runs in a session of its own: signals to the process group of `claude` do not reach it, and it
//! survives a killed `claude`.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use anyhow::{Error, Result};
use futures_util::FutureExt;
use rustix::process::{Pid, Signal, kill_process_group, setsid};
use tokio::process::Command;
use tokio::signal::unix::{Signal as Arriving, SignalKind, signal};

/// The first argument of a process that becomes a tool's shell instead of a stand-in.
pub(crate) const SHELL: &str = "--as-the-shell-of-a-tool";

/// How a call ended.
pub(crate) enum Called {
    /// By itself, with this output.
    Done { output: String, failed: bool },
    /// `claude` got SIGINT, and the tool was killed.
    Interrupted,
    /// `claude` got SIGTERM, and the tool was killed.
    Terminated,
}

/// Calls tools, and handles signals meanwhile.
pub(crate) struct Bash {
    session: String,
    deaf: bool,
    interrupt: Arriving,
    terminate: Arriving,
}

impl Bash {
    /// The tool of `session`. From now on signals end a tool call first and then the process.
    pub(crate) fn new(session: &str) -> Result<Self> {
        Ok(Self {
            session: session.to_owned(),
            deaf: env::var_os("STAND_IN_IS_DEAF").is_some(),
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Runs a command to its end, or until a signal comes.
    pub(crate) async fn call(&mut self, command: &str) -> Result<Called> {
        let child = Command::new(env::current_exe()?)
            .args([SHELL, command])
            .env("CLAUDECODE", "1")
            .env("CLAUDE_CODE_SESSION_ID", &self.session)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let ended = tokio::select! {
            output = child.wait_with_output() => {
                let output = output?;
                let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim_end().to_owned();
                return Ok(match output.status.code() {
                    Some(0) => Called::Done { output: printed, failed: false },
                    code => {
                        let code = code.unwrap_or(137);
                        Called::Done { output: format!("Exit code {code}\n{printed}"), failed: true }
                    }
                });
            }
            _ = self.interrupt.recv(), if !self.deaf => Called::Interrupted,
            _ = self.terminate.recv(), if !self.deaf => Called::Terminated,
        };
        if let Some(group) = group {
            // It may have ended at the same moment.
            let _ = kill_process_group(group, Signal::KILL);
        }
        Ok(ended)
    }
}

impl Bash {
    /// Whether `claude` got SIGINT since its last tool call ended.
    pub(crate) fn was_interrupted(&mut self) -> bool {
        !self.deaf && self.interrupt.recv().now_or_never().is_some()
    }

    /// Waits until a signal tells this process to end.
    pub(crate) async fn told_to_end(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A model repeats the call of a program that was killed, or found no space.
pub(crate) fn is_worth_another_try(output: &str) -> bool {
    output.starts_with("Exit code 137") || output.contains("hint: free some space")
}

/// Turns this process into `sh -c command` in a session of its own. Returns only when that fails.
pub(crate) fn become_shell(command: &str) -> Error {
    if let Err(error) = setsid() {
        return error.into();
    }
    std::process::Command::new("/bin/sh").args(["-c", command]).exec().into()
}
