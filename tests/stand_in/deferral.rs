//! Calls that a hook defers: the process ends with the call open, and a fork without a prompt asks the hook again.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::events::End;
use crate::hooks::Decision;
use crate::transcript::Mark;
use crate::turn::{Call, Flow, Turn};

/// What a fork without a prompt adds to the conversation.
pub(crate) const CONTINUE: &str = "Continue from where you left off.";
/// What it prints if no call is open.
pub(crate) const NO_MARKER: &str =
    "No deferred tool marker found in the resumed session. Provide a prompt to continue the conversation.";

const MARKER: &str = "hook_deferred_tool";

/// The call at which a session is suspended: the last one that is marked and has no result.
pub(crate) fn open(lines: &[Value]) -> Option<Call> {
    let block = |line: &Value, kind: &str| Some(line["message"]["content"][0].clone()).filter(|b| b["type"] == kind);
    let marker = lines.iter().rev().find(|line| line["attachment"]["type"] == MARKER)?;
    let id = &marker["attachment"]["toolUseID"];
    let has_result = |line: &Value| block(line, "tool_result").is_some_and(|block| block["tool_use_id"] == *id);
    if lines.iter().any(has_result) {
        return None;
    }
    lines.iter().find_map(|line| {
        let call = block(line, "tool_use").filter(|call| call["id"] == *id)?;
        Some(Call {
            id: id.as_str()?.to_owned(),
            tool: call["name"].as_str()?.to_owned(),
            input: call["input"].clone(),
            mark: serde_json::from_value::<Mark>(line["standIn"].clone()).unwrap_or_default(),
        })
    })
}

/// The id of the call that a line marks as deferred.
pub(crate) fn marked(line: &Value) -> Option<&str> {
    line["attachment"]["toolUseID"].as_str().filter(|_| line["attachment"]["type"] == MARKER)
}

/// Waits at a gate, as the step `hold` does.
fn linger(gate: &Path) -> Result<()> {
    let held = gate.with_extension("held");
    OpenOptions::new().create(true).append(true).open(held)?.write_all(b"held\n")?;
    BufReader::new(File::open(gate)?).read_line(&mut String::new())?;
    Ok(())
}

impl Turn<'_> {
    /// Marks a call as deferred.
    pub(crate) fn mark(&mut self, call: &Call) -> Result<()> {
        let marker = self.marker(call);
        self.transcript.attach(&marker)
    }

    /// Ends the process with a deferred call open.
    pub(crate) fn end_deferred(&mut self, call: &Call) -> Result<ExitCode> {
        if let Some(gate) = env::var_os("STAND_IN_LINGERS") {
            linger(Path::new(&gate))?;
        }
        self.end(&End::Deferred(&json!({"id": call.id, "name": call.tool, "input": call.input})))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Asks about an open call again, and runs it if it is not deferred again. If it is, a message has its result. Returns
    /// whether it was taken from there.
    pub(crate) async fn resume(&mut self, call: &Call, message: Option<&Value>) -> Result<(Flow, bool)> {
        match self.ask(call).await? {
            Decision::Run { input } => return Ok((self.run(call, &input).await?, false)),
            Decision::Deny { reason } => self.record(&call.id, &reason, true, &call.mark)?,
            Decision::Defer => {
                self.mark(call)?;
                self.events.attachment(&self.marker(call))?;
                let Some(message) = message else { return Ok((Flow::Over(self.end_deferred(call)?), false)) };
                self.take_result(call, &message[0])?;
                return Ok((Flow::Goes, true));
            }
        }
        Ok((Flow::Goes, false))
    }

    fn take_result(&mut self, call: &Call, result: &Value) -> Result<()> {
        ensure!(result["tool_use_id"] == call.id, "the message has no result of the deferred call");
        let answers = self.memory().answers;
        let deferred = json!({"id": call.id, "name": call.tool, "input": call.input});
        self.events.result(&End::Deferred(&deferred), self.answers, answers)?;
        // It is not printed.
        let message = json!({"role": "user", "content": [result]});
        self.transcript.add("user", &message, &call.mark).map(drop)
    }

    fn marker(&self, call: &Call) -> Value {
        json!({
            "type": MARKER,
            "toolUseID": call.id,
            "toolName": call.tool,
            "toolInput": call.input,
            "hookName": "settings",
            "hookEvent": "PreToolUse",
            "permissionMode": self.permission_mode,
        })
    }
}
