//! The steps of an instruction file, one a line. Empty lines and lines that begin with `#` are passed over.
//!
//! | step | what the agent does |
//! | --- | --- |
//! | `spawn ARGS`, `wait ARGS` | calls `agent-cli spawn ARGS` through Bash; the shell splits the words |
//! | `ask QUESTION` | calls `agent-cli ask` with the whole rest of the line |
//! | `run COMMAND` | any other Bash call |
//! | `call TOOL INPUT` | a call of another tool, with JSON as its input. If no hook defers it, it returns `done` |
//! | `call EnterWorktree {"path": PATH}` | says that it is in a worktree from now on |
//! | `hold GATE` | a Bash call that adds a line to `GATE.held` and lasts until a line can be read from the fifo `GATE` |
//! | `big BYTES` | a Bash call that prints so much |
//! | `mode MODE` | goes into that permission mode |
//! | `reply TEXT` | ends its turn; `{result}`: the last result, `{results}`: those of all requests, `{id}`: the last id, `{mode}`: its permission mode |
//! | `end TEXT` | ends its turn with exactly this |
//! | `bigreply BYTES` | ends its turn with so many `x` |
//! | `decide FILE` | goes on when the file is there; until then it ends its turn with a signal, each time it is woken |
//! | `beside command`, `beside subagent` | starts what runs in its background and never ends |
//! | `noise TEXT` | prints a line that is no event |
//! | `fail MESSAGE` | meets an error after some work |
//! | `limit SECONDS` | meets its usage limit, which is lifted at that time |
//! | `api STATUS MESSAGE` | meets an error of the API; status 0: there was no answer |
//! | `refuse MESSAGE` | an error before any work, when nothing was done in this process yet |
//! | `silent CODE` | exits without a word |
//! | `garbage` | prints what is no event, and exits |
//! | `die SIGNAL` | kills its own process with the signal of that number |
//!
//! `STEP ++ STEP` makes the calls of several steps in one message, which are one step.
//!
//! A call that printed `SGN_PEND_STARTED (ID)` made a request. The turn then ends with that signal, unless the step
//! ends with ` &`: the agent goes on and may make more requests in the same turn.
//!
//! The last five leave no trace in the transcript, so the next process meets them again. `once STEP` is taken once, and
//! `unless FILE STEP` as long as the file is missing.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::beside::Kind;
use serde_json::{Value, json};

/// One line of an instruction file.
#[derive(Debug)]
pub(crate) struct Line {
    /// When the step is taken at all.
    pub(crate) condition: Condition,
    /// What is done.
    pub(crate) step: Step,
}

/// When a step is taken.
#[derive(Debug)]
pub(crate) enum Condition {
    Always,
    /// The first time that any process comes to it.
    Once,
    /// As long as the file is missing.
    Unless(PathBuf),
}

/// What an agent does.
#[derive(Debug)]
pub(crate) enum Step {
    /// Calls of tools with their inputs, all in one message.
    Call {
        calls: Vec<(String, Value)>,
        /// Whether the turn goes on after a request.
        go_on: bool,
    },
    /// The turn ends with this text, after placeholders are filled in.
    Reply(String),
    /// The turn ends with exactly this text.
    End(String),
    /// The turn ends with a signal until the file is there.
    Decide(PathBuf),
    /// Another permission mode.
    Mode(String),
    /// Something runs in its background from now on.
    Beside(Kind),
    /// A line that is no event.
    Noise(String),
    /// The process ends in disorder.
    Break(Break),
}

/// How a process ends without a reply.
#[derive(Debug)]
pub(crate) enum Break {
    Fail(String),
    Limit(i64),
    Api(u16, String),
    Refuse(String),
    Silent(u8),
    Garbage,
    Die(i32),
}

/// The steps of a file.
pub(crate) fn parse(text: &str) -> Result<Vec<Line>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse_line(line).with_context(|| format!("bad step {line:?}"))).collect()
}

fn parse_line(line: &str) -> Result<Line> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (condition, text) = match word {
        "once" => (Condition::Once, rest),
        "unless" => {
            let (file, step) = rest.split_once(' ').context("unless FILE STEP")?;
            (Condition::Unless(file.into()), step)
        }
        _ => (Condition::Always, line),
    };
    Ok(Line { condition, step: parse_step(text)? })
}

fn parse_step(text: &str) -> Result<Step> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    if let Some(calls) = calls(text.strip_suffix(" &").unwrap_or(text))? {
        return Ok(Step::Call { calls, go_on: text.ends_with(" &") });
    }
    Ok(match word {
        "reply" => Step::Reply(rest.to_owned()),
        "end" => Step::End(rest.to_owned()),
        "bigreply" => Step::End("x".repeat(rest.parse()?)),
        "decide" => Step::Decide(rest.into()),
        "mode" => Step::Mode(rest.to_owned()),
        "beside" => Step::Beside(if rest == "subagent" { Kind::Subagent } else { Kind::Command }),
        "noise" => Step::Noise(rest.to_owned()),
        "fail" => Step::Break(Break::Fail(rest.to_owned())),
        "limit" => Step::Break(Break::Limit(rest.parse()?)),
        "api" => {
            let (status, message) = rest.split_once(' ').context("api STATUS MESSAGE")?;
            Step::Break(Break::Api(status.parse()?, message.to_owned()))
        }
        "refuse" => Step::Break(Break::Refuse(rest.to_owned())),
        "silent" => Step::Break(Break::Silent(rest.parse()?)),
        "garbage" => Step::Break(Break::Garbage),
        "die" => Step::Break(Break::Die(rest.parse()?)),
        _ => bail!("there is no step of this name"),
    })
}

/// The calls of a step, where it makes any.
fn calls(text: &str) -> Result<Option<Vec<(String, Value)>>> {
    let parts = text.split(" ++ ").map(|part| part.split_once(' ').unwrap_or((part, "")));
    parts.map(|(word, rest)| call(word, rest)).collect()
}

fn call(word: &str, rest: &str) -> Result<Option<(String, Value)>> {
    if word == "call" {
        let (tool, input) = rest.split_once(' ').context("call TOOL INPUT")?;
        return Ok(Some((tool.to_owned(), serde_json::from_str(input)?)));
    }
    Ok(command(word, rest)?.map(|command| ("Bash".to_owned(), json!({"command": command}))))
}

/// The Bash command of a step, where it is one.
fn command(word: &str, rest: &str) -> Result<Option<String>> {
    Ok(Some(match word {
        "spawn" | "wait" => format!("agent-cli {word} {rest}"),
        "ask" => ask(rest),
        "run" => rest.to_owned(),
        "hold" => format!("echo held >> {rest}.held; read go < {rest}"),
        "big" => format!("head -c {} /dev/zero | tr '\\000' x", rest.parse::<usize>()?),
        _ => return Ok(None),
    }))
}

/// The command that asks a question.
pub(crate) fn ask(question: &str) -> String {
    format!("agent-cli ask '{}'", question.replace('\'', r"'\''"))
}
