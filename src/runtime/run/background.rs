//! Ends a `claude` that keeps running after its agent's turn because something runs in its background.
//!
//! The rules are in [`crate::claude::stream::lifetime`]. For an agent without background work, this only checks the length
//! of a file from time to time, because its `claude` exits on its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::installation::version::Version;
use crate::claude::processes::orphan_processes::{self, LeftBy};
use crate::claude::processes::process::{HeldInput, ProcessExit, Running};
use crate::claude::stream::digest::Digest;
use crate::claude::stream::output_reader::OutputFollower;
use crate::claude::transcript::{locate, turn};
use crate::core::attempt::rest::TurnState;
use crate::core::chain::frame::Frame;
use crate::core::id::{AttemptId, FrameId};
use crate::failpoint::{self, Step};
use crate::runtime::run::running_agent::RunningAgent;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Attempt, Attempts, Lease, Requests, StateDir, Store, StoreError};

/// How often agent-cli checks whether `claude` has printed something.
const LOOK: Duration = Duration::from_millis(150);
/// The same interval while something runs in the background: when that ends, the agent would continue past a suspended
/// call.
const LOOK_CLOSELY: Duration = Duration::from_millis(30);

/// How long a `claude` may take to end after it was asked to. Its background work may ignore the request.
const PATIENCE: Duration = Duration::from_millis(700);

/// A shorter delay of a reply is not worth a message.
const WORTH_TELLING: Duration = Duration::from_secs(2);

/// How long the system may take to close the files of a killed process.
const CLOSES: Duration = Duration::from_secs(5);

/// The turn of a running agent.
#[derive(Debug)]
pub(crate) struct RunningTurn {
    frame: FrameId,
    attempt: AttemptId,
    dir: StateDir,
    output: OutputFollower,
    file: PathBuf,
    transcript: Option<turn::TurnReader>,
    grace: Duration,
    ends_when_asked: bool,
    /// The standard input of `claude`, until `claude` has read it.
    input: Option<HeldInput>,
}

impl RunningTurn {
    pub(crate) fn new(agent: &mut RunningAgent) -> Self {
        let file = agent.dir.printed(agent.frame);
        Self {
            frame: agent.frame,
            attempt: agent.attempt,
            dir: agent.dir.clone(),
            output: OutputFollower::new(file.clone(), agent.output_from),
            file,
            transcript: agent.transcript.clone().map(turn::TurnReader::new),
            grace: agent.background_grace,
            ends_when_asked: false,
            input: agent.running.take_input(),
        }
    }

    /// Closes the standard input of `claude`, which may not have read it.
    pub(crate) fn end_input(&mut self) {
        self.input = None;
    }

    /// Returns when the turn has ended but `claude` has not exited within the time that it has for that.
    pub(crate) async fn is_over(&mut self, tell: fn(&str)) {
        let (mut length, mut lives_on, mut waits, mut said) = (None, false, false, false);
        let mut rests = (TurnState::Works, Instant::now());
        loop {
            tokio::time::sleep(if lives_on { LOOK_CLOSELY } else { LOOK }).await;
            let printed = fs::metadata(&self.file).ok().map(|file| file.len());
            if !lives_on && printed == length {
                continue;
            }
            length = printed;
            let Ok(digest) = self.output.read() else { continue };
            if digest.has_read_input() {
                self.input = None;
            }
            lives_on = digest.may_live_on();
            if !lives_on {
                continue;
            }
            let written = self.transcript.as_mut().and_then(|reader| reader.read().ok()).cloned().unwrap_or_default();
            let seen = digest.rest(&written);
            if seen != rests.0 {
                rests = (seen, Instant::now());
                // An error counts as no.
                let waits_for = || has_requests(&Store::open(self.dir.path())?, self.attempt);
                waits = seen == TurnState::Replied && waits_for().unwrap_or_default();
            }
            let rest = if waits { seen.with_requests() } else { seen };
            let Some(patience) = digest.patience(rest, self.grace) else { continue };
            let lasted = rests.1.elapsed();
            if rest == TurnState::Replied && !said && lasted >= WORTH_TELLING {
                tell(&held_up(self.frame, digest, patience));
                said = true;
            }
            if lasted >= patience {
                self.ends_when_asked = ends_when_asked(digest.version.as_deref());
                tell_end(self.frame, digest, rest, tell);
                return;
            }
        }
    }
}

/// Ends a `claude` whose turn has ended.
pub(crate) async fn end(running: &mut Running, turn: &RunningTurn) -> ProcessExit {
    if turn.ends_when_asked {
        running.send(Signal::TERM);
        if let Ok(exit) = tokio::time::timeout(PATIENCE, running.ended()).await {
            return if exit.was_killed() { ProcessExit::Ended } else { exit };
        }
    }
    // An older version tells its agent which background work it ends, and lets the agent continue past the call.
    running.send(Signal::KILL);
    running.ended().await;
    ProcessExit::Ended
}

/// Whether this version ends its background work itself when it is asked to end. An unknown version is assumed not to.
fn ends_when_asked(version: Option<&str>) -> bool {
    let version = version.and_then(|version| version.parse::<Version>().ok());
    version.is_some_and(|version| version >= Version::ENDS_WHEN_ASKED)
}

fn held_up(frame: FrameId, digest: &Digest, patience: Duration) -> String {
    let (frame, what) = (frame.short(), named(digest));
    let long = match patience.as_secs() {
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    };
    format!("{frame} has replied; its background work{what} has {long} to finish, or Ctrl-C ends it now")
}

fn tell_end(frame: FrameId, digest: &Digest, rest: TurnState, tell: fn(&str)) {
    let frame = frame.short();
    if digest.tasks.is_empty() {
        // It is only slow to exit.
        tracing::debug!("{frame}: ended its claude, which had not exited");
        return;
    }
    let said = format!("{frame}: ended its background work{}", named(digest));
    // A waiting agent learns about it when it continues.
    if rest == TurnState::Replied { tell(&said) } else { tracing::info!("{said}") }
}

fn named(digest: &Digest) -> String {
    let what = digest.background();
    if what.is_empty() { what } else { format!(" ({what})") }
}

/// Whether the `claude` of an attempt whose lease is held should have been ended by its runner, which is therefore dead or
/// stopped.
pub(crate) fn is_abandoned(store: &Store, frame: &Frame, attempt: &Attempt) -> Result<bool, RuntimeError> {
    let output = store.dir().printed(frame.id);
    let config = config_dir(&frame.launch);
    let transcript = config.and_then(|config| locate::find(&config, &frame.cwd, attempt.session));
    let quiet = [Some(&output), transcript.as_ref()].into_iter().flatten().filter_map(|file| quiet_for(file)).min();
    let grace = frame.launch.background_grace();
    // Most running agents have printed something recently, and need no closer look.
    let Some(quiet) = quiet.filter(|quiet| TurnState::Paused.is_abandoned(*quiet, grace)) else { return Ok(false) };
    let mut follower = OutputFollower::new(output, attempt.output_from);
    let digest = follower.read().map_err(while_trying(READ_PRINTED))?;
    let written = transcript.map(|transcript| turn::read(&transcript)).transpose();
    let written = written.map_err(while_trying("read the transcript"))?.unwrap_or_default();
    let rest = match digest.rest(&written) {
        rest if has_requests(store, attempt.id)? => rest.with_requests(),
        rest => rest,
    };
    Ok(digest.may_live_on() && rest.is_abandoned(quiet, grace))
}

/// Whether an agent made requests in this attempt that it now waits for.
fn has_requests(store: &Store, attempt: AttemptId) -> Result<bool, StoreError> {
    Ok(store.requests(Requests::Undelivered(attempt))?.iter().any(|(request, _)| !request.kind.is_background()))
}

/// How long ago a file was last written to.
fn quiet_for(file: &Path) -> Option<Duration> {
    SystemTime::now().duration_since(fs::metadata(file).ok()?.modified().ok()?).ok()
}

/// Ends the `claude` of a frame that its runner left alive, and takes its lease. `None`: this process may not do that, or
/// another one has the lease.
pub(crate) fn taken_from_abandoned(store: &Store, frame: FrameId) -> Result<Option<Lease>, RuntimeError> {
    let (Some(known), Some(attempt)) = (store.frame(frame)?, store.attempts(Attempts::RunningOf(frame))?.pop()) else {
        return Ok(None);
    };
    if !is_abandoned(store, &known, &attempt)? {
        return Ok(None);
    }
    let ended = failpoint::around(Step::Sweep, || {
        orphan_processes::end(store.dir().path(), frame, LeftBy::Another { ended: None })
    });
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

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::store::testing;

    const REPLY: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Jan 1st"}"#;

    /// Whether an agent that printed this, so long ago, was left by its runner.
    fn left(printed: &str, ago: Duration) -> bool {
        let (_temp, store) = testing::store();
        let caller = store.start(store.root());
        store.dir().frame_dir(caller.frame).unwrap();
        fs::write(store.dir().output(caller.frame), format!("before\n{printed}\n")).unwrap();
        let file = File::options().append(true).open(store.dir().output(caller.frame)).unwrap();
        file.set_modified(SystemTime::now() - ago).unwrap();
        let (frame, mut attempts) =
            (store.frame(caller.frame).unwrap().unwrap(), store.attempts(caller.frame).unwrap());
        is_abandoned(&store, &frame, &attempts.remove(0)).unwrap()
    }

    #[test]
    fn only_a_version_that_is_known_to_end_when_it_is_asked_is_asked() {
        let since = Version::ENDS_WHEN_ASKED.to_string();
        for (version, expected) in [
            (Some(since.as_str()), true),
            (Some("99.0.0"), true),
            (Some("1.0.0"), false),
            (Some("odd"), false),
            (None, false),
        ] {
            assert_eq!(ends_when_asked(version), expected, "{version:?}");
        }
    }

    #[test]
    fn a_claude_that_replied_long_ago_and_still_lives_was_left_by_its_runner() {
        let (long, short) = (Duration::from_secs(100_000), Duration::from_secs(1));
        assert!(left(REPLY, long));
        assert!(!left(REPLY, short));
        assert!(!left(r#"{"type":"system","subtype":"init"}"#, long), "it works");
    }

    #[test]
    fn a_person_is_told_what_delays_a_reply_and_how_long() {
        let frame = FrameId::random();
        let said = |seconds| held_up(frame, &Digest::default(), Duration::from_secs(seconds));
        let short = frame.short();
        let line = |long: &str| {
            format!("{short} has replied; its background work has {long} to finish, or Ctrl-C ends it now")
        };
        assert_eq!([said(600), said(90)], [line("10 min"), line("90 s")]);
    }

    #[test]
    fn a_file_that_is_missing_is_not_quiet() {
        assert_eq!(quiet_for(Path::new("/nowhere")), None);
    }
}
