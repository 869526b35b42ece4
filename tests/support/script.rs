//! What scripted agents do, one step a line: the grammar of the stand-in for `claude` and of the scripted model that the real one
//! talks to. Empty lines and lines that begin with `#` are passed over.
//!
//! | step | what the agent does |
//! | --- | --- |
//! | `spawn ARGS`, `wait ARGS` | calls `agent-cli spawn ARGS` through Bash; the shell splits the words |
//! | `ask QUESTION` | calls `agent-cli ask` with the whole rest of the line |
//! | `run COMMAND` | any other Bash call |
//! | `call TOOL INPUT` | a call of another tool, with JSON as its input |
//! | `hold GATE` | a Bash call that adds a line to `GATE.held` and lasts until a line can be read from the fifo `GATE` |
//! | `big BYTES` | a Bash call that prints so much |
//! | `reply TEXT` | ends its turn; `{result}`: the last result, `{results}`: those of all requests |
//! | `end TEXT` | ends its turn with exactly this |
//! | `if "TEXT" STEP` | takes the step only if the last result contains this text |
//!
//! `STEP ++ STEP` makes the calls of several steps in one message, which are one step.
//!
//! A call that printed `SGN_PEND_STARTED (ID)` made a request. The turn then ends with that signal.
//!
//! The published convention spells some of them as numbered lines, and everything else in such a file is for people:
//! `` 1. _spawn_ `a.md` and `b.md` ``, `2. _ask_ "When?"`, `` _ask_ "When?" `--option now` ``, `` _ask_ `questions.json` ``,
//! `` 3. _run_ `date` ``, `` _wait_ `--for 2h` ``, `4. _remember_ it` (which takes no step),
//! `5. _terminate_ "over"` (`end over`), and `_terminate_` with anything else (`reply {result}`).
//!
//! What follows a real `claude` cannot be made to do, so only the stand-in takes these:
//!
//! | step | what the agent does |
//! | --- | --- |
//! | `call …` | returns `done` if no hook defers it; after `call EnterWorktree {"path": PATH}` it says that it is in a worktree |
//! | `reply TEXT` | knows `{id}`, the last id, and `{mode}`, its permission mode, as well |
//! | `mode MODE` | goes into that permission mode |
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
//! With it, a step that ends with ` &` does not end the turn after a request: the agent goes on and may make more requests in the same
//! turn. The last five leave no trace in the transcript, so the next process meets them again. `once STEP` is taken once, and
//! `unless FILE STEP` as long as the file is missing.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// One step, and when it is taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// When the step is taken at all.
    pub(crate) condition: Condition,
    /// What is done.
    pub(crate) step: Step,
}

/// When a step is taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    Always,
    /// The first time that any process comes to it.
    Once,
    /// As long as the file is missing.
    Unless(PathBuf),
    /// If the last result contains this.
    Said(String),
}

/// What an agent does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Calls of tools, all in one message.
    Call {
        calls: Vec<Call>,
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

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    /// `agent-cli spawn` with these words.
    Spawn(String),
    /// `agent-cli ask` with this question.
    Ask(String),
    /// A command.
    Run(String),
    /// Another tool, with its input.
    Tool(String, Value),
}

/// What is started in the background.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Command,
    Subagent,
}

/// How a process ends without a reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Break {
    Fail(String),
    Limit(i64),
    Api(u16, String),
    Refuse(String),
    Silent(u8),
    Garbage,
    Die(i32),
}

impl Call {
    /// The command that it is, with `agent-cli` on the path.
    pub(crate) fn command(&self) -> Option<String> {
        match self {
            Self::Spawn(words) => Some(format!("agent-cli spawn {words}")),
            Self::Ask(question) => Some(format!("agent-cli ask {}", single_quoted(question))),
            Self::Run(command) => Some(command.clone()),
            Self::Tool(_, input) => input["command"].as_str().map(str::to_owned),
        }
    }

    /// The tool, and its input.
    pub(crate) fn tool(&self) -> (String, Value) {
        match self {
            Self::Tool(tool, input) => (tool.clone(), input.clone()),
            _ => ("Bash".to_owned(), json!({"command": self.command()})),
        }
    }
}

/// A word of a shell command, whatever is in it.
pub(crate) fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The steps of a instruction file.
pub(crate) fn parse(text: &str) -> Result<Vec<Line>> {
    let published: Vec<_> = text.lines().filter_map(published_step).collect();
    if !published.is_empty() {
        return published.into_iter().filter_map(|(word, rest)| parse_published(word, rest).transpose()).collect();
    }
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
        "if" => {
            let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once("\" "));
            let (text, step) = quoted.context("if \"TEXT\" STEP")?;
            (Condition::Said(text.to_owned()), step)
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
fn calls(text: &str) -> Result<Option<Vec<Call>>> {
    let parts = text.split(" ++ ").map(|part| part.split_once(' ').unwrap_or((part, "")));
    parts.map(|(word, rest)| call(word, rest)).collect()
}

fn call(word: &str, rest: &str) -> Result<Option<Call>> {
    Ok(Some(match word {
        "spawn" => Call::Spawn(rest.to_owned()),
        "ask" => Call::Ask(rest.to_owned()),
        "wait" => Call::Run(format!("agent-cli wait {rest}")),
        "run" => Call::Run(rest.to_owned()),
        "hold" => Call::Run(format!("echo held >> {rest}.held; read go < {rest}")),
        "big" => Call::Run(format!("head -c {} /dev/zero | tr '\\000' x", rest.parse::<usize>()?)),
        "call" => {
            let (tool, input) = rest.split_once(' ').context("call TOOL INPUT")?;
            Call::Tool(tool.to_owned(), serde_json::from_str(input)?)
        }
        _ => return Ok(None),
    }))
}

/// The keyword of a numbered line, and what follows it.
fn published_step(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let text = rest.strip_prefix(['.', ')']).filter(|_| rest.len() < line.len())?;
    text.split_once('_')?.1.split_once('_')
}

fn parse_published(word: &str, rest: &str) -> Result<Option<Line>> {
    let all = |mark, call: fn(String) -> Call| Step::Call {
        calls: enclosed(rest, mark).into_iter().map(call).collect(),
        go_on: false,
    };
    let run = |command| Step::Call { calls: vec![Call::Run(command)], go_on: false };
    let step = match word {
        "spawn" => all('`', Call::Spawn),
        "ask" => match enclosed(rest, '`').as_slice() {
            [file] if rest.trim_start().starts_with('`') => run(format!("agent-cli ask --questions {file}")),
            [options] => {
                let question = enclosed(rest, '"').into_iter().next().context("a question in quotation marks")?;
                run(format!("agent-cli ask {} {options}", single_quoted(&question)))
            }
            _ => all('"', Call::Ask),
        },
        "wait" => all('`', |options| Call::Run(format!("agent-cli wait {options}"))),
        "run" => all('`', Call::Run),
        "remember" => return Ok(None),
        "terminate" => match enclosed(rest, '"').into_iter().next() {
            Some(text) => Step::End(text),
            None => Step::Reply("{result}".to_owned()),
        },
        _ => bail!("there is no step _{word}_"),
    };
    Ok(Some(Line { condition: Condition::Always, step }))
}

/// What stands between pairs of `mark`.
fn enclosed(text: &str, mark: char) -> Vec<String> {
    let mut pieces = text.split(mark).skip(1);
    let mut found = Vec::new();
    while let (Some(inside), Some(_)) = (pieces.next(), pieces.next()) {
        found.push(inside.to_owned());
    }
    found
}
