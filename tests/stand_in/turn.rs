//! What an agent can do in its turn. Everything is added to the transcript before it is printed.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::bash::{self, Bash, Called};
use crate::beside::Beside;
use crate::events::{self, End, Events};
use crate::hooks::{Decision, Hooks};
use crate::log::Log;
use crate::memory::Memory;
use crate::script::Break;
use crate::transcript::{Mark, Transcript};

/// One turn of an agent: from a prompt to the end of the process.
pub(crate) struct Turn<'a> {
    /// The session's transcript.
    pub(crate) transcript: Transcript,
    /// The session's events.
    pub(crate) events: Events,
    /// The Bash tool.
    pub(crate) bash: Bash,
    /// What is asked before a tool is called.
    pub(crate) hooks: Hooks,
    /// Its permission mode.
    pub(crate) permission_mode: String,
    /// The log for tests.
    pub(crate) log: &'a mut Log,
    /// What runs in its background.
    pub(crate) beside: Option<Beside>,
    /// How often the model has answered in this process.
    pub(crate) answers: u32,
}

/// A call of a tool.
pub(crate) struct Call {
    /// Its id.
    pub(crate) id: String,
    /// The tool.
    pub(crate) tool: String,
    /// What it was called with.
    pub(crate) input: Value,
    /// The step that it belongs to.
    pub(crate) mark: Mark,
}

/// Whether the turn continues.
pub(crate) enum Flow {
    Goes,
    Over(ExitCode),
}

impl Turn<'_> {
    /// What the agent knows now.
    pub(crate) fn memory(&self) -> Memory {
        Memory::of(self.transcript.lines())
    }

    /// Switches to another permission mode. Claude Code prints that before the call that does it has its result.
    pub(crate) fn change_mode(&mut self, mode: &str, mark: &Mark) -> Result<()> {
        let id = self.say_calls(&[("EnterPlanMode".to_owned(), json!({}))], mark)?.remove(0).id;
        mode.clone_into(&mut self.permission_mode);
        self.events.mode(mode)?;
        self.record(&id, "Done.", false, mark)
    }

    /// Calls the Read tool.
    pub(crate) fn read(&mut self, path: &str, mark: &Mark) -> Result<()> {
        let id = self.say_calls(&[("Read".to_owned(), json!({"file_path": path}))], mark)?.remove(0).id;
        match fs::read_to_string(path) {
            Ok(text) => self.record(&id, text.trim_end(), false, mark),
            Err(error) => self.record(&id, &format!("end I cannot read {path}: {error}"), true, mark),
        }
    }

    /// Calls tools, possibly several times in one message. If a call is deferred, the others are run, and then the process ends.
    pub(crate) async fn call(&mut self, calls: &[(String, Value)], mark: &Mark) -> Result<Flow> {
        let mut deferred = None;
        for call in self.say_calls(calls, mark)? {
            match self.ask(&call).await? {
                Decision::Run { input } => {
                    if let Flow::Over(code) = self.run(&call, &input).await? {
                        return Ok(Flow::Over(code));
                    }
                }
                Decision::Deny { reason } => self.record(&call.id, &reason, true, mark)?,
                Decision::Defer => {
                    self.mark(&call)?;
                    deferred = Some(call);
                }
            }
        }
        match deferred {
            Some(call) => self.end_deferred(&call).map(Flow::Over),
            None => {
                let after = self.hooks.after(&json!({"hook_event_name": "PostToolBatch"})).await?;
                if !after.texts.is_empty() {
                    let attachment = json!({"type": "hook_additional_context", "content": after.texts});
                    self.transcript.attach(&attachment)?;
                    self.events.attachment(&attachment)?;
                }
                let end = match () {
                    () if after.stops => End::Stopped,
                    () if after.interrupted || self.bash.was_interrupted() => {
                        End::Errors("[ede_diagnostic] result_type=user")
                    }
                    () => return Ok(Flow::Goes),
                };
                self.end(&end).map(|()| Flow::Over(ExitCode::SUCCESS))
            }
        }
    }

    /// Asks the hooks about a call.
    pub(crate) async fn ask(&self, call: &Call) -> Result<Decision> {
        let told = json!({
            "session_id": self.events.session(),
            "transcript_path": self.transcript.path(),
            "cwd": env::current_dir()?,
            "permission_mode": self.permission_mode,
            "hook_event_name": "PreToolUse",
            "tool_name": call.tool,
            "tool_input": call.input,
            "tool_use_id": call.id,
        });
        self.hooks.ask(&told).await
    }

    /// Runs a call, that of the Bash tool with an input that need not be the call's own.
    pub(crate) async fn run(&mut self, call: &Call, input: &Value) -> Result<Flow> {
        if call.tool != "Bash" {
            if call.tool == "EnterWorktree" {
                self.transcript.enter_worktree(&input["path"])?;
            }
            // A hook has the answers to the questions of a call.
            let answers = Some(&input["answers"]).filter(|answers| answers.is_object());
            let output = answers.map_or_else(|| "done".to_owned(), Value::to_string);
            self.record(&call.id, &output, false, &call.mark)?;
            return Ok(Flow::Goes);
        }
        let command = input["command"].as_str().unwrap_or_default();
        match self.bash.call(command).await? {
            Called::Done { output, failed } => {
                let over = call.mark.over && !(failed && bash::is_worth_another_try(&output));
                self.record(&call.id, &output, failed, &Mark { over, ..call.mark.clone() })?;
                Ok(Flow::Goes)
            }
            Called::Interrupted => {
                let refused = "The user doesn't want to proceed with this tool use.";
                self.record(&call.id, refused, true, &Mark { over: false, ..call.mark.clone() })?;
                self.end(&End::Errors("[ede_diagnostic] result_type=user")).map(|()| Flow::Over(ExitCode::SUCCESS))
            }
            Called::Terminated => {
                self.record(&call.id, "Exit code 137", true, &Mark { over: false, ..call.mark.clone() })?;
                Ok(Flow::Over(ExitCode::from(143)))
            }
        }
    }

    /// Asks for the result of a request that the prompt did not contain.
    pub(crate) async fn look(&mut self, id: &str) -> Result<Flow> {
        let command = format!("agent-cli resume {id}");
        let call = self.say_calls(&[("Bash".to_owned(), json!({"command": command}))], &Mark::default())?.remove(0).id;
        // A step number that does not exist: this is about a step of an earlier turn.
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
        self.say(&[json!({"type": "text", "text": text})], mark)?;
        self.end(&End::Reply(text))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Remembers that a step is over without any output.
    pub(crate) fn skip(&mut self, mark: &Mark) -> Result<()> {
        self.transcript.add("system", &Value::Null, mark).map(drop)
    }

    /// Ends the process without a reply.
    pub(crate) fn end_in_disorder(&mut self, how: &Break) -> Result<ExitCode> {
        match how {
            Break::Fail(message) => {
                if self.answers == 0 {
                    self.say(&[json!({"type": "text", "text": "I begin."})], &Mark::default())?;
                }
                self.end_with_api_error(message)?;
            }
            Break::Api(status, message) => {
                let line = events::synthetic(message);
                let uuid = self.transcript.add("assistant", &line, &Mark::default())?;
                self.events.api_error(*status, &line, uuid)?;
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
        let uuid = self.transcript.add("assistant", &line, &Mark::default())?;
        self.events.message("assistant", &line, uuid)?;
        self.end(&End::ApiError(message))
    }

    /// One message with these calls.
    pub(crate) fn say_calls(&mut self, calls: &[(String, Value)], mark: &Mark) -> Result<Vec<Call>> {
        let call = |(tool, input): &(String, Value)| Call {
            id: format!("toolu_{}", Uuid::new_v4().simple()),
            tool: tool.clone(),
            input: input.clone(),
            mark: mark.clone(),
        };
        let calls: Vec<Call> = calls.iter().map(call).collect();
        let block = |call: &Call| json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": call.input});
        self.say(&calls.iter().map(block).collect::<Vec<_>>(), mark)?;
        Ok(calls)
    }

    /// Each block of a message is an event and a line of its own.
    fn say(&mut self, blocks: &[Value], mark: &Mark) -> Result<()> {
        self.answers += 1;
        let id = format!("msg_{}", Uuid::new_v4().simple());
        for block in blocks {
            let message = self.events.assistant(&id, block);
            let mut written = message.clone();
            written["stop_reason"] = json!(if block["type"] == "tool_use" { "tool_use" } else { "end_turn" });
            let uuid = self.transcript.add("assistant", &written, mark)?;
            self.events.message("assistant", &message, uuid)?;
        }
        Ok(())
    }

    /// Records the result of a call.
    pub(crate) fn record(&mut self, call: &str, output: &str, failed: bool, mark: &Mark) -> Result<()> {
        let block = json!({"tool_use_id": call, "type": "tool_result", "content": output, "is_error": failed});
        let message = json!({"role": "user", "content": [block]});
        let uuid = self.transcript.add("user", &message, mark)?;
        self.events.message("user", &message, uuid)
    }

    /// Prints the last event.
    pub(crate) fn end(&mut self, end: &End<'_>) -> Result<()> {
        if env::var_os("STAND_IN_DIES_AT_ITS_END").is_some() {
            self.events.result(end, self.answers, self.memory().answers)?;
            self.log.end()?;
            kill_process(getpid(), Signal::KILL)?;
        }
        self.transcript.flush()?;
        if self.holds_result_back() {
            return Ok(());
        }
        self.events.result(end, self.answers, self.memory().answers)
    }
}
