//! Continues chains without a person: all chains that can continue, or the chains that were answered.

use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::AppError;
use crate::app::view::outcome::Continuer;
use crate::core::attempt::decision::Note;
use crate::core::chain::check_schedule::RefusedAnswer;
use crate::core::chain::frame_state::{AgentStatus, FrameState};
use crate::core::chain::tree::Tree;
use crate::core::chain::waiting_on::Blocking;
use crate::core::chain::waiting_on::shown_state::ShownState;
use crate::core::housekeeping::hosting::Elsewhere;
use crate::core::id::FrameId;
use crate::runtime::housekeeping::service::Service;
use crate::runtime::run::driven::Driven;
use crate::runtime::run::places::Places;
use crate::runtime::run::scheduler;
use crate::runtime::run::signals::Signals;
use crate::runtime::run::status::{self, ChainStatus};
use crate::runtime::run::unattended::continuing::{self, Course, ToContinue, Until};
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::{Chains, Driving, Store, Watching};

/// The default limit of agents that run at once over all chains. It equals the default of a single chain.
pub(crate) const MAX_PARALLEL_TOTAL: u32 = 4;

/// An event while chains are continued.
#[derive(Debug)]
pub(crate) enum UnattendedEvent {
    /// A chain is about to run.
    Begins(FrameId),
    Ended(EndedChain),
    /// The content of a file does not count as an answer.
    Refused(RefusedAnswer),
}

/// A chain that has run as far as it could.
#[derive(Debug)]
pub(crate) struct EndedChain {
    pub(crate) root: FrameId,
    pub(crate) interrupted: bool,
    /// Notes about agents for the person, although nothing went wrong.
    pub(crate) notes: Vec<(FrameId, Note)>,
    pub(crate) status: Result<ChainStatus, RuntimeError>,
    /// Whether there is anything to report. Without this, a log would get the same line every minute, for example about a
    /// command that is retried.
    pub(crate) is_news: bool,
}

/// Interrupted chains, which only a person continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted {
    pub(crate) newest: FrameId,
    pub(crate) others: u64,
}

/// The effect of an answer on its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AfterAnswer {
    Removed,
    /// It is done.
    Done,
    /// Another process is running the chain, and continues it.
    RunsElsewhere,
    /// Only a process of another host continues the chain.
    OnAnotherHost(Elsewhere),
    /// The chain continues without a person.
    Continues(Continuer),
    CanContinue,
    /// The chain waits for something else. Afterwards it continues without a person if there is a continuer.
    Waits(Option<Continuer>),
    /// Only a person continues it.
    LeftToPeople {
        /// What has happened to the chain.
        why: &'static str,
        /// The command that continues it.
        next: String,
    },
}

/// Adapts `settings` to running many chains at once.
pub(crate) fn settings(settings: RunSettings, max_parallel_total: Option<u32>) -> RunSettings {
    RunSettings { places: Some(Places::new(max_parallel_total.unwrap_or(MAX_PARALLEL_TOTAL))), ..settings }
}

/// Returns the chains with which [`continue_all()`] would begin.
pub(crate) fn to_continue(app: &App<'_>) -> Result<ToContinue, AppError> {
    app.asker.may(PersonsTask::ResumeAll)?;
    Ok(continuing::to_continue(app.store)?)
}

/// Continues every chain that can continue. Leaves failed and interrupted chains to people. Returns whether a signal ended
/// it.
pub(crate) async fn continue_all(
    app: &App<'_>,
    settings: &RunSettings,
    stop: watch::Receiver<Signals>,
    until: Until,
    mut happens: impl FnMut(UnattendedEvent),
) -> Result<bool, AppError> {
    app.asker.may(match until {
        Until::Idle => PersonsTask::ResumeAll,
        Until::Stopped | Until::Drained => PersonsTask::Watch,
    })?;
    let course = |course| {
        happens(match course {
            Course::Begins(root) => UnattendedEvent::Begins(root),
            Course::Ended(root, driven) => UnattendedEvent::Ended(ended(app.store, root, driven)),
            Course::Refused(refused) => UnattendedEvent::Refused(refused),
        });
    };
    continuing::continue_chains(app.store, settings, stop.clone(), until, course).await?;
    let is_stopped = stop.borrow().any();
    Ok(is_stopped)
}

/// Continues the given chains, several at once. Returns whether a signal ended it.
pub(crate) async fn continue_these(
    app: &App<'_>,
    settings: &RunSettings,
    stop: watch::Receiver<Signals>,
    roots: &[FrameId],
    mut happens: impl FnMut(UnattendedEvent),
) -> Result<bool, AppError> {
    app.asker.may(PersonsTask::ResumeAll)?;
    let at_once = settings.places.as_ref().map_or(1, |places| places.most() as usize);
    let drive = |root: &FrameId| {
        let (root, stop) = (*root, stop.clone());
        async move { (root, scheduler::drive(app.store, settings, root, stop).await) }
    };
    for root in roots {
        happens(UnattendedEvent::Begins(*root));
    }
    let mut chains = stream::iter(roots.iter().map(drive)).buffer_unordered(at_once);
    while let Some((root, driven)) = chains.next().await {
        happens(UnattendedEvent::Ended(ended(app.store, root, driven)));
    }
    let is_stopped = stop.borrow().any();
    Ok(is_stopped)
}

fn ended(store: &Store, root: FrameId, driven: Result<Driven, RuntimeError>) -> EndedChain {
    let driven = match driven {
        Ok(driven) => driven,
        Err(error) => {
            return EndedChain { root, interrupted: false, notes: Vec::new(), status: Err(error), is_news: true };
        }
    };
    let (interrupted, notes, is_uneventful) = (driven.interrupted, driven.notes.clone(), driven.is_uneventful());
    let status = status::after_unattended(store, root, driven);
    let waits = matches!(&status, Ok(ChainStatus::Waits { errors, .. }) if errors.is_empty());
    EndedChain { root, interrupted, notes, status, is_news: !(is_uneventful && waits) }
}

/// The interrupted chains, if any.
pub(crate) fn interrupted(store: &Store) -> Result<Option<Interrupted>, RuntimeError> {
    let interrupted = store.chains(Chains::With { status: AgentStatus::Cancelled, most: 1 })?;
    let newest = interrupted.chains.first();
    Ok(newest.map(|newest| Interrupted { newest: newest.id, others: interrupted.more }))
}

impl AfterAnswer {
    /// The program that continues the chain without a person.
    pub(crate) fn continuer(&self) -> Option<Continuer> {
        match self {
            Self::Continues(by) => Some(*by),
            Self::Waits(by) => *by,
            Self::Removed
            | Self::Done
            | Self::RunsElsewhere
            | Self::OnAnotherHost(_)
            | Self::CanContinue
            | Self::LeftToPeople { .. } => None,
        }
    }
}

/// The program that continues chains in this state directory without a person. It leaves failed and interrupted chains alone.
pub(crate) fn continuer(store: &Store) -> Result<Option<Continuer>, AppError> {
    if Watching::is_marked(store.dir())? {
        return Ok(Some(Continuer::Watch));
    }
    let has_service = Service::of_user().is_ok_and(|service| service.continues(store.dir().path()));
    Ok(has_service.then_some(Continuer::Service))
}

/// Whether the chain of `root` can continue while no process runs it.
pub(crate) fn can_continue(store: &Store, root: FrameId) -> Result<bool, AppError> {
    Ok(status::can_continue(store, root)?)
}

/// Determines the effect of an answer on the chain of `root`.
pub(crate) fn after_answer(store: &Store, root: FrameId) -> Result<AfterAnswer, AppError> {
    if store.frame(root)?.is_none() {
        return Ok(AfterAnswer::Removed);
    }
    if let Some(elsewhere) = store.chain_of(root)?.elsewhere {
        return Ok(AfterAnswer::OnAnotherHost(elsewhere));
    }
    let continuer = continuer(store)?;
    let can_continue = can_continue(store, root)?;
    Ok(match continuer {
        // The watch may have continued the chain already.
        Some(Continuer::Watch) if can_continue || Driving::is_marked(store.dir(), root)? => {
            AfterAnswer::Continues(Continuer::Watch)
        }
        _ if Driving::is_marked(store.dir(), root)? => AfterAnswer::RunsElsewhere,
        Some(by) if can_continue => AfterAnswer::Continues(by),
        None if can_continue => AfterAnswer::CanContinue,
        _ => at_rest(&store.tree(root)?, Timestamp::now()).unwrap_or(AfterAnswer::Waits(continuer)),
    })
}

/// Whether a chain that is at rest is done, or only a person continues it.
fn at_rest(tree: &Tree, now: Timestamp) -> Option<AfterAnswer> {
    let resume = |id: FrameId| format!("agent-cli resume {id}");
    if tree.has_ended() {
        return Some(match tree.get(tree.top()).map(|node| &node.state) {
            Some(FrameState::Failed { .. }) => {
                let why =
                    if tree.shown_state(false, now) == ShownState::Stopped { "was stopped" } else { "has failed" };
                AfterAnswer::LeftToPeople { why, next: resume(tree.top()) }
            }
            _ => AfterAnswer::Done,
        });
    }
    let held = tree.blockers(now).into_iter().find_map(|blocker| match blocker.what {
        Blocking::Paused { id, .. } => Some(("is paused", resume(id))),
        Blocking::Budget { .. } => Some(("has spent its budget", resume(tree.top()) + " --max-budget-usd USD")),
        _ => None,
    });
    let interrupted = || {
        let is_interrupted = tree.shown_state(false, now) == ShownState::Interrupted;
        is_interrupted.then(|| ("was interrupted", resume(tree.top())))
    };
    held.or_else(interrupted).map(|(why, next)| AfterAnswer::LeftToPeople { why, next })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::chains::run;
    use crate::app::{Asker, testing};
    use crate::core::attempt::ending::Ending;
    use crate::runtime::run::frame_error::{FrameError, FrameErrorKind};
    use crate::store;

    #[test]
    fn only_what_happened_is_news() {
        let (_temp, store) = store::testing::store();
        let waits = store.asking("When?").0;
        let ended = |driven| ended(&store, waits, driven);
        assert!(!ended(Ok(Driven::default())).is_news);
        assert!(ended(Ok(Driven { worked: true, ..Driven::default() })).is_news);
        assert!(ended(Err(RuntimeError::NoCaller(waits))).is_news);
        let interrupted = ended(Ok(Driven { interrupted: true, ..Driven::default() }));
        assert!(interrupted.interrupted && interrupted.is_news);
        assert!(matches!(interrupted.status, Ok(ChainStatus::Interrupted)));
        let errors = vec![FrameError { frame: waits, kind: FrameErrorKind::Ended("max turns".into()) }];
        assert!(ended(Ok(Driven { errors, ..Driven::default() })).is_news);
    }

    #[test]
    fn an_answered_chain_continues_unless_something_else_keeps_it() {
        let (_temp, store) = store::testing::store();
        let (chain, question) = store.asking("When?");
        let after = |root| after_answer(&store, root).unwrap();
        assert_eq!(after(chain), AfterAnswer::Waits(None));
        store.answer(question, "Jan 1st").unwrap();
        assert_eq!(after(chain), AfterAnswer::CanContinue);
        let driving = Driving::mark(store.dir(), chain).unwrap();
        assert_eq!(after(chain), AfterAnswer::RunsElsewhere);
        let watching = Watching::mark(store.dir()).unwrap();
        assert_eq!(after(chain), AfterAnswer::Continues(Continuer::Watch));
        drop(driving);
        assert_eq!(after(chain), AfterAnswer::Continues(Continuer::Watch));
        let (other, _) = store.asking("And where?");
        assert_eq!(after(other), AfterAnswer::Waits(Some(Continuer::Watch)));
        drop(watching);
        assert_eq!((after(other), after(chain)), (AfterAnswer::Waits(None), AfterAnswer::CanContinue));
        assert_eq!(after(FrameId::random()), AfterAnswer::Removed);
        let [done, failed] = [store::testing::reply("42"), Ending::Error("max turns".into())].map(|ending| {
            let root = store.root();
            store.end(store.start(root), &ending);
            root
        });
        assert_eq!(after(done), AfterAnswer::Done);
        let next = format!("agent-cli resume {failed}");
        assert_eq!(after(failed), AfterAnswer::LeftToPeople { why: "has failed", next });
    }

    #[test]
    fn agents_continue_neither_all_chains_nor_answered_ones() {
        let (_temp, store) = store::testing::store();
        let agent = Some(store.start(store.root()));
        let app = App { asker: Asker { agent, ..Asker::default() }, ..testing::app(&store) };
        let settings = settings(run::testing::settings(), Some(2));
        assert_eq!(settings.places.as_ref().map(Places::most), Some(2));
        let (_sender, stop) = watch::channel(Signals::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refused = |result: Result<bool, AppError>| result.unwrap_err().to_string();
        let all = |until| runtime.block_on(continue_all(&app, &settings, stop.clone(), until, |_| {}));
        assert_eq!(refused(all(Until::Idle)), "agents cannot resume all chains");
        assert_eq!(refused(all(Until::Stopped)), "agents cannot watch chains");
        let these = runtime.block_on(continue_these(&app, &settings, stop.clone(), &[], |_| {}));
        assert_eq!(refused(these), "agents cannot resume all chains");
        assert_eq!(to_continue(&app).unwrap_err().to_string(), "agents cannot resume all chains");
    }

    #[test]
    fn an_idle_store_has_nothing_to_continue() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        store.asking("When?");
        assert!(to_continue(&app).unwrap().roots.is_empty());
        assert_eq!(interrupted(&store).unwrap(), None);
        let (answered, question) = store.asking("When?");
        store.answer(question, "Jan 1st").unwrap();
        assert_eq!(to_continue(&app).unwrap().roots, [answered]);
        let settings = settings(run::testing::settings(), None);
        assert_eq!(settings.places.map(|places| places.most()), Some(MAX_PARALLEL_TOTAL));
    }
}
