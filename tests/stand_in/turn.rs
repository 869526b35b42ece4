//! What an agent can do in its turn. Everything is written to the transcript before it is printed.

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::bash::{Bash, Called};
use crate::events::{self, End, Events};
use crate::log::Log;
use crate::memory::Memory;
use crate::steps::Break;
use crate::transcript::{Mark, Transcript};

/// One turn of an agent: from a prompt to the end of the process.
pub(crate) struct Turn<'a> {
    /// The session's transcript.
    pub(crate) transcript: Transcript,
    /// The session's events.
    pub(crate) events: Events,
    /// The Bash tool.
    pub(crate) bash: Bash,
    /// What tests are told.
    pub(crate) log: &'a mut Log,
    /// How often the model has answered in this process.
    pub(crate) answers: u32,
}

/// Whether the turn goes on.
pub(crate) enum Flow {
    Goes,
    Over(ExitCode),
}

impl Turn<'_> {
    /// What the agent knows now.
    pub(crate) fn memory(&self) -> Memory {
        Memory::of(self.transcript.lines())
    }

    /// Calls the Read tool.
    pub(crate) fn read(&mut self, path: &str, mark: &Mark) -> Result<()> {
        let call = self.say_call("Read", &json!({"file_path": path}), mark)?;
        match fs::read_to_string(path) {
            Ok(text) => self.record(&call, text.trim_end(), false, mark),
            Err(error) => self.record(&call, &format!("end I cannot read {path}: {error}"), true, mark),
        }
    }

    /// Calls the Bash tool.
    pub(crate) async fn call(&mut self, command: &str, mark: &Mark) -> Result<Flow> {
        let call = self.say_call("Bash", &json!({"command": command}), mark)?;
        match self.bash.call(command).await? {
            Called::Done { output, failed } => {
                self.record(&call, &output, failed, mark)?;
                Ok(Flow::Goes)
            }
            Called::Interrupted => {
                let refused = "The user doesn't want to proceed with this tool use.";
                self.record(&call, refused, true, &Mark { over: false, ..mark.clone() })?;
                self.end(&End::Errors("[ede_diagnostic] result_type=user")).map(|()| Flow::Over(ExitCode::SUCCESS))
            }
            Called::Terminated => {
                self.record(&call, "Exit code 137", true, &Mark { over: false, ..mark.clone() })?;
                Ok(Flow::Over(ExitCode::from(143)))
            }
        }
    }

    /// Asks for the result of a request that the prompt did not bring.
    pub(crate) async fn look(&mut self, id: &str) -> Result<Flow> {
        let command = format!("agent-cli resume {id}");
        let call = self.say_call("Bash", &json!({"command": command}), &Mark::default())?;
        // The number of a step that there is not: this is about a step of an earlier turn.
        let mut mark = Mark { step: usize::MAX, ..Mark::default() };
        match self.bash.call(&command).await? {
            Called::Done { output, failed } => {
                if output != "SGN_PEND_ONGOING" && !failed {
                    mark.request = Some(id.to_owned());
                }
                self.record(&call, &output, failed, &mark)?;
                Ok(Flow::Goes)
            }
            Called::Interrupted | Called::Terminated => Ok(Flow::Over(ExitCode::from(143))),
        }
    }

    /// Ends the turn with a text.
    pub(crate) fn reply(&mut self, text: &str, mark: &Mark) -> Result<ExitCode> {
        self.say(&json!({"type": "text", "text": text}), mark)?;
        self.end(&End::Reply(text))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Remembers that a step is over that nobody hears of.
    pub(crate) fn skip(&mut self, mark: &Mark) -> Result<()> {
        self.transcript.add("system", &Value::Null, mark)
    }

    /// Ends the process without a reply.
    pub(crate) fn end_in_disorder(&mut self, how: &Break) -> Result<ExitCode> {
        match how {
            Break::Fail(message) => {
                if self.answers == 0 {
                    self.say(&json!({"type": "text", "text": "I begin."}), &Mark::default())?;
                }
                self.end_with_api_error(message)?;
            }
            Break::Api(status, message) => {
                let line = events::synthetic(message);
                self.transcript.add("assistant", &line, &Mark::default())?;
                self.events.api_error(*status, &line)?;
                self.end(&End::Api(*status, message))?;
            }
            Break::Refuse(message) => self.end_with_api_error(message)?,
            Break::Limit(resets_at) => {
                self.events.rate_limit(*resets_at)?;
                self.end_with_api_error("You've hit your limit · resets 9:54pm (UTC)")?;
            }
            Break::Silent(code) => return Ok(ExitCode::from(*code)),
            Break::Garbage => io::stdout().write_all(b"Segmentation fault (core dumped)\n{\"type\":\n\xff\xfe\0")?,
            Break::Die(number) => {
                self.log.end()?;
                kill_process(getpid(), Signal::from_named_raw(*number).unwrap_or(Signal::KILL))?;
            }
        }
        Ok(ExitCode::FAILURE)
    }

    fn end_with_api_error(&mut self, message: &str) -> Result<()> {
        let line = events::synthetic(message);
        self.transcript.add("assistant", &line, &Mark::default())?;
        self.events.message("assistant", &line)?;
        self.end(&End::ApiError(message))
    }

    fn say_call(&mut self, tool: &str, input: &Value, mark: &Mark) -> Result<String> {
        let id = format!("toolu_{}", Uuid::new_v4().simple());
        self.say(&json!({"type": "tool_use", "id": id, "name": tool, "input": input}), mark)?;
        Ok(id)
    }

    fn say(&mut self, block: &Value, mark: &Mark) -> Result<()> {
        self.answers += 1;
        let message = self.events.assistant(block);
        self.transcript.add("assistant", &message, mark)?;
        self.events.message("assistant", &message)
    }

    fn record(&mut self, call: &str, output: &str, failed: bool, mark: &Mark) -> Result<()> {
        let block = json!({"tool_use_id": call, "type": "tool_result", "content": output, "is_error": failed});
        let message = json!({"role": "user", "content": [block]});
        self.transcript.add("user", &message, mark)?;
        self.events.message("user", &message)
    }

    fn end(&self, end: &End<'_>) -> Result<()> {
        self.events.result(end, self.answers, self.memory().answers)
    }
}
