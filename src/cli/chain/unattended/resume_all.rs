//! `agent-cli resume --all`: continues every chain that can continue.

use std::cell::Cell;
use std::path::PathBuf;

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::chains::unattended::{self, EndedChain, UnattendedEvent};
use crate::app::config::setting;
use crate::app::error::AppError;
use crate::cli::chain::drive;
use crate::cli::chain::unattended::{is_news, tell_of_interrupted, tell_of_refused};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::report::live::display::LiveDisplay;
use crate::cli::report::one_line;
use crate::cli::report::status_report::{OutputOptions, StatusReport};
use crate::core::id::FrameId;
use crate::runtime::RunSettings;
use crate::runtime::run::unattended::continuing::{ToContinue, Until};
use crate::store::Store;

/// The options for continuing chains.
#[derive(Clone, Debug)]
pub(crate) struct ResumeAll {
    pub(crate) claude: Option<PathBuf>,
    pub(crate) stale_check: bool,
    pub(crate) max_parallel_total: Option<u32>,
    pub(crate) output_options: OutputOptions,
}

impl ResumeAll {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        // Most polls find an idle database and nothing to do.
        let is_idle = |store: &Store| {
            if store.hosts().is_some() {
                // There may be a chain to take from a lost host.
                return Ok(false);
            }
            let ToContinue { roots, refused } = unattended::to_continue(&context.app_to_poll(store))?;
            let is_idle = roots.is_empty() && !refused.iter().any(is_news);
            if is_idle {
                tell_of_interrupted(store)?;
            }
            Ok::<bool, AppError>(is_idle)
        };
        if context.read_snapshot(is_idle) == Some(true) {
            return Ok(ExitStatus::Ok);
        }
        let store = context.store()?;
        let app = context.app_to_poll(&store);
        app.asker.may(PersonsTask::ResumeAll)?;
        let worst = self.follow_all(context, &app, None)?;
        tell_of_interrupted(&store)?;
        Ok(worst)
    }

    /// Continues the given chains, several at once.
    pub(crate) fn continue_these(
        &self,
        context: &Context,
        app: &App<'_>,
        roots: &[FrameId],
    ) -> Result<ExitStatus, CliError> {
        self.follow_all(context, app, Some(roots))
    }

    /// Shows the progress while `roots`, or else all chains, continue. Returns the worst exit status of a chain.
    fn follow_all(&self, context: &Context, app: &App<'_>, roots: Option<&[FrameId]>) -> Result<ExitStatus, CliError> {
        let settings = self.settings(context)?;
        let worst = Cell::new(ExitStatus::Ok);
        let mut live = LiveDisplay::new(app.store.dir().path());
        let happens = |event| {
            if let Some(exit) = self.follow(app.store, live.as_mut(), event) {
                worst.set(worst.get().or_worse(exit));
            }
        };
        let settings = &settings;
        let stopped = drive::until_stopped(context, |stop| async move {
            match roots {
                Some(roots) => unattended::continue_these(app, settings, stop, roots, happens).await,
                None => unattended::continue_all(app, settings, stop, Until::Idle, happens).await,
            }
        });
        live.map_or(Ok(()), |live| live.finish(app.store))?;
        if stopped? { Err(interrupted()) } else { Ok(worst.get()) }
    }

    pub(crate) fn settings(&self, context: &Context) -> Result<RunSettings, CliError> {
        let settings = RunSettings { stale_check: self.stale_check, ..context.settings(self.claude.clone())? };
        let configured = context.usable_configuration()?.settings.count(&setting::MAX_PARALLEL_TOTAL);
        Ok(unattended::settings(settings, self.max_parallel_total.or(configured)))
    }

    /// Shows a chain while it runs, and then prints its status.
    pub(crate) fn follow(
        &self,
        store: &Store,
        live: Option<&mut LiveDisplay>,
        event: UnattendedEvent,
    ) -> Option<ExitStatus> {
        match (event, live) {
            (UnattendedEvent::Begins(root), live) => {
                live.into_iter().for_each(|live| live.begin(store, root));
                None
            }
            (UnattendedEvent::Ended(ended), live) => {
                live.into_iter().for_each(|live| live.end(ended.root));
                Some(self.report(store, ended))
            }
            (UnattendedEvent::Refused(refused), _) => {
                if is_news(&refused) {
                    tell_of_refused(&refused);
                }
                None
            }
        }
    }

    fn report(&self, store: &Store, EndedChain { root, notes, status, is_news, .. }: EndedChain) -> ExitStatus {
        drive::print_notes(&notes);
        if !is_news {
            return if self.output_options.exit_code { ExitStatus::Waiting } else { ExitStatus::Ok };
        }
        match status
            .map_err(AppError::from)
            .and_then(|status| StatusReport::new(store, root, status, self.output_options))
        {
            Ok(report) => one_line::print(&report, self.output_options).unwrap_or_else(CliError::report),
            Err(error) => one_line::error(root, &CliError::from(error)),
        }
    }
}

fn interrupted() -> CliError {
    CliError::new(ExitStatus::Interrupted, "interrupted").hint("agent-cli ls lists the chains that can continue")
}
