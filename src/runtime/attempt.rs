//! Starts an attempt: one `claude` process on behalf of a frame.
//!
//! The order keeps every crash harmless: the lease first, then the record of the attempt, then the process. Whoever
//! finds a recorded attempt whose lease is free knows that its process has ended, or never was.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

use jiff::Timestamp;

use super::programs::Program;
use super::{RuntimeError, Settings, meanwhile, while_trying, worktree};
use crate::claude::answered::{self, CallResult};
use crate::claude::command::{Invocation, config_dir};
use crate::claude::process::Running;
use crate::claude::{settings, survivors, transcript};
use crate::core::frame::{Baseline, Frame, Task};
use crate::core::id::{FrameId, RequestId, SessionId};
use crate::core::prompt::{self, Telling};
use crate::core::request::{Delivery, RequestResult};
use crate::core::tree::Tried;
use crate::store::{Lease, NewAttempt, Store, StoreError, checkpoint};

/// What came of the wish to run a frame.
#[derive(Debug)]
pub(super) enum Start {
    /// It runs.
    Started(Running, Lease),
    /// It was recorded, but the process could not be started.
    NotStarted(Lease, String),
    /// Another process holds its lease.
    Busy,
    /// Meanwhile another process has changed it, so that it cannot run now.
    Changed,
    /// Meanwhile another process has started others, or met a limit, so that it may not run now.
    Held,
}

/// Starts an attempt of `frame`.
pub(super) fn start(
    store: &Store,
    own: &Settings,
    frame: FrameId,
    tried: &Tried,
    program: &Program,
) -> Result<Start, RuntimeError> {
    let Some(lease) = Lease::try_take(store.dir(), frame)? else { return Ok(Start::Busy) };
    // Only now is it certain that nobody else changes the frame.
    let (alone, now) = (store.tree(frame)?, Timestamp::now());
    let (Some(frame), Some(node)) = (store.frame(frame)?, alone.get(frame)) else { return Ok(Start::Changed) };
    if !alone.can_run(node, tried, now) {
        return Ok(Start::Changed);
    }
    if alone.holds(now).on(node).is_some() {
        return Ok(Start::Held);
    }
    if let Some(worktree) = &frame.launch.worktree
        && store.attempts(frame.id)?.is_empty()
    {
        worktree::ensure(worktree, &frame.cwd)?;
    }
    if !frame.cwd.is_dir() {
        return Err(RuntimeError::NoWorkingDirectory { frame: frame.id, cwd: frame.cwd });
    }
    put_checkpoint_back(store, &frame)?;
    let survivors = survivors::end(store.dir().path(), frame.id);
    if survivors > 0 {
        tracing::info!(frame = %frame.id, "ended {survivors} processes that its last attempt had left behind");
    }

    let deliveries = store.deliveries(frame.id)?;
    let hooks = hooks(store, own, &frame, program)?;
    let Told { text, transcript, to_return } = told(store, own, &frame, &deliveries, hooks.is_some())?;
    let prompt = store.dir().prompt_file(frame.id, &text).map_err(while_trying("write the prompt"))?;
    let errors = store.dir().open_errors(frame.id).map_err(while_trying("open the error log"))?;
    let session = next_session(store, &frame)?;
    let forked = frame.forked().map(|(_, session)| session);
    let attempt = NewAttempt {
        session,
        resumed: forked,
        output_from: lease.seal().map_err(while_trying("read the output file"))?,
        errors_from: errors.metadata().map_err(while_trying("read the error log"))?.len(),
        runner: process::id(),
        carried: deliveries.iter().map(|delivery| delivery.request).collect(),
        to_return,
    };
    match store.begin(frame.id, &attempt) {
        Err(StoreError::Held(_)) => return Ok(Start::Held),
        begun => begun?,
    }

    let instructions = instructions_to_allow(store, &frame)?;
    let invocation = Invocation {
        program: &program.path,
        frame: frame.id,
        session,
        resume: forked,
        transcript: transcript.as_deref(),
        cwd: &frame.cwd,
        instructions,
        launch: &frame.launch,
        state_dir: store.dir().path(),
        own_program: &own.own_program,
        no_attachments: !program.leaves_mentions && prompt::has_mention(&text),
        settings: hooks.as_deref(),
    };
    let mut command = invocation.command();
    command
        .stdin(Stdio::from(prompt))
        .stdout(Stdio::from(lease.output().map_err(while_trying("share the output file"))?))
        .stderr(Stdio::from(errors));
    Ok(match Running::start(command) {
        Ok(running) => Start::Started(running, lease),
        Err(error) => Start::NotStarted(lease, format!("{} cannot be started: {error}", program.path.display())),
    })
}

/// How an attempt is told what its agent is to know.
struct Told {
    text: String,
    /// What it is resumed from, when that is not the checkpoint as it is.
    transcript: Option<PathBuf>,
    /// The request whose suspended call is resumed to return its result.
    to_return: Option<RequestId>,
}

fn told(
    store: &Store,
    own: &Settings,
    frame: &Frame,
    deliveries: &[Delivery],
    hooks: bool,
) -> Result<Told, RuntimeError> {
    let by_prompt = |text| Told { text, transcript: None, to_return: None };
    let Some(checkpoint) = frame.checkpoint else {
        return Ok(Told { transcript: transcript_of_baseline(store, frame)?, ..by_prompt(prompt::first(frame)) });
    };
    let notices = notices(store, own, frame);
    match prompt::telling(frame, deliveries, &notices, hooks) {
        Telling::Call => {
            let to_return = deliveries.first().map(|delivery| delivery.request);
            Ok(Told { to_return, ..by_prompt(String::new()) })
        }
        Telling::Prompt => Ok(by_prompt(prompt::resume(deliveries, &notices))),
        Telling::Calls => {
            let left = add_results(store, frame, checkpoint, deliveries)?;
            if left.len() == deliveries.len() {
                return Ok(by_prompt(prompt::resume(deliveries, &notices)));
            }
            let transcript = Some(store.dir().answered(frame.id));
            Ok(Told { transcript, ..by_prompt(prompt::go_on(&left, &notices)) })
        }
    }
}

/// What the agent has to know besides what came of its requests.
fn notices(store: &Store, own: &Settings, frame: &Frame) -> Vec<String> {
    let wanted = own.stale_check && !frame.launch.no_stale_check;
    let changes = wanted.then(|| meanwhile::notice(store, frame)).flatten();
    frame.trouble.as_ref().map(prompt::of_trouble).into_iter().chain(changes).collect()
}

/// Adds results to a copy of the checkpoint. Returns those that have no open call in it.
fn add_results(
    store: &Store,
    frame: &Frame,
    checkpoint: SessionId,
    deliveries: &[Delivery],
) -> Result<Vec<Delivery>, RuntimeError> {
    let result = |delivery: &Delivery| match &delivery.result {
        RequestResult::Text(text) => CallResult { text: text.clone(), is_error: false },
        RequestResult::Failed(why) => CallResult { text: why.clone(), is_error: true },
    };
    let results = deliveries.iter().filter_map(|delivery| Some((delivery.call.clone()?, result(delivery)))).collect();
    let copy = || {
        let from = BufReader::new(File::open(store.dir().checkpoint(frame.id, checkpoint))?);
        let mut to = Vec::new();
        let left = answered::copy(from, results, &mut to)?;
        store.dir().write(&store.dir().answered(frame.id), &to)?;
        Ok(left)
    };
    let left = copy().map_err(while_trying("add results to the transcript"))?;
    let given = |delivery: &&Delivery| delivery.call.as_ref().is_none_or(|call| left.contains_key(call));
    Ok(deliveries.iter().filter(given).cloned().collect())
}

/// The transcript of the conversation that a frame begins with, where the session alone does not do: Claude Code looks for
/// sessions of the working directory, and a worktree is another one than that in which the conversation was held.
///
/// If calls stand suspended in it, that is a copy. Their results go to the agent that made them; Claude Code would have the
/// calls made anew in the fork.
fn transcript_of_baseline(store: &Store, frame: &Frame) -> Result<Option<PathBuf>, RuntimeError> {
    const ELSEWHERE: &str = "This call belongs to the conversation that yours began with. Its result goes there.";
    let (Some(Baseline { session, .. }), Some(config)) = (frame.baseline, config_dir(&frame.launch)) else {
        return Ok(None);
    };
    let Some(found) = transcript::find(&config, &frame.cwd, session) else { return Ok(None) };
    let close = || {
        let open = answered::suspended_calls(BufReader::new(File::open(&found)?))?;
        if open.is_empty() {
            let is_elsewhere = found != transcript::expected(&config, &frame.cwd, session);
            return Ok(Some(found.clone()).filter(|_| is_elsewhere && frame.launch.worktree.is_some()));
        }
        let result = CallResult { text: ELSEWHERE.to_owned(), is_error: false };
        let results = open.into_iter().map(|call| (call, result.clone())).collect();
        let mut to = Vec::new();
        answered::copy(BufReader::new(File::open(&found)?), results, &mut to)?;
        let file = store.dir().answered(frame.id);
        store.dir().write(&file, &to)?;
        Ok(Some(file))
    };
    close().map_err(while_trying("copy the conversation to begin with"))
}

/// The settings file with this program's hooks beside the user's own settings, where `claude` can make use of them.
///
/// It is a file because Claude Code leaves a copy of settings behind that it is given as a text.
fn hooks(store: &Store, own: &Settings, frame: &Frame, program: &Program) -> Result<Option<PathBuf>, RuntimeError> {
    if !program.suspends || frame.launch.no_hooks {
        return Ok(None);
    }
    let user = match settings::user_settings(&frame.launch.args) {
        None => None,
        Some(given) => match settings::read(given, &frame.cwd) {
            Some(user) => Some(user),
            // Claude Code says what is wrong with them.
            None => return Ok(None),
        },
    };
    let text = settings::settings(&own.own_program, user.as_ref()).to_string();
    let file = store.dir().settings(frame.id);
    store.dir().write(&file, text.as_bytes()).map_err(while_trying("write the settings"))?;
    Ok(Some(file))
}

/// The instructions of an agent at the top were named by a person. Those of a child were named by an agent, which could
/// otherwise read any file through its children. A child in a worktree of its own may read a file that lies where that agent
/// works: its own worktree may not have it.
fn instructions_to_allow<'a>(store: &Store, frame: &'a Frame) -> Result<Option<&'a Path>, RuntimeError> {
    let Task::File(path) = &frame.task else { return Ok(None) };
    if frame.depth == 1 {
        return Ok(Some(path));
    }
    if frame.launch.worktree.is_none() {
        return Ok(None);
    }
    let Some(asking) = store.asked_by(frame)? else { return Ok(None) };
    let is_there = path.canonicalize().is_ok_and(|file| file.starts_with(&asking.cwd));
    Ok(is_there.then_some(path))
}

/// Claude Code deletes old transcripts. The kept copy takes their place, so that the session can be forked.
fn put_checkpoint_back(store: &Store, frame: &Frame) -> Result<(), RuntimeError> {
    let (Some((owner, session)), Some(config)) = (frame.forked(), config_dir(&frame.launch)) else { return Ok(()) };
    let place = transcript::find(&config, &frame.cwd, session)
        .unwrap_or_else(|| transcript::expected(&config, &frame.cwd, session));
    let restored = checkpoint::restore(store.dir(), owner, session, &place);
    if restored.map_err(while_trying("put the transcript back"))? {
        tracing::info!(session = %session, "put the transcript back at {}", place.display());
    }
    Ok(())
}

/// A frame's first session has the frame's id. Claude Code refuses an id that was used before.
fn next_session(store: &Store, frame: &Frame) -> Result<SessionId, RuntimeError> {
    let is_first = store.attempts(frame.id)?.is_empty() && frame.checkpoint.is_none();
    Ok(if is_first { frame.id.into() } else { SessionId::random() })
}
