//! An agent's background work that never ends. `claude` stays alive with it, and while a subagent runs it does not print a
//! result.

use std::env;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::bash::SHELL;
use crate::script::Kind;
use crate::transcript::Mark;
use crate::turn::Turn;

/// What runs.
pub(crate) enum Beside {
    Command(Pid),
    Subagent,
}

impl Turn<'_> {
    /// Starts it.
    pub(crate) fn start_beside(&mut self, kind: Kind, mark: &Mark) -> Result<()> {
        let (tool, input) = match kind {
            Kind::Command => ("Bash", json!({"command": "exec tail -f /dev/null", "run_in_background": true})),
            Kind::Subagent => ("Agent", json!({"prompt": "look", "run_in_background": true})),
        };
        let call = self.say_calls(&[(tool.to_owned(), input)], mark)?.remove(0);
        self.beside = Some(match kind {
            Kind::Subagent => Beside::Subagent,
            Kind::Command => {
                let mut shell = Command::new(env::current_exe()?);
                shell.args([SHELL, "exec tail -f /dev/null"]);
                let child = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
                Beside::Command(Pid::from_child(&child))
            }
        });
        self.events.task_started(&call.id, "the server")?;
        self.record(&call.id, "it runs in the background", false, mark)
    }

    /// Whether the result is withheld until it has ended.
    pub(crate) fn holds_result_back(&self) -> bool {
        matches!(self.beside, Some(Beside::Subagent))
    }

    /// Stays alive with the background work until somebody ends this process.
    pub(crate) async fn live_on(&mut self, code: ExitCode) -> Result<ExitCode> {
        let Some(beside) = &self.beside else { return Ok(code) };
        self.bash.told_to_end().await;
        if let Beside::Command(pid) = beside {
            kill_process(*pid, Signal::KILL)?;
        }
        Ok(ExitCode::from(143))
    }
}
