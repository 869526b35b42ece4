//! Estimates what the next API request of an agent sends, and when its conversation was last sent.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::installation::version::Version;
use crate::claude::stream::output_reader::{self, Login};
use crate::claude::transcript::last_request::{Sent, last_request};
use crate::claude::transcript::locate;
use crate::core::agent::claude_args::{ClaudeArgs, LIMITS};
use crate::core::agent::launch::Launch;
use crate::core::agent::usage::prices::Lifetime;
use crate::core::agent::usage::prices::estimate::{NextRequest, is_same_model};
use crate::core::agent::usage::{Spent, Usage};
use crate::core::chain::frame::{Frame, KeptConversation};
use crate::core::events::log_entry::LogEntry;
use crate::core::id::FrameId;
use crate::runtime::requests::fork::ForkSource;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Attempt, Attempts, Counting, Store};

/// The next request of an agent that is started with `launch`, by this version of Claude Code.
pub(crate) fn of_frame(
    store: &Store,
    frame: &Frame,
    launch: &Launch,
    version: Option<Version>,
) -> Result<NextRequest, RuntimeError> {
    let attempts = store.attempts(frame.id)?;
    let killed = attempts.last().filter(|attempt| attempt.ended.is_none());
    let transcript = |attempt: &Attempt| locate::find(&config_dir(launch)?, &frame.cwd, attempt.session);
    let next = match (killed.and_then(transcript), frame.continues()) {
        // Its recovery continues what it has done.
        (Some(transcript), _) => of_transcript(store, &transcript, frame.id, launch)?,
        (None, Some(kept)) => of_conversation(store, kept, &frame.cwd, launch)?,
        (None, None) => of_new_conversation(store, &frame.cwd, launch)?,
    };
    let next = NextRequest {
        version: version.map(|version| version.to_string()),
        has_other_options: has_other_options(store, frame, &attempts, launch)?,
        ..next
    };
    let own = attempts.iter().filter(|attempt| is_of(attempt, &next)).map(|attempt| attempt.spending);
    let own = own.filter(|spending| !spending.estimated && spending.usd > 0.0).fold(Spent::default(), |sum, it| {
        let (usage, cost_usd, requests) = (it.usage, it.usd, it.requests);
        sum.plus(Spent { usage, cost_usd, requests, ..Spent::default() })
    });
    with_price(store, next, own)
}

/// The first request of a new agent that is started with `launch`, by this version of Claude Code. `source`: the
/// conversation that it begins with.
pub(crate) fn of_new(
    store: &Store,
    launch: &Launch,
    cwd: &Path,
    source: Option<&ForkSource>,
    version: Option<Version>,
) -> Result<NextRequest, RuntimeError> {
    let next = match source.map(|source| source.baseline) {
        Some(baseline) => of_conversation(store, baseline.conversation(FrameId(baseline.session.0)), cwd, launch)?,
        None => of_new_conversation(store, cwd, launch)?,
    };
    let next = NextRequest { version: version.map(|version| version.to_string()), ..next };
    with_price(store, next, Spent::default())
}

/// A request that continues a conversation.
fn of_conversation(
    store: &Store,
    kept: KeptConversation,
    cwd: &Path,
    launch: &Launch,
) -> Result<NextRequest, RuntimeError> {
    let copy = Some(store.dir().checkpoint(kept.frame, kept.copy)).filter(|copy| copy.is_file());
    let original = || locate::find(&config_dir(launch)?, cwd, kept.session);
    match copy.or_else(original) {
        Some(transcript) => of_transcript(store, &transcript, kept.frame, launch),
        None => Ok(NextRequest::default()),
    }
}

/// A request that continues the conversation in a transcript of an agent.
fn of_transcript(
    store: &Store,
    transcript: &Path,
    agent: FrameId,
    launch: &Launch,
) -> Result<NextRequest, RuntimeError> {
    let read = || last_request(BufReader::new(File::open(transcript)?));
    let Some(Sent { request, tokens, lifetime }) = read().map_err(while_trying("read the transcript"))? else {
        return Ok(NextRequest { model: launch.model.clone(), ..NextRequest::default() });
    };
    let lifetime = match lifetime {
        Some(lifetime) => Some(lifetime),
        None => of_login(store, &store.attempts(agent)?)?,
    };
    let (tokens, last) = (Some(tokens), Some(request));
    Ok(NextRequest { tokens, model: launch.model.clone(), last, lifetime, ..NextRequest::default() })
}

/// A request that begins a conversation sends about as much as the last one that began a conversation in the same way.
fn of_new_conversation(store: &Store, cwd: &Path, launch: &Launch) -> Result<NextRequest, RuntimeError> {
    let model = launch.model.clone();
    for attempt in store.attempts(Attempts::NewestNew)? {
        let named = launch.model.as_deref().unwrap_or("default");
        let is_same = attempt.model.as_ref().is_some_and(|model| is_same_model(model, named));
        if !is_same || store.frame(attempt.frame)?.is_none_or(|frame| frame.cwd != cwd) {
            continue;
        }
        let Some((model, usage)) = printed(store, &attempt, output_reader::first_answer)? else { continue };
        let Usage { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, .. } = usage;
        let lifetime = of_login(store, &[attempt])?;
        let tokens = Some(input_tokens + cache_creation_input_tokens + cache_read_input_tokens);
        return Ok(NextRequest { tokens, model: Some(model), lifetime, ..NextRequest::default() });
    }
    Ok(NextRequest { model, ..NextRequest::default() })
}

/// How long the cache keeps the requests of agents with the login of the last of these attempts.
fn of_login(store: &Store, attempts: &[Attempt]) -> Result<Option<Lifetime>, RuntimeError> {
    let Some(last) = attempts.last() else { return Ok(None) };
    let login = printed(store, last, output_reader::login)?;
    Ok(login.map(|login| match login {
        Login::Subscription => Lifetime::Hour,
        Login::Key => Lifetime::FiveMinutes,
    }))
}

fn printed<T>(
    store: &Store,
    attempt: &Attempt,
    find: impl FnOnce(BufReader<File>) -> io::Result<Option<T>>,
) -> Result<Option<T>, RuntimeError> {
    let read = || find(BufReader::new(store.dir().open_printed(attempt.frame, attempt.output_from)?));
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map_err(while_trying(READ_PRINTED)),
    }
}

/// Whether arguments that come before the conversation have changed since the last attempt.
fn has_other_options(
    store: &Store,
    frame: &Frame,
    attempts: &[Attempt],
    launch: &Launch,
) -> Result<bool, RuntimeError> {
    let Some(last) = attempts.last() else { return Ok(false) };
    let changes = store.events(frame.id, 0)?;
    let first = changes.iter().find_map(|change| match &change.entry {
        LogEntry::Launch { from, .. } if change.at >= last.began => Some(&from.args),
        _ => None,
    });
    let before = first.unwrap_or(&frame.launch.args);
    let counted = |args: &ClaudeArgs| LIMITS.iter().fold(args.clone(), |args, limit| args.without(limit));
    Ok(counted(before) != counted(&launch.args))
}

fn is_of(attempt: &Attempt, next: &NextRequest) -> bool {
    let named = next.full_model().unwrap_or("default");
    attempt.model.as_ref().is_some_and(|model| is_same_model(model, named))
}

/// Adds the costs of earlier requests to the same model: the agent's own, or else any other agent's.
fn with_price(store: &Store, next: NextRequest, own: Spent) -> Result<NextRequest, RuntimeError> {
    if own.cost_usd > 0.0 {
        return Ok(NextRequest { before: Some(own), ..next });
    }
    let before = match next.full_model() {
        Some(model) => store.counted(Counting::LastPriced(model))?.pop().map(|counted| counted.spent),
        None => None,
    };
    Ok(NextRequest { before, ..next })
}
