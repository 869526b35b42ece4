//! Ends a `claude` that lives on though the turn of its agent is over, because something runs in its background.
//!
//! The rules are those of [`crate::claude::stream::background`]. An agent that has nothing in its background costs a look at the length
//! of a file now and then, for its `claude` ends by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::installation::version::Version;
use crate::claude::processes::orphans;
use crate::claude::processes::process::{Exit, Running};
use crate::claude::stream::digest::Digest;
use crate::claude::stream::reader::Follower;
use crate::claude::transcript::{locate, turn};
use crate::core::attempt::rest::Rest;
use crate::core::chain::frame::Frame;
use crate::core::id::{AttemptId, FrameId};
use crate::failpoint::{self, Step};
use crate::runtime::run::running_agent::RunningAgent;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::{Attempt, Lease, StateDir, Store};

/// How often it is looked whether `claude` has printed something.
const LOOK: Duration = Duration::from_millis(150);
/// The same as long as something runs beside its agent: what ends there would have the agent go on past a suspended call.
const LOOK_CLOSELY: Duration = Duration::from_millis(30);

/// How long a `claude` may take to end that was asked to. What runs in its background may not listen.
const PATIENCE: Duration = Duration::from_millis(700);

/// A reply that is held up for less is not worth a word.
const WORTH_TELLING: Duration = Duration::from_secs(2);

/// How long the system may take to close the files of a process that was killed.
const CLOSES: Duration = Duration::from_secs(5);

/// The turn of an agent that runs.
#[derive(Debug)]
pub(crate) struct RunningTurn {
    frame: FrameId,
    attempt: AttemptId,
    dir: StateDir,
    output: Follower,
    file: PathBuf,
    transcript: Option<turn::Reader>,
    grace: Duration,
    ends_when_asked: bool,
}

impl RunningTurn {
    pub(crate) fn of(agent: &RunningAgent) -> Self {
        let file = agent.dir.output(agent.frame);
        Self {
            frame: agent.frame,
            attempt: agent.attempt,
            dir: agent.dir.clone(),
            output: Follower::new(file.clone(), agent.output_from),
            file,
            transcript: agent.transcript.clone().map(turn::Reader::new),
            grace: agent.background_grace,
            ends_when_asked: false,
        }
    }

    /// Returns when the turn is over, and `claude` has not ended in the time that it has for that.
    pub(crate) async fn is_over(&mut self, tell: fn(&str)) {
        let (mut length, mut lives_on, mut waits, mut said) = (None, false, false, false);
        let mut rests = (Rest::Works, Instant::now());
        loop {
            tokio::time::sleep(if lives_on { LOOK_CLOSELY } else { LOOK }).await;
            let printed = fs::metadata(&self.file).ok().map(|file| file.len());
            if !lives_on && printed == length {
                continue;
            }
            length = printed;
            let Ok(digest) = self.output.read() else { continue };
            lives_on = digest.may_live_on();
            if !lives_on {
                continue;
            }
            let written = self.transcript.as_mut().and_then(|reader| reader.read().ok()).cloned().unwrap_or_default();
            let seen = digest.rest(&written);
            if seen != rests.0 {
                rests = (seen, Instant::now());
                waits = seen == Rest::Replied && has_requests(&self.dir, self.attempt);
            }
            let rest = if waits { seen.with_requests() } else { seen };
            let Some(patience) = digest.patience(rest, self.grace) else { continue };
            let lasted = rests.1.elapsed();
            if rest == Rest::Replied && !said && lasted >= WORTH_TELLING {
                tell(&held_up(self.frame, digest, patience));
                said = true;
            }
            if lasted >= patience {
                let version = digest.version.as_deref().and_then(|version| version.parse::<Version>().ok());
                self.ends_when_asked = version.is_some_and(|version| version >= Version::ENDS_WHEN_ASKED);
                tell_end(self.frame, digest, rest, tell);
                return;
            }
        }
    }
}

/// Ends a `claude` whose turn is over.
pub(crate) async fn end(running: &mut Running, turn: &RunningTurn) -> Exit {
    if turn.ends_when_asked {
        running.send(Signal::TERM);
        if let Ok(exit) = tokio::time::timeout(PATIENCE, running.ended()).await {
            return if exit.was_killed() { Exit::Ended } else { exit };
        }
    }
    // An older one tells its agent of what it ends in the background, and has it go on past the call.
    running.send(Signal::KILL);
    running.ended().await;
    Exit::Ended
}

fn held_up(frame: FrameId, digest: &Digest, patience: Duration) -> String {
    let (frame, what) = (frame.short(), named(digest));
    let long = match patience.as_secs() {
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    };
    format!("{frame} has replied; its background work{what} has {long} to finish, or Ctrl-C ends it now")
}

fn tell_end(frame: FrameId, digest: &Digest, rest: Rest, tell: fn(&str)) {
    let said = format!("{}: ended its background work{}", frame.short(), named(digest));
    // An agent that waits is told itself when it goes on.
    if rest == Rest::Replied { tell(&said) } else { tracing::info!("{said}") }
}

fn named(digest: &Digest) -> String {
    let what = digest.background();
    if what.is_empty() { what } else { format!(" ({what})") }
}

/// Whether the `claude` of an attempt whose lease is held should have been ended by its runner, which then is dead or stopped.
pub(crate) fn is_left(store: &Store, frame: &Frame, attempt: &Attempt) -> Result<bool, RuntimeError> {
    let output = store.dir().printed(frame.id);
    let config = config_dir(&frame.launch);
    let transcript = config.and_then(|config| locate::find(&config, &frame.cwd, attempt.session));
    let quiet = [Some(&output), transcript.as_ref()].into_iter().flatten().filter_map(|file| quiet_for(file)).min();
    let grace = frame.launch.background_grace();
    // Most agents that run have said something just now, and need no further look.
    let Some(quiet) = quiet.filter(|quiet| Rest::Paused.is_abandoned(*quiet, grace)) else { return Ok(false) };
    let mut follower = Follower::new(output, attempt.output_from);
    let digest = follower.read().map_err(while_trying("read what claude printed"))?;
    let written = transcript.map(|transcript| turn::read(&transcript)).transpose();
    let written = written.map_err(while_trying("read the transcript"))?.unwrap_or_default();
    let rest = match digest.rest(&written) {
        rest if store.has_undelivered_requests(attempt.id)? => rest.with_requests(),
        rest => rest,
    };
    Ok(digest.may_live_on() && rest.is_abandoned(quiet, grace))
}

/// Whether an agent has made requests in an attempt that it waits for now. That it cannot be found out says nothing.
fn has_requests(dir: &StateDir, attempt: AttemptId) -> bool {
    Store::open(dir.path()).is_ok_and(|store| store.has_undelivered_requests(attempt).unwrap_or_default())
}

/// How long nobody has written to a file.
fn quiet_for(file: &Path) -> Option<Duration> {
    SystemTime::now().duration_since(fs::metadata(file).ok()?.modified().ok()?).ok()
}

/// Ends the `claude` of a frame that its runner has left alive, and takes its lease; `None`: it is not for this one to do, or
/// somebody else has the lease.
pub(crate) fn taken_from_left(store: &Store, frame: FrameId) -> Result<Option<Lease>, RuntimeError> {
    let (Some(known), Some(attempt)) = (store.frame(frame)?, store.running_attempt(frame)?) else { return Ok(None) };
    if !is_left(store, &known, &attempt)? {
        return Ok(None);
    }
    let ended = failpoint::around(Step::Sweep, || orphans::end(store.dir().path(), frame));
    tracing::info!("{}: ended {ended} processes that lived on without a runner", frame.short());
    let deadline = Instant::now() + CLOSES;
    loop {
        match Lease::try_take(store.dir(), frame)? {
            Some(lease) => return Ok(Some(lease)),
            None if Instant::now() >= deadline => return Ok(None),
            None => thread::sleep(Duration::from_millis(10)),
        }
    }
}
