//! Runs the dashboard, and carries out a person's actions.

use std::env;
use std::io;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, ToSpan};
use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group, kill_process};
use rustix::termios::tcgetpgrp;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::app::chains::{in_background, remove, resume, stop, unattended};
use crate::app::error::AppError;
use crate::app::lists::board::{self, Input};
use crate::claude::invocation::STATE_DIR;
use crate::cli::chain::answering::inbox;
use crate::cli::chain::steering::stop::line;
use crate::cli::context::Context;
use crate::cli::dashboard::draw::draw;
use crate::cli::dashboard::events::{self, Event, Events};
use crate::cli::dashboard::model::{Action, Continues, Model};
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::screen::{self, FullScreen};
use crate::core::agent::overrides::Repair;
use crate::core::chain::limits::NewLimits;
use crate::core::id::FrameId;
use crate::core::steering::stop_order::StopKind;
use crate::runtime::RuntimeError;
use crate::runtime::run::signals::LentTerminal;
use crate::store::{Attending, Store, StoreError};

/// The work that this process does while it shows the dashboard.
#[derive(Clone, Debug)]
pub(super) enum Beside {
    /// No other work.
    Nothing,
    /// A watch, which notifies the dashboard when it ends.
    Watch(Arc<Notify>),
}

pub(super) struct Session<'a> {
    context: &'a Context,
    store: &'a Store,
    beside: Beside,
    screen: FullScreen,
    events: Events,
    model: Model,
    is_outdated: bool,
    next_look: Instant,
    not_before: Instant,
    /// Marks that a person sees the questions.
    _attending: Attending,
}

/// How often to look at working agents.
const ACTIVE: Duration = Duration::from_secs(1);
/// How often to look otherwise, at files that agents wait for and at the time.
const IDLE: Duration = Duration::from_secs(60);
/// The shortest pause between two reads of the records, and the pause as a multiple of the time that a read takes.
const PAUSE: Duration = Duration::from_millis(100);
const SHARE: u32 = 25;

impl<'a> Session<'a> {
    pub(super) fn new(context: &'a Context, store: &'a Store, beside: Beside) -> Result<Self, CliError> {
        let said = Arc::new(Notify::new());
        let over = match &beside {
            Beside::Nothing => Arc::default(),
            Beside::Watch(over) => Arc::clone(over),
        };
        let unusable = |error: io::Error| CliError::failed(format!("the terminal cannot be used: {error}"));
        let events = Events::new(store, Arc::clone(&said), over).map_err(unusable)?;
        let continues = if matches!(beside, Beside::Watch(_)) { Continues::Here } else { Continues::Person };
        let has_colours = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        let model = Model::new(Context::directory(), continues, has_colours);
        let screen = FullScreen::take(move || said.notify_one()).map_err(unusable)?;
        let now = Instant::now();
        let (is_outdated, next_look, not_before) = (true, now, now);
        let _attending = Attending::mark(store.dir())?;
        Ok(Self { context, store, beside, screen, events, model, is_outdated, next_look, not_before, _attending })
    }

    /// Shows the dashboard until the person leaves or the watch has ended.
    pub(super) fn run(mut self) -> Result<ExitStatus, CliError> {
        self.look_at_continuer()?;
        loop {
            self.look()?;
            self.model.said = screen::last_said().or(self.model.said.take());
            self.model.now = Timestamp::now();
            if self.screen.draw(|frame| draw(frame, &self.model)).is_err() {
                return Ok(ExitStatus::Interrupted);
            }
            let look = if self.is_outdated { self.not_before } else { self.next_look };
            match self.events.next(self.store, look, !self.is_outdated)? {
                Event::Keys => {
                    if let Some(exit) = self.keys()? {
                        return Ok(exit);
                    }
                }
                Event::Changed => self.is_outdated = true,
                Event::Look | Event::Draw => {}
                Event::Continued => drop(self.screen.retake()),
                // With a watch, this process ends when its agents have ended.
                Event::Stop if matches!(self.beside, Beside::Watch(_)) => {}
                Event::Stop | Event::Closed => return Ok(ExitStatus::Interrupted),
                Event::Over => return Ok(ExitStatus::Ok),
            }
        }
    }

    /// Reads everything that may have changed, if it is time.
    fn look(&mut self) -> Result<(), CliError> {
        let began = Instant::now();
        let app = self.context.app(self.store);
        if self.is_outdated && began >= self.not_before {
            self.is_outdated = false;
            let today = today(&self.model);
            let input = Input { all_projects: self.model.all_projects, today };
            self.model.show(board::board(&app, input)?);
        } else if began < self.next_look {
            return Ok(());
        } else if self.model.board.is_active() {
            self.model.board.refresh_activities(&app)?;
        } else {
            (self.is_outdated, self.not_before) = (true, began);
            self.look_at_continuer()?;
            return self.look();
        }
        let took = began.elapsed();
        let now = Instant::now();
        self.not_before = now + PAUSE.max(took * SHARE);
        let pause = if self.model.board.is_active() { ACTIVE.max(took * SHARE) } else { self.until_next() };
        self.next_look = now + pause;
        Ok(())
    }

    /// Says what has happened last, instead of what was printed before.
    fn say(&mut self, text: String) {
        drop(screen::last_said());
        self.model.said = Some(text);
    }

    /// How long it takes until something changes that is not recorded.
    fn until_next(&self) -> Duration {
        let now = Timestamp::now();
        let next = self.model.board.next_by_time(now).map(|next| next.duration_since(now));
        let next = next.and_then(|next| Duration::try_from(next).ok());
        next.map_or(IDLE, |next| next.clamp(PAUSE, IDLE))
    }

    fn look_at_continuer(&mut self) -> Result<(), CliError> {
        if self.model.continues != Continues::Here {
            let continuer = unattended::continuer(self.store)?;
            self.model.continues = continuer.map_or(Continues::Person, Continues::Elsewhere);
        }
        Ok(())
    }

    /// Handles the keys that have arrived. Returns the exit status if the person leaves.
    fn keys(&mut self) -> Result<Option<ExitStatus>, CliError> {
        loop {
            let key = match events::key() {
                Ok(Some(key)) => key,
                Ok(None) => return Ok(None),
                Err(_) => return Ok(Some(ExitStatus::Interrupted)),
            };
            let Some(action) = self.model.press(key) else { continue };
            match (action, &self.beside) {
                (Action::Quit, Beside::Nothing) => return Ok(Some(ExitStatus::Ok)),
                (Action::Interrupt, Beside::Nothing) => return Ok(Some(ExitStatus::Interrupted)),
                // The watch counts these signals, and says what they do.
                (Action::Quit | Action::Interrupt, Beside::Watch(_)) => {
                    let _ = kill_process(getpid(), Signal::INT);
                }
                _ => {
                    if let Err(error) = self.act(action) {
                        self.say(format!("error: {}", error.in_words().replace('\n', "; ")));
                    }
                }
            }
        }
    }

    fn act(&mut self, action: Action) -> Result<(), CliError> {
        let (context, store) = (self.context, self.store);
        match action {
            Action::Answer(chain) => {
                let chains = self.lend(|| inbox::answer_below(context, store, chain))??;
                chains.into_iter().try_for_each(|chain| self.resume(chain))?;
            }
            Action::Logs(chain) => {
                self.command(&["logs", &chain.to_string(), "--chain", "--follow", "--tail", "200"])?;
            }
            Action::Open(chain) => self.command(&["open", &chain.to_string()])?,
            Action::Stop(chain, kind) => self.stop(chain, kind)?,
            Action::Resume(chain) => self.resume(chain)?,
            Action::Remove(chain) => self.remove(chain)?,
            Action::Suspend => self.lend(suspend)?,
            Action::Redraw => drop(self.screen.retake()),
            Action::Reload => {}
            Action::Quit | Action::Interrupt => return Ok(()),
        }
        self.is_outdated = true;
        self.not_before = Instant::now();
        self.look_at_continuer()
    }

    /// Lends the terminal to something else, and takes it back.
    fn lend<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, CliError> {
        let lent = LentTerminal::new();
        let done = self.screen.lend(work);
        self.events.forget_interrupts();
        drop(lent);
        // The remaining input was meant for the other program.
        while matches!(events::key(), Ok(Some(_))) {}
        done.map_err(|error| CliError::failed(format!("the terminal cannot be used: {error}")))
    }

    /// Runs a command of this program on the terminal. Waits until it ends and the person has seen its output.
    fn command(&mut self, arguments: &[&str]) -> Result<(), CliError> {
        let own = env::current_exe().map_err(|error| CliError::failed(error.to_string()))?;
        let mut command = Command::new(own);
        command.args(arguments).env(STATE_DIR, self.store.dir().path());
        let is_shown = arguments[0] == "logs";
        self.lend(|| {
            let ended = command.status().map_err(|error| CliError::failed(error.to_string()))?;
            // After Ctrl-C, the person wants to return immediately.
            match ended.code() {
                Some(0) if !is_shown => Ok(()),
                Some(_) => inbox::wait_for_enter(),
                None => Ok(()),
            }
        })?
    }

    fn stop(&mut self, chain: FrameId, kind: StopKind) -> Result<(), CliError> {
        let input = stop::Input { id: chain.to_string(), kind, now: false, reason: None, waits: None };
        let outcome = stop::stop(&self.context.app(self.store), input)?;
        self.say(line(&outcome));
        Ok(())
    }

    fn remove(&mut self, chain: FrameId) -> Result<(), CliError> {
        let removed = remove::remove(&self.context.app(self.store), remove::Input { root: chain, ignored: false });
        self.say(match removed {
            Err(AppError::Runtime(RuntimeError::Store(StoreError::UnknownFrame(_)))) => {
                format!("{} was removed already", chain.short())
            }
            removed => removed.map(|_| format!("removed {}", chain.short()))?,
        });
        Ok(())
    }

    fn resume(&mut self, chain: FrameId) -> Result<(), CliError> {
        let input = resume::Input {
            id: chain.to_string(),
            limits: NewLimits::default(),
            repair: Repair::default(),
            prompt: None,
            afresh: false,
            now: false,
            stale_check: true,
        };
        in_background::resume(&self.context.app(self.store), input, self.context)?;
        self.say(format!("resuming {} in a separate process", chain.short()));
        Ok(())
    }
}

/// When the current day began in the person's time zone.
fn today(model: &Model) -> Timestamp {
    let now = Timestamp::now();
    let began = now.to_zoned(model.zone.clone()).start_of_day().map(|day| day.timestamp());
    began.unwrap_or_else(|_| now.checked_sub(24.hours()).unwrap_or(now))
}

/// Suspends this process, as the shell does with a job, until it is continued.
fn suspend() {
    // Otherwise the process group has members that do not belong to this terminal.
    let is_job = tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp());
    let _ = if is_job { kill_current_process_group(Signal::TSTP) } else { kill_process(getpid(), Signal::TSTP) };
}
