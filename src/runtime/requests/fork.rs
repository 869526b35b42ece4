//! The conversations that new agents start with: the checkpoint of a frame, or a Claude session that agent-cli did not start.
//! Every agent gets a fork; the conversation itself does not change.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use crate::claude::environment::config_dir::config_dir;
use crate::claude::transcript::rewrite::Entries;
use crate::claude::transcript::{insert_results, locate, session_facts};
use crate::core::agent::launch::Launch;
use crate::core::agent::usage::Totals;
use crate::core::attempt::prompt;
use crate::core::chain::frame::{Baseline, Frame, KeptConversation};
use crate::core::chain::frame_state::FrameState;
use crate::core::id::{AttemptId, FrameId, IdPrefix, SessionId};
use crate::runtime::requests::agent_lookup;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::files::checkpoint;
use crate::store::{Attempt, Caller, Scope, Store, StoreError, Target};

/// How long Claude Code may take to write a message with a call, which it does when the model has finished the message. It
/// must be less than a command may run.
const WRITES: Duration = Duration::from_secs(90);
/// How often to check whether the message was written.
const LOOK: Duration = Duration::from_millis(10);

/// A conversation, and what its forks share with it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ForkSource {
    pub baseline: Baseline,
    /// The tree that it belongs to; `None`: agent-cli did not start the session.
    pub root: Option<FrameId>,
    /// Its working directory. Claude Code looks for the session there, and the conversation mentions files there.
    pub cwd: PathBuf,
    /// The model that was used in it. With another one, the prompt cache would be missed.
    pub model: Option<String>,
    /// Whether its agent had Claude Code's own tool for questions: the cached prefix contains the tools.
    pub native_questions: bool,
}

/// Why a conversation cannot be forked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadSource {
    /// The end of its conversation is still being written.
    #[error("{} is running: its conversation can be forked when its turn has ended", .0.short())]
    Running(FrameId),
    /// It has not worked yet.
    #[error("{} has no conversation yet", .0.short())]
    Empty(FrameId),
    /// It has written a summary for a new session.
    #[error("{} starts afresh: its new session has not begun", .0.short())]
    StartsAfresh(FrameId),
    /// A group has no agent.
    #[error("{} is a group of agents, which has no conversation: name one of them", .0.short())]
    Group(FrameId),
    /// A transcript of Claude Code that does not contain its session's working directory.
    #[error("the transcript of {0} does not say where it worked")]
    NoWorkingDirectory(SessionId),
    /// A fork works in the same directory as its source.
    #[error("a fork of that conversation has to work in its directory, {}", .0.display())]
    Elsewhere(PathBuf),
    /// Which call forks is only known from its command.
    #[error(
        "nothing was started: a fork in the background needs a call of its own in the foreground, with this command alone"
    )]
    NotInACall,
    /// Claude Code has not written the call.
    #[error("nothing was started: Claude Code has not written the conversation up to this call")]
    Unwritten,
    /// A conversation may contain what the agent may not read.
    #[error("no agent or session of this chain matches `{0}`")]
    Foreign(String),
}

/// The conversation that `id` names: a frame, any of its sessions, or another Claude session by its full id. Every id of a
/// frame stands for its checkpoint.
///
/// # Errors
///
/// [`BadSource`], the id is unknown, or the state directory cannot be read.
pub(crate) fn source(store: &Store, id: &IdPrefix, launch: &Launch) -> Result<ForkSource, RuntimeError> {
    match store.lookup(Scope::All, id) {
        Ok(target) => of_target(store, target),
        Err(StoreError::Unknown(unknown)) => match of_session(id, launch)? {
            Some(source) => Ok(source),
            None => Err(StoreError::Unknown(unknown).into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// The conversation that an agent names by `id`: it must belong to the agent's own tree.
pub(crate) fn source_for_agent(store: &Store, caller: Caller, id: &IdPrefix) -> Result<ForkSource, RuntimeError> {
    let frame = store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))?;
    match store.lookup(Scope::Below(frame.root), id) {
        Ok(target) => of_target(store, target),
        Err(StoreError::Unknown(_)) => Err(BadSource::Foreign(id.as_str().to_owned()).into()),
        Err(error) => Err(error.into()),
    }
}

/// The conversation of the calling agent, up to the call with which it asks. It is a checkpoint as soon as the agent pauses,
/// and no fork starts before that, except in the [background](kept_for_background).
pub(crate) fn source_of_caller(store: &Store, caller: Caller) -> Result<ForkSource, RuntimeError> {
    let frame = store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))?;
    let baseline = Baseline {
        session: frame.session,
        frame: Some(frame.id),
        checkpoint: Some(caller.attempt),
        cost_usd: 0.0,
        usage: None,
    };
    let native_questions = frame.launch.native_questions;
    // Its first attempt is recorded with its model when it ends.
    let model = agent_lookup::running(store, frame.id)?.and_then(|(_, digest)| digest.model).or(frame.launch.model);
    Ok(ForkSource { baseline, root: Some(frame.root), cwd: frame.cwd, model, native_questions })
}

/// Keeps the conversation of the calling agent up to its open call, because its forks begin while it works on. The copy belongs to
/// no attempt of the agent.
///
/// # Errors
///
/// [`BadSource::NotInACall`], [`BadSource::Unwritten`], or a file cannot be read or written.
pub(crate) fn kept_for_background(
    store: &Store,
    caller: Caller,
    source: ForkSource,
) -> Result<ForkSource, RuntimeError> {
    let frame = store.frame(caller.frame)?.ok_or(RuntimeError::NoCaller(caller.frame))?;
    let (attempt, digest) = agent_lookup::running(store, frame.id)?
        .filter(|(attempt, _)| attempt.id == caller.attempt)
        .ok_or(RuntimeError::NoCaller(caller.frame))?;
    // Claude Code runs such calls one after the other.
    let forks = |command: &String| command.contains("--fork");
    let call = digest.calls.open.iter().find(|call| call.command.as_ref().is_some_and(forks));
    let call = &call.ok_or(BadSource::NotInACall)?.id;
    let config = config_dir(&frame.launch).ok_or(BadSource::Unwritten)?;
    let place = || locate::expected(&config, &frame.cwd, attempt.session);
    let transcript = locate::find(&config, &frame.cwd, attempt.session).unwrap_or_else(place);
    let text = up_to(&transcript, call)?;
    let copy = AttemptId::random();
    checkpoint::keep_conversation(store.dir(), frame.id, copy, &text)
        .map_err(while_trying("keep a copy of the conversation"))?;
    let facts = session_facts::origin(&store.dir().checkpoint(frame.id, copy));
    let Totals { usd: cost_usd, usage } = facts.map_err(while_trying("read the transcript"))?.total;
    let baseline = Baseline { checkpoint: Some(copy), cost_usd, usage, ..source.baseline };
    Ok(ForkSource { baseline, ..source })
}

/// The conversation in a transcript up to the open `call`, as soon as Claude Code has written that.
fn up_to(transcript: &Path, call: &str) -> Result<Vec<u8>, RuntimeError> {
    let said = |open: &str| if open == call { prompt::FORKED_IN_BACKGROUND } else { prompt::ELSEWHERE };
    let (deadline, mut length) = (Instant::now() + WRITES, 0);
    loop {
        let written = match fs::read(transcript) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            written => written.map_err(while_trying("read the transcript"))?,
        };
        if written.len() != length {
            length = written.len();
            let whole = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let entries = Entries::read(&written[..whole]).map_err(while_trying("read the transcript"))?;
            let closed = insert_results::closed_at(&entries, call, said);
            let closed = closed.map_err(|broken| io::Error::new(io::ErrorKind::InvalidData, broken));
            if let Some(text) = closed.map_err(while_trying("copy the conversation"))? {
                return Ok(text);
            }
        }
        if Instant::now() >= deadline {
            return Err(BadSource::Unwritten.into());
        }
        thread::sleep(LOOK);
    }
}

/// A question or another request stands for the agent that made it.
fn of_target(store: &Store, target: Target) -> Result<ForkSource, RuntimeError> {
    let frame = store.chain_of(target)?.frame;
    of_frame(store, store.frame_here(frame)?)
}

impl BadSource {
    /// The agent has no conversation.
    pub(crate) fn empty(frame: &Frame) -> Self {
        if frame.summary().is_some() { Self::StartsAfresh(frame.id) } else { Self::Empty(frame.id) }
    }
}

fn of_frame(store: &Store, frame: Frame) -> Result<ForkSource, RuntimeError> {
    if matches!(frame.state, FrameState::Running { .. }) {
        return Err(BadSource::Running(frame.id).into());
    }
    if frame.task.is_group() {
        return Err(BadSource::Group(frame.id).into());
    }
    let kept = frame.continues().filter(|_| frame.checkpoint.is_some()).ok_or_else(|| BadSource::empty(&frame))?;
    let attempts = store.attempts(frame.id)?;
    let Totals { usd: cost_usd, usage } = totals(&frame, &attempts, kept);
    let baseline =
        Baseline { session: kept.session, frame: Some(frame.id), checkpoint: Some(kept.copy), cost_usd, usage };
    let native_questions = frame.launch.native_questions;
    Ok(ForkSource { baseline, root: Some(frame.root), cwd: frame.cwd, model: frame.launch.model, native_questions })
}

/// What a session had spent when it was forked: an agent that forked itself had not ended its attempt.
pub(crate) fn totals_of_baseline(store: &Store, baseline: &Baseline) -> Result<Totals, RuntimeError> {
    let recorded = Totals { usd: baseline.cost_usd, usage: baseline.usage };
    let (Some(frame), Some(checkpoint)) = (baseline.frame, baseline.checkpoint) else { return Ok(recorded) };
    let attempts = store.attempts(frame)?;
    Ok(attempts.iter().find(|attempt| attempt.id == checkpoint).map_or(recorded, |attempt| attempt.total))
}

/// What the session of a kept conversation had spent: as recorded, or according to its transcript if it was adopted.
pub(crate) fn totals(frame: &Frame, attempts: &[Attempt], kept: KeptConversation) -> Totals {
    let own = attempts.iter().find(|attempt| attempt.id == kept.copy).map(|attempt| attempt.total);
    let before_adoption = || {
        let found = locate::find(&config_dir(&frame.launch)?, &frame.cwd, kept.session)?;
        Some(session_facts::origin(&found).ok()?.total)
    };
    own.or_else(before_adoption).unwrap_or_default()
}

fn of_session(id: &IdPrefix, launch: &Launch) -> Result<Option<ForkSource>, RuntimeError> {
    let (Ok(session), Some(config)) = (id.as_str().parse::<SessionId>(), config_dir(launch)) else { return Ok(None) };
    let Some(found) = locate::find_anywhere(&config, session) else { return Ok(None) };
    let origin = session_facts::origin(&found).map_err(while_trying("read the transcript"))?;
    let cwd = origin.cwd.ok_or(BadSource::NoWorkingDirectory(session))?;
    let Totals { usd: cost_usd, usage } = origin.total;
    let baseline = Baseline { session, frame: None, checkpoint: None, cost_usd, usage };
    Ok(Some(ForkSource { baseline, root: None, cwd, model: origin.model, native_questions: false }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{self, reply};

    #[test]
    fn only_a_conversation_that_is_at_rest_can_be_forked() {
        let (_temp, store) = testing::store();
        let root = store.root();
        let source = || source(&store, &root.to_string().parse().unwrap(), &Launch::default());
        assert!(matches!(source(), Err(RuntimeError::Fork(BadSource::Empty(it))) if it == root));
        let caller = store.start(root);
        assert!(matches!(source(), Err(RuntimeError::Fork(BadSource::Running(it))) if it == root));
        store.end(caller, &reply("done"));
        let found = source().unwrap();
        assert_eq!(
            (found.root, found.baseline.frame, found.baseline.checkpoint),
            (Some(root), Some(root), Some(caller.attempt))
        );
        assert_eq!(found.baseline.cost_usd, 0.5, "what its session had spent");
    }

    #[test]
    fn an_agent_forks_only_conversations_of_its_own_chain() {
        let (_temp, store) = testing::store();
        let done = store.start(store.root());
        store.end(done, &reply("done"));
        let other = store.start(store.root());
        let id: IdPrefix = done.frame.to_string().parse().unwrap();
        assert!(matches!(source_for_agent(&store, other, &id), Err(RuntimeError::Fork(BadSource::Foreign(_)))));
        // A request stands for its agent.
        let asked = store.request(other, None, &[testing::ask("When?")]).unwrap()[0].to_string().parse().unwrap();
        let refused = source_for_agent(&store, other, &asked);
        assert!(matches!(refused, Err(RuntimeError::Fork(BadSource::Running(agent))) if agent == other.frame));
    }
}
