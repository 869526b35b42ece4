//! `agent-cli resume --all`: continues every chain that can continue.

use std::cell::Cell;
use std::path::PathBuf;

use futures_util::stream::{self, StreamExt};

use crate::app::asker::PersonsTask;
use crate::app::config::setting;
use crate::cli::chain::drive;
use crate::cli::chain::unattended::for_a_person;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::report::chain_status::{OutputOptions, StatusReport};
use crate::cli::report::live::display::Live;
use crate::cli::report::one_line;
use crate::core::id::FrameId;
use crate::runtime::run::driven::Driven;
use crate::runtime::run::places::Places;
use crate::runtime::run::status::ChainStatus;
use crate::runtime::run::unattended::continuing::{self, Course, ToContinue, Until};
use crate::runtime::run::{scheduler, status};
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::Store;

/// How many agents run at once over all chains, unless a person says otherwise: as many as of one chain.
pub(crate) const MAX_PARALLEL_TOTAL: u32 = 4;

/// How the chains are continued.
#[derive(Clone, Debug)]
pub(crate) struct ResumeAll {
    pub(crate) claude: Option<PathBuf>,
    pub(crate) stale_check: bool,
    pub(crate) max_parallel_total: Option<u32>,
    pub(crate) output_options: OutputOptions,
}

impl ResumeAll {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        context.asker().may(PersonsTask::ResumeAll)?;
        // Most polls find a database at rest, and nothing to do.
        let is_idle = |store: &Store| {
            let ToContinue { roots, refused } = continuing::to_continue(store)?;
            let is_idle = roots.is_empty() && !refused.iter().any(for_a_person::is_news);
            if is_idle {
                for_a_person::tell_of_interrupted(store)?;
            }
            Ok(is_idle)
        };
        if context.read_snapshot(is_idle) == Some(true) {
            return Ok(ExitStatus::Ok);
        }
        let store = context.store()?;
        let settings = self.settings(context)?;
        let worst = Cell::new(ExitStatus::Ok);
        let mut live = Live::new(store.dir().path());
        let course = |course| {
            if let Some(exit) = self.follow(&store, live.as_mut(), course) {
                worst.set(worse(worst.get(), exit));
            }
        };
        let (of_store, of_run) = (&store, &settings);
        let stopped = drive::run(context, |stop| async move {
            continuing::continue_chains(of_store, of_run, stop.clone(), Until::Idle, course).await?;
            let is_stopped = stop.borrow().any();
            Ok(is_stopped)
        });
        live.map_or(Ok(()), |live| live.finish(&store))?;
        let stopped = stopped?;
        if stopped {
            return Err(interrupted());
        }
        for_a_person::tell_of_interrupted(&store)?;
        Ok(worst.get())
    }

    /// Continues these chains, several at once.
    pub(crate) fn continue_these(
        &self,
        context: &Context,
        store: &Store,
        roots: &[FrameId],
    ) -> Result<ExitStatus, CliError> {
        let settings = self.settings(context)?;
        let at_once = settings.places.as_ref().map_or(1, |places| places.most() as usize);
        let mut worst = ExitStatus::Ok;
        let mut live = Live::new(store.dir().path());
        let (of_run, worst_of_all, mut display) = (&settings, &mut worst, live.as_mut());
        let stopped = drive::run(context, |stop| async move {
            let drive = |root: &FrameId| {
                let (root, stop) = (*root, stop.clone());
                async move { (root, scheduler::drive(store, of_run, root, stop).await) }
            };
            for root in roots {
                self.follow(store, display.as_deref_mut(), Course::Begins(*root));
            }
            let mut chains = stream::iter(roots.iter().map(drive)).buffer_unordered(at_once);
            while let Some((root, driven)) = chains.next().await {
                if let Some(exit) = self.follow(store, display.as_deref_mut(), Course::Ended(root, driven)) {
                    *worst_of_all = worse(*worst_of_all, exit);
                }
            }
            let is_stopped = stop.borrow().any();
            Ok(is_stopped)
        });
        live.map_or(Ok(()), |live| live.finish(store))?;
        if stopped? { Err(interrupted()) } else { Ok(worst) }
    }

    pub(crate) fn settings(&self, context: &Context) -> Result<RunSettings, CliError> {
        let mut settings = context.settings(self.claude.clone())?;
        settings.stale_check = self.stale_check;
        let configured = context.usable_configuration()?.settings.count(&setting::MAX_PARALLEL_TOTAL);
        settings.places = Some(Places::new(self.max_parallel_total.or(configured).unwrap_or(MAX_PARALLEL_TOTAL)));
        Ok(settings)
    }

    /// Shows a chain as long as it is driven, and prints how it stands after that.
    pub(crate) fn follow(&self, store: &Store, live: Option<&mut Live>, course: Course) -> Option<ExitStatus> {
        match (course, live) {
            (Course::Begins(root), live) => {
                live.into_iter().for_each(|live| live.begin(root));
                None
            }
            (Course::Ended(root, driven), live) => {
                live.into_iter().for_each(|live| live.end(root));
                Some(self.report(store, root, driven))
            }
            (Course::Refused(refused), _) => {
                if for_a_person::is_news(&refused) {
                    for_a_person::tell_of_refused(&refused);
                }
                None
            }
        }
    }

    fn report(&self, store: &Store, root: FrameId, driven: Result<Driven, RuntimeError>) -> ExitStatus {
        let is_uneventful = driven.as_ref().is_ok_and(Driven::is_uneventful);
        let report = driven.and_then(|driven| {
            drive::print_notes(&driven);
            let status = status::after_unattended(store, root, driven)?;
            StatusReport::new(store, root, status, self.output_options)
        });
        let report = match report {
            // A log would otherwise get the same line every minute, for example about a command that is tried again.
            Ok(StatusReport { status: ChainStatus::Waits { errors, .. }, .. })
                if is_uneventful && errors.is_empty() =>
            {
                return if self.output_options.exit_code { ExitStatus::Waiting } else { ExitStatus::Ok };
            }
            Ok(report) => report,
            Err(error) => return one_line::error(root, &CliError::from(error)),
        };
        match one_line::print(&report, self.output_options) {
            Ok(exit) => exit,
            Err(error) => error.report(),
        }
    }
}

fn interrupted() -> CliError {
    CliError::new(ExitStatus::Interrupted, "interrupted").hint("agent-cli ls lists the chains that can continue")
}

/// The status with which the command exits after chains that ended so, in whatever order: what concerns all chains comes first.
fn worse(one: ExitStatus, other: ExitStatus) -> ExitStatus {
    let badness = |exit| match exit {
        ExitStatus::Ok => 0,
        ExitStatus::Waiting => 1,
        ExitStatus::Failed => 2,
        ExitStatus::Usage => 3,
        ExitStatus::NoSuchFrame => 4,
        ExitStatus::Claude => 5,
        ExitStatus::Interrupted => 6,
    };
    if badness(other) > badness(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_status_counts_in_whatever_order_chains_end() {
        use ExitStatus::{Claude, Failed, Interrupted, NoSuchFrame, Ok, Usage, Waiting};
        let all = [Ok, Waiting, Failed, Usage, NoSuchFrame, Claude, Interrupted];
        for one in all {
            for other in all {
                assert_eq!(worse(one, other), worse(other, one));
            }
        }
        assert_eq!([worse(Failed, Claude), worse(Waiting, Failed), worse(Ok, Waiting)], [Claude, Failed, Waiting]);
    }
}
