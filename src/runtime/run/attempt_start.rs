//! Starts an attempt: one `claude` process on behalf of a frame.
//!
//! The order makes every crash harmless: first the lease, then the record of the attempt, then the process. If a recorded
//! attempt's lease is free, its process has ended or never existed.

use std::fs::File;
use std::path::PathBuf;
use std::process::{self, Stdio};
use std::time::Instant;

use jiff::Timestamp;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::installation::version::ResultInput;
use crate::claude::invocation::{self, Invocation};
use crate::claude::options::limits_left::{self, Left};
use crate::claude::processes::guard::{self, Permit};
use crate::claude::processes::orphan_processes::{self, LeftBy};
use crate::claude::processes::process::{HeldInput, Running};
use crate::claude::settings::of_project;
use crate::claude::transcript::locate as transcripts;
use crate::core::agent::launch::Launch;
use crate::core::attempt::continuation::Way;
use crate::core::chain::admission::NotAdmitted;
use crate::core::chain::frame::Frame;
use crate::core::chain::progress_lines::step;
use crate::core::chain::runnable::Attempted;
use crate::core::id::{AttemptId, FrameId};
use crate::failpoint::{self, Step};
use crate::runtime::conclude::limits_used;
use crate::runtime::delivery::restored_situation;
use crate::runtime::delivery::ways::{self, AttemptInput, DeliveryMeans};
use crate::runtime::programs::Program;
use crate::runtime::recovery::portable_worktree::PortableWorktree;
use crate::runtime::recovery::{restore, room};
use crate::runtime::run::attempt_start::elsewhere::ElsewhereSettings;
use crate::runtime::run::places::Places;
use crate::runtime::worktrees::{directory, worktree};
use crate::runtime::{RunSettings, RuntimeError, while_trying};
use crate::store::{Lease, NewAttempt, Store, StoreError, TreeOf, Undelivered};

mod elsewhere;
pub(crate) mod protection;
mod settings_files;

/// The result of starting a frame.
#[derive(Debug)]
pub(crate) enum AttemptStart {
    /// It runs.
    Started {
        /// The process.
        running: Box<Running>,
        /// The lease, and what is needed to conclude the attempt.
        live: RunningAttempt,
        /// Offset of its events in the frame's output.
        output_from: u64,
        /// Whether a hook can stop it when its running tool has finished.
        has_stop_hook: bool,
        /// Where its transcript is, or will be.
        transcript: Option<PathBuf>,
    },
    /// It was recorded, but the process could not be started.
    NotStarted(Lease, String),
    /// Another process holds its lease.
    Busy,
    /// Another process has changed it in the meantime, so it cannot run now.
    Changed,
    /// Another process has started others or reached a limit in the meantime, so it may not run now.
    NotAdmitted(NotAdmitted),
}

/// A running attempt.
#[derive(Debug)]
pub(crate) struct RunningAttempt {
    pub(crate) attempt: AttemptId,
    pub(crate) lease: Lease,
    /// Whether it was started without a prompt, to continue at the call where its session stopped.
    pub(crate) is_silent: bool,
    /// How it was started.
    pub(crate) way: Way,
    /// When its process was started, by a clock that stops while the machine sleeps.
    pub(crate) began: Instant,
}

/// Starts an attempt of `frame`, which continues its conversation in a `way`.
pub(crate) fn start(
    store: &Store,
    own: &RunSettings,
    frame: FrameId,
    tried: &Attempted,
    program: &Program,
    way: Way,
) -> Result<AttemptStart, RuntimeError> {
    let Some(lease) = Lease::try_take(store.dir(), frame)? else { return Ok(AttemptStart::Busy) };
    // Only now is it certain that no other process changes the frame.
    let Some(frame) = store.frame(frame)? else { return Ok(AttemptStart::Changed) };
    if !can_run(store, frame.id, tried)? {
        return Ok(AttemptStart::Changed);
    }
    let portable = PortableWorktree::of(store, &frame)?;
    let is_pushed = frame.pushed.is_some() && portable.is_some();
    if let Some(worktree) = frame.launch.worktree.as_ref().filter(|_| !is_pushed)
        && store.attempts(frame.id)?.is_empty()
    {
        worktree::ensure(worktree, &frame.cwd)?;
    }
    let of_worktree = portable.map_or(Ok(Vec::new()), |portable| portable.prepare(store, &frame))?;
    if !frame.cwd.is_dir() {
        return Err(RuntimeError::NoWorkingDirectory { frame: frame.id, cwd: frame.cwd });
    }
    directory::unmoved(&frame.cwd).map_err(|elsewhere| RuntimeError::Moved { frame: frame.id, elsewhere })?;
    if let Some(worktree) = &frame.launch.worktree
        && !directory::is_worktree_of(&worktree.path, &worktree.repository)
    {
        return Err(RuntimeError::ReplacedWorktree { frame: frame.id, worktree: Box::new(worktree.clone()) });
    }
    if let Some((folder, why)) = room::unusable(&frame) {
        return Err(RuntimeError::ClaudeFolder { what: "use".to_owned(), folder, source: why });
    }
    if let Some(folder) = room::missing(&frame) {
        return Err(RuntimeError::NoRoom { frame: frame.id, folder });
    }
    let source = restore::prepare(store, &frame)?;
    let last = store.attempts(frame.id)?.pop();
    let left_by =
        last.map_or(LeftBy::Nobody, |last| LeftBy::new(last.host.is_some(), last.runner, last.began, last.ended));
    let orphans = failpoint::around(Step::Sweep, || orphan_processes::end(store.dir().path(), frame.id, left_by));
    if orphans > 0 {
        let ended = format!("ended {orphans} processes that its last attempt had left behind");
        tracing::info!("{}", step(frame.id, &frame.task.title(), &ended));
    }

    let elsewhere = elsewhere::look(store, &frame)?;
    let settings = settings_files::settings(store, own, &frame, program, elsewhere.as_ref())?;
    let hooks = settings.is_some() && settings_files::has_hooks(&frame, program);
    let errors = store.dir().open_errors(frame.id).map_err(while_trying("open the error log"))?;
    store.dir().forget_stop(frame.id).map_err(while_trying("remove the file that stops the agent"))?;
    store.dir().forget_messages(frame.id).map_err(while_trying("remove the file that names messages"))?;
    let output_from = lease.seal().map_err(while_trying("read the output file"))?;
    let starting = Starting {
        store,
        own,
        frame: &frame,
        tried,
        program,
        way,
        elsewhere,
        settings,
        hooks,
        errors,
        output_from,
        of_worktree,
    };
    let is_forked = way == Way::Input && !restored_situation::returns_to_worktree(&frame, program);
    let result_input = program.result_input.filter(|_| is_forked);
    match starting.record(&DeliveryMeans { hooks: hooks && way != Way::Prompt, result_input, source })? {
        Ok(recorded) => starting.run(recorded, lease),
        Err(refused) => Ok(refused),
    }
}

/// Whether a frame can run according to its current records.
fn can_run(store: &Store, frame: FrameId, tried: &Attempted) -> Result<bool, StoreError> {
    let family = store.tree(TreeOf::Family(frame))?;
    Ok(family.get(frame).is_some_and(|node| family.can_run(node, tried, Timestamp::now())))
}

/// An attempt that is about to start. This process has the frame's lease.
struct Starting<'a> {
    store: &'a Store,
    own: &'a RunSettings,
    frame: &'a Frame,
    tried: &'a Attempted,
    program: &'a Program,
    way: Way,
    elsewhere: Option<ElsewhereSettings>,
    settings: Option<PathBuf>,
    /// Whether agent-cli's hooks run in it.
    hooks: bool,
    errors: File,
    output_from: u64,
    /// What its agent must know about its worktree.
    of_worktree: Vec<String>,
}

/// A recorded attempt without a process.
struct Recorded {
    id: AttemptId,
    /// Its prompt, which is also in the file.
    text: String,
    /// Whether the file contains it in a message, together with the result of a call.
    takes_message: bool,
    prompt: File,
    /// What it continues.
    transcript: Option<PathBuf>,
    launch: Launch,
    /// What permitted this host to record it, if hosts share the database.
    permit: Permit,
}

impl Starting<'_> {
    /// Records the attempt with everything that its agent is given, or says why it does not start.
    fn record(&self, means: &DeliveryMeans) -> Result<Result<Recorded, AttemptStart>, RuntimeError> {
        let Self { store, frame, .. } = *self;
        let id = AttemptId::random();
        loop {
            let undelivered = self.undelivered()?;
            let chosen = restored_situation::chosen(&undelivered);
            let Undelivered { results: deliveries, moot, messages, .. } = undelivered;
            let given: Vec<_> = deliveries.iter().cloned().chain(moot).collect();
            let restored = restored_situation::restored(
                frame,
                self.program,
                chosen.as_ref().map(restored_situation::ChosenMode::as_chosen),
            )
            .with_lost(&self.of_worktree);
            let AttemptInput { prompt: text, message, transcript, placed, resumed_calls, notice } =
                ways::input(store, self.own, frame, &given, &messages, &restored, means)?;
            let prompt = store
                .dir()
                .prompt_file(frame.id, message.as_ref().unwrap_or(&text))
                .map_err(while_trying("write the prompt"))?;
            let attempt = NewAttempt {
                id,
                session: frame.session,
                resumed: frame.continues().map(|kept| kept.session),
                output_from: self.output_from,
                errors_from: self.errors.metadata().map_err(while_trying("read the error log"))?.len(),
                runner: process::id(),
                given: deliveries.into_iter().map(|delivery| (delivery.request, delivery.result)).collect(),
                placed,
                resumed_calls,
                mode: restored.mode,
                notice,
                max_parallel_total: self.own.places.as_ref().map(Places::most),
                messages: messages.iter().map(|message| message.id).collect(),
                summarises: frame.checkpoint.filter(|_| self.is_summary()),
            };
            // The answer of the server may come when this host has lost its lease, and has another one.
            let permit = Permit::read(&store.dir().lease_end());
            let refused = match store.begin(frame.id, &attempt) {
                Ok(()) => {
                    let results = attempt.given.len();
                    tracing::debug!(attempt = %id, session = %frame.session, results, "the attempt begins");
                    let takes_message = message.is_some();
                    return Ok(Ok(Recorded {
                        id,
                        text,
                        takes_message,
                        prompt,
                        transcript,
                        launch: restored.launch,
                        permit,
                    }));
                }
                // The prompt contains an answer that was replaced, or the failure of a child that is retried.
                Err(StoreError::ResultChanged(_)) if can_run(store, frame.id, self.tried)? => continue,
                Err(StoreError::ResultChanged(_)) => AttemptStart::Changed,
                Err(StoreError::NotAdmitted(why)) => AttemptStart::NotAdmitted(why),
                // It was stopped or paused in the meantime.
                Err(StoreError::Illegal(error)) => {
                    tracing::info!("{} does not start: {error}", frame.id.short());
                    AttemptStart::Changed
                }
                Err(error) => return Err(error.into()),
            };
            store.dir().clear_attempt(frame.id).map_err(while_trying("remove what the attempt needed"))?;
            return Ok(Err(refused));
        }
    }

    /// Whether its agent only writes a summary.
    fn is_summary(&self) -> bool {
        self.frame.summary_lacks().is_some()
    }

    /// What its agent is given. A summary needs nothing: results and messages are for the new session.
    fn undelivered(&self) -> Result<Undelivered, StoreError> {
        let undelivered = self.store.undelivered(self.frame)?;
        if self.is_summary() {
            return Ok(Undelivered { chosen_mode: undelivered.chosen_mode, ..Undelivered::default() });
        }
        Ok(undelivered)
    }

    /// Starts the process of a recorded attempt.
    fn run(self, recorded: Recorded, lease: Lease) -> Result<AttemptStart, RuntimeError> {
        let Self { store, own, frame, program, way, hooks, output_from, .. } = self;
        let is_summary = self.is_summary();
        let Recorded { id, text, takes_message, prompt, transcript, launch, permit } = recorded;
        let launch = match limits_used::left(store, &own.prices, frame, &launch.args)? {
            Left::Some(args) if is_summary => {
                let hooks_run = hooks && !ways::are_hooks_disabled(frame);
                Launch { args: limits_left::for_summary(&args, hooks_run), ..launch }
            }
            Left::Some(args) => Launch { args, ..launch },
            Left::Nothing(why) => return Ok(AttemptStart::NotStarted(lease, why)),
        };
        let way = if way == Way::Input && !takes_message { Way::Fork } else { way };
        let is_silent = text.is_empty() || takes_message;
        let in_place = way.is_in_place(!is_silent, restored_situation::returns_to_worktree(frame, program));
        restore::make_room(store, frame, in_place, transcript.as_deref())?;
        let permission_tool = match hooks && frame.launch.native_questions {
            true => settings_files::permission_tool(store, own, frame, id)?,
            false => None,
        };
        let (launch, own_folder) = match &self.elsewhere {
            None => (launch, None),
            Some(elsewhere) => (of_project::based(launch, &elsewhere.base), elsewhere.own.as_ref()),
        };
        let continued = frame.continues().map(|kept| kept.session.to_string());
        let resumed = transcript.map(|file| file.display().to_string()).or(continued);
        let invocation = Invocation {
            program: &program.path,
            frame: frame.id,
            attempt: id,
            session: frame.session,
            resume: resumed.as_deref(),
            in_place,
            takes_message,
            cwd: &frame.cwd,
            launch: &launch,
            state_dir: store.dir().path(),
            own_program: &own.own_program,
            no_attachments: !program.leaves_mentions && invocation::has_mention(&text),
            settings: self.settings.as_deref(),
            permission_tool: permission_tool.as_deref(),
            elsewhere: own_folder.map(|(sources, folder)| (sources.as_str(), folder.as_path())),
            prints_hooks: program.prints_hooks,
        };
        let mut command = invocation.command();
        if store.hosts().is_some() {
            command = guard::guarded(&command, &own.own_program, &store.dir().lease_end(), permit.since);
        }
        let holds_input = takes_message && program.result_input == Some(ResultInput::Pipe);
        let held = if holds_input {
            match HeldInput::from_file(prompt) {
                Ok((reader, held)) => {
                    command.stdin(reader);
                    Some(held)
                }
                Err(error) => {
                    return Ok(AttemptStart::NotStarted(lease, format!("failed to open a pipe for claude: {error}")));
                }
            }
        } else {
            command.stdin(prompt);
            None
        };
        command
            .stdout(Stdio::from(lease.output().map_err(while_trying("share the output file"))?))
            .stderr(Stdio::from(self.errors));
        Ok(match failpoint::around(Step::Start, || Running::start(command)) {
            Ok(running) => AttemptStart::Started {
                running: Box::new(running.with_input(held)),
                live: RunningAttempt { attempt: id, lease, is_silent, way, began: Instant::now() },
                output_from,
                has_stop_hook: hooks && !frame.launch.args.has("--bare"),
                transcript: config_dir(&frame.launch)
                    .map(|config| transcripts::expected(&config, &frame.cwd, frame.session)),
            },
            Err(error) => {
                AttemptStart::NotStarted(lease, format!("{} cannot be started: {error}", program.path.display()))
            }
        })
    }
}
