//! Runs chains in this process, for every front.

use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::app::error::AppError;
use crate::claude::installation::start_refusal::StartRefusal;
use crate::claude::processes::children;
use crate::core::agent::launch::Launch;
use crate::core::id::FrameId;
use crate::runtime::housekeeping::removal;
use crate::runtime::run::driven::Driven;
use crate::runtime::run::frame_error::{FrameError, FrameErrorKind};
use crate::runtime::run::scheduler::own_process;
use crate::runtime::run::signals::{self, Signals};
use crate::runtime::run::status::{self, ChainStatus};
use crate::runtime::{self, RunSettings, RuntimeError, programs};
use crate::store::Store;

/// A front's environment. Each part is only read when it is needed: a poll reads no settings.
pub(crate) trait RunSurroundings {
    /// `claude` is the program that the asker has named.
    fn run_settings(&self, claude: Option<PathBuf>) -> Result<RunSettings, AppError>;

    /// The launch options of a new chain.
    fn launch(&self) -> Result<Launch, AppError>;

    /// The path of the program that the asker has named, or else of the `claude` in this environment.
    fn claude(&self, named: Option<&Path>) -> Result<PathBuf, AppError>;
}

/// The next step for a chain.
#[derive(Debug)]
pub(crate) enum NextRun {
    /// No agent in it can run.
    Nothing(ChainStatus),
    Run(Box<RunSettings>),
}

/// The outcome of a new chain's first run.
#[derive(Debug)]
pub(crate) enum FirstRun {
    Status(ChainStatus),
    /// `claude` refused its arguments before it did any work. The chain could never run, so it was removed again.
    Refused(Vec<FrameError>),
}

/// Determines whether the chain below `top` can run now.
pub(crate) fn next(
    store: &Store,
    top: FrameId,
    settings: impl FnOnce() -> Result<RunSettings, AppError>,
) -> Result<NextRun, AppError> {
    Ok(match status::poll(store, top)? {
        Some(status) => NextRun::Nothing(status),
        None => NextRun::Run(Box::new(settings()?)),
    })
}

/// Returns the status of a new chain after its first run, unless the chain could not run at all.
pub(crate) fn first_run(store: &Store, top: FrameId, driven: Driven) -> Result<FirstRun, AppError> {
    Ok(match status::after(store, top, driven)? {
        ChainStatus::Failed(errors) | ChainStatus::PartlyFailed { errors, .. }
            if errors.iter().all(|error| would_always_fail(&error.kind)) && removal::remove_unused(store, top)? =>
        {
            FirstRun::Refused(errors)
        }
        status => FirstRun::Status(status),
    })
}

/// Whether the same command would fail like this every time.
fn would_always_fail(why: &FrameErrorKind) -> bool {
    match why {
        FrameErrorKind::Refused(said) => StartRefusal::from_message(said).is_of_the_command_line(),
        FrameErrorKind::Program(_) => true,
        _ => false,
    }
}

/// Runs `work`, which runs agents. `work` gets the number of stop signals so far.
pub(crate) fn until_stopped<T, E, F: Future<Output = Result<T, E>>>(
    work: impl FnOnce(watch::Receiver<Signals>) -> F,
) -> Result<T, AppError>
where
    AppError: From<E>,
{
    children::keep_orphans_below();
    block_on(async {
        let listening =
            signals::listen().map_err(|source| RuntimeError::Io { what: "listen for signals".into(), source });
        Ok(work(listening?).await?)
    })
}

/// Starts a process that continues a chain and outlives this one.
pub(crate) fn in_background(store: &Store, root: FrameId, surroundings: &impl RunSurroundings) -> Result<(), AppError> {
    Ok(own_process::start(store, &surroundings.run_settings(None)?, root)?)
}

/// Checks a chain's launch options before they are recorded. `cwd` is the directory in which its first agent works.
pub(crate) fn check(store: &Store, settings: &RunSettings, launch: &Launch, cwd: &Path) -> Result<(), AppError> {
    block_on(async { Ok(programs::check(store, settings, launch, cwd).await?) })
}

pub(super) fn block_on<T>(work: impl Future<Output = Result<T, AppError>>) -> Result<T, AppError> {
    runtime::block_on(work).map_err(|source| RuntimeError::Io { what: "start the runner".into(), source })?
}

#[cfg(test)]
pub(crate) mod testing {
    use std::time::Duration;

    use super::*;
    use crate::runtime::Stopping;

    /// Test surroundings: a shell whose `claude` is `/usr/bin/claude`.
    pub(crate) struct TestShell;

    pub(crate) fn settings() -> RunSettings {
        RunSettings {
            spans: None,
            config: None,
            claude: None,
            own_program: "/usr/bin/agent-cli".into(),
            stale_check: true,
            stopping: Stopping { grace: Duration::from_secs(60), tell: |_| {} },
            linger: Duration::ZERO,
            places: None,
            prices: Default::default(),
            host: Default::default(),
        }
    }

    impl RunSurroundings for TestShell {
        fn run_settings(&self, claude: Option<PathBuf>) -> Result<RunSettings, AppError> {
            Ok(RunSettings { claude, ..settings() })
        }

        fn launch(&self) -> Result<Launch, AppError> {
            Ok(Launch { permission_mode: Some("plan".into()), ..Launch::default() })
        }

        fn claude(&self, named: Option<&Path>) -> Result<PathBuf, AppError> {
            Ok(Path::new("/usr/bin").join(named.unwrap_or(Path::new("claude"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store;
    use crate::store::testing::reply;

    fn driven(top: FrameId, kind: FrameErrorKind) -> Driven {
        Driven { errors: vec![FrameError { frame: top, kind }], ..Driven::default() }
    }

    #[test]
    fn settings_are_read_only_for_a_chain_that_can_run() {
        let (_temp, store) = store::testing::store();
        let waits = store.asking("When?").0;
        let waiting = next(&store, waits, || panic!("they are not read")).unwrap();
        assert!(matches!(waiting, NextRun::Nothing(ChainStatus::Waits { new: false, .. })), "{waiting:?}");
        let ready = next(&store, store.root(), || Ok(testing::settings())).unwrap();
        assert!(matches!(ready, NextRun::Run(_)), "{ready:?}");
    }

    #[test]
    fn a_new_chain_stays_unless_claude_refused_it_before_any_work() {
        let (_temp, store) = store::testing::store();
        let refused = || FrameErrorKind::Refused("error: unknown option '--nonsense'".into());
        let new = store.root();
        let first = first_run(&store, new, driven(new, refused())).unwrap();
        assert!(matches!(first, FirstRun::Refused(errors) if errors.len() == 1));
        assert_eq!(store.frame(new).unwrap(), None);
        for why in [FrameErrorKind::Refused("Please run /login".into()), FrameErrorKind::Ended("max turns".into())] {
            let new = store.root();
            let first = first_run(&store, new, driven(new, why)).unwrap();
            assert!(matches!(first, FirstRun::Status(ChainStatus::Failed(_))), "{first:?}");
            assert!(store.frame(new).unwrap().is_some());
        }
        let waits = store.asking("When?").0;
        let first = first_run(&store, waits, Driven::default()).unwrap();
        assert!(matches!(first, FirstRun::Status(ChainStatus::Waits { .. })), "{first:?}");
        let done = store.start(store.root());
        store.end(done, &reply("yes"));
        let first = first_run(&store, done.frame, driven(done.frame, refused())).unwrap();
        assert!(matches!(first, FirstRun::Status(ChainStatus::Done(reply)) if reply == "yes"));
    }
}
