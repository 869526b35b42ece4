//! The agent: takes one step after another until its turn ends.

use std::env;
use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::bash::Bash;
use crate::deferral;
use crate::events::{End, Events};
use crate::hooks::Hooks;
use crate::log::Log;
use crate::memory::Memory;
use crate::plan::Next;
use crate::script::{Break, Call, Step};
use crate::summary;
use crate::transcript::{self, Mark, Transcript};
use crate::turn::{Flow, Turn};
use crate::version;

/// Runs the agent on one prompt.
pub(crate) async fn run(arguments: Arguments, mut prompt: String, log: &mut Log) -> Result<ExitCode> {
    let hooks = Hooks::load(arguments.settings.as_deref())?;
    let events = Events::new(&arguments.session, &arguments.model);
    let mut history = Vec::new();
    if let Some(session) = &arguments.resume {
        history = transcript::load(session)?;
        if history.is_empty() {
            let error = format!("No conversation found with session ID: {session}");
            eprintln!("{error}");
            events.result(&End::Errors(&error), 0, 0)?;
            return Ok(ExitCode::FAILURE);
        }
    }
    let message = match arguments.takes_message {
        true => Some(serde_json::from_str::<Value>(&std::mem::take(&mut prompt))?["message"]["content"].take()),
        false => None,
    };
    let refuses = |name: &str| env::var(name).ok().filter(|_| prompt.is_empty());
    let of_forks = refuses("STAND_IN_RUNS_NO_CALLS_OF_FORKS").filter(|_| arguments.forks);
    if let Some(message) = refuses("STAND_IN_WANTS_A_PROMPT").or(of_forks) {
        eprintln!("{message}");
        return Ok(ExitCode::FAILURE);
    }
    let suspended = match (deferral::open(&history), prompt.is_empty()) {
        (_, true) if !version::defers() => return Ok(ExitCode::SUCCESS),
        (None, true) => bail!(deferral::NO_MARKER),
        (Some(_), false) => bail!("the stand-in knows no prompt beside a deferred call"),
        (call, _) => call,
    };
    let bash = Bash::new(&arguments.session)?;
    let woken_bare = prompt.trim() == "SGN_RESUME";
    let transcript = match arguments.resume.is_some() && !arguments.forks {
        true => Transcript::go_on(&arguments.session, history)?,
        false => Transcript::begin(&arguments.session, history)?,
    };
    let permission_mode = arguments.permission_mode;
    let mut turn = Turn { transcript, events, bash, hooks, permission_mode, log, beside: None, answers: 0 };
    if let Some(call) = &suspended {
        let (flow, is_handed) = turn.resume(call, message.as_ref()).await?;
        if let Flow::Over(code) = flow {
            return Ok(code);
        }
        let text =
            message.as_ref().filter(|_| is_handed).map(|message| message[1]["text"].as_str().unwrap_or_default());
        text.unwrap_or(deferral::CONTINUE).clone_into(&mut prompt);
    }
    if message.is_none() || !prompt.is_empty() {
        turn.transcript.add("user", &json!({"role": "user", "content": prompt}), &Mark::default())?;
    }
    if let Ok(message) = env::var("STAND_IN_REFUSES") {
        turn.events.init(&turn.permission_mode)?;
        return turn.end_in_disorder(&Break::Refuse(message));
    }
    if summary::is_asked_for(&prompt) {
        turn.events.init(&turn.permission_mode)?;
        let code = summary::write(&mut turn, &prompt).await?;
        return turn.live_on(code).await;
    }
    let first = Next::after(&turn.memory())?.step;
    if !matches!(first, Step::Break(Break::Silent(_) | Break::Garbage | Break::Die(_))) {
        turn.events.init(&turn.permission_mode)?;
    }
    let memory = turn.memory();
    // The call was not deferred again but run: it has made its request as a program.
    if suspended.is_some() && !memory.pending.is_empty() {
        return turn.reply(&format!("SGN_PEND_STARTED ({})", memory.last_id), &Mark::default());
    }
    let code = take_turn(&mut turn, woken_bare).await?;
    turn.live_on(code).await
}

async fn take_turn(turn: &mut Turn<'_>, woken_bare: bool) -> Result<ExitCode> {
    // What its first prompt brings is known when the instructions are read.
    if turn.memory().instructions.is_none() && !turn.memory().pending.is_empty() {
        turn.read(&turn.memory().task.unwrap_or_default(), &Mark::default())?;
    }
    // A prompt without results asks the agent to look for itself. Any other prompt brings the results of all requests.
    if let Some(id) = turn.memory().pending.first().filter(|_| !woken_bare) {
        bail!("the prompt does not bring the result of request {id}");
    }
    for id in turn.memory().pending {
        if let Flow::Over(code) = turn.look(&id).await? {
            return Ok(code);
        }
    }
    if !turn.memory().pending.is_empty() {
        return turn.reply("SGN_PEND_ONGOING", &Mark::default());
    }
    loop {
        if let Flow::Over(code) = take_step(turn).await? {
            return Ok(code);
        }
    }
}

async fn take_step(turn: &mut Turn<'_>) -> Result<Flow> {
    let mut memory = turn.memory();
    let mut next = Next::after(&memory)?;
    if memory.instructions.is_none() && !matches!(next.step, Step::Break(_)) {
        turn.read(memory.task.as_deref().unwrap_or_default(), &Mark::default())?;
        memory = turn.memory();
        next = Next::after(&memory)?;
    }
    next.begin()?;
    let over = Mark { step: next.number, over: true, request: None };
    match next.step {
        Step::Call { calls, go_on } => {
            let mut calls: Vec<_> = calls.iter().map(Call::tool).collect();
            for (_, input) in &mut calls {
                if let Some(command) = input["command"].as_str() {
                    input["command"] = filled(command, &memory).into();
                }
            }
            let flow = turn.call(&calls, &over).await?;
            let memory = turn.memory();
            if matches!(flow, Flow::Over(_)) || memory.pending.is_empty() || go_on {
                return Ok(flow);
            }
            turn.reply(&format!("SGN_PEND_STARTED ({})", memory.last_id), &Mark::default()).map(Flow::Over)
        }
        Step::Reply(text) => {
            let text = filled(&text, &memory).replace("{mode}", &turn.permission_mode);
            turn.reply(&text, &over).map(Flow::Over)
        }
        Step::End(text) => turn.reply(&text, &over).map(Flow::Over),
        Step::Decide(file) if file.exists() => turn.read(&file.to_string_lossy(), &over).map(|()| Flow::Goes),
        Step::Decide(_) => {
            let told = memory.announced.contains(&next.number);
            let signal = if told { "SGN_PEND_ONGOING" } else { "SGN_PEND_STARTED" };
            turn.reply(signal, &Mark { over: false, ..over }).map(Flow::Over)
        }
        Step::Mode(mode) => turn.change_mode(&mode, &over).map(|()| Flow::Goes),
        Step::Beside(kind) => turn.start_beside(kind, &over).map(|()| Flow::Goes),
        Step::Noise(text) => {
            println!("{text}");
            turn.skip(&over).map(|()| Flow::Goes)
        }
        Step::Break(how) => turn.end_in_disorder(&how).map(Flow::Over),
    }
}

fn filled(text: &str, memory: &Memory) -> String {
    text.replace("{result}", &memory.result)
        .replace("{results}", &memory.results.join("; "))
        .replace("{id}", &memory.last_id)
}
