//! Lists questions, and calls and plans that need an approval.

use crate::app::error::{AppError, Refusal};
use crate::app::lists::project::Selection;
use crate::app::view::question::QuestionView;
use crate::app::{App, lookup};
use crate::core::chain::check_schedule::{ChangedChain, ContinueReason};
use crate::core::chain::waiting_on::Blocker;
use crate::core::id::RequestId;
use crate::runtime::requests::posted::filing;
use crate::runtime::requests::{answer_files, place};
use crate::runtime::run::external_waits;
use crate::store::{Question, StoreError, Target};

#[derive(Debug, Default)]
pub(crate) struct Input {
    /// A question, or a chain or agent with all of its questions. `None`: the questions of the project, or below the agent
    /// that asks.
    pub(crate) id: Option<String>,
    /// Also list answered and expired questions.
    pub(crate) with_closed: bool,
    /// Also list questions of other projects.
    pub(crate) all_projects: bool,
    /// The most questions to list, the oldest. `None`: all.
    pub(crate) most: Option<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) questions: Vec<Question>,
    /// How many questions belong to other projects.
    pub(crate) elsewhere: u64,
    pub(crate) has_more: bool,
}

/// Lists questions, the oldest first. If a person asks, this first moves closed posted questions to their folder.
pub(crate) fn questions(app: &App<'_>, input: &Input) -> Result<Outcome, AppError> {
    if app.asker.agent.is_none() {
        filing::file_ended(app.store, None)?;
    }
    let only = |questions| Outcome { questions, ..Outcome::default() };
    match (&input.id, app.asker.agent) {
        (Some(id), _) => Ok(only(named(app, id, !input.with_closed)?)),
        (None, Some(caller)) => Ok(only(app.store.questions(Some(caller.frame), !input.with_closed)?)),
        (None, None) => of_project(app, input),
    }
}

/// Finds the question with exactly this id.
pub(crate) fn asked(app: &App<'_>, question: RequestId) -> Result<Question, AppError> {
    let unknown = || Refusal::unknown("there is no such question; its chain may have been removed");
    Ok(app.store.questions(question, false)?.pop().ok_or_else(unknown)?)
}

/// Finds a single question in any state, or all questions of a chain or agent and everything below it.
fn named(app: &App<'_>, id: &str, only_open: bool) -> Result<Vec<Question>, AppError> {
    match lookup::target_named(app, id)? {
        Target::Frame(frame) => Ok(app.store.questions(Some(frame), only_open)?),
        Target::Request(request) => {
            let question = app.store.questions(request, false)?.pop();
            Ok(vec![question.ok_or(StoreError::NotAQuestion(request))?])
        }
    }
}

fn of_project(app: &App<'_>, input: &Input) -> Result<Outcome, AppError> {
    let directories = Selection::new(app, input.all_projects)?.directories(app.store)?;
    let most = input.most.unwrap_or(usize::MAX);
    let first = app.store.first_questions(most, directories.as_deref(), !input.with_closed)?;
    Ok(Outcome { questions: first.questions, elsewhere: first.elsewhere, has_more: first.more > 0 })
}

/// Builds the views of questions, with the places where their calls would act now, and the content of their answer files.
pub(crate) fn views(app: &App<'_>, questions: Vec<Question>) -> Result<Vec<QuestionView>, AppError> {
    let observed = |question| {
        let question = place::with_place(app.store, question)?;
        answer_files::observed(app.store, question, app.now).map(QuestionView::from)
    };
    Ok(questions.into_iter().map(observed).collect::<Result<_, _>>()?)
}

/// Everything that an agent and all agents below it wait for.
pub(crate) fn waits_of(app: &App<'_>, id: &str) -> Result<Vec<Blocker>, AppError> {
    let mut tree = app.store.tree(lookup::frame_named(app, id)?)?;
    external_waits::observe(app.store, &mut tree, app.now)?;
    Ok(tree.blockers(app.now))
}

/// Whether any chain waits for something other than an answer. Always false for agents, which must not see other chains.
pub(crate) fn are_there_other_waits(app: &App<'_>) -> Result<bool, AppError> {
    let waits = |found: &ChangedChain| matches!(found.reason, ContinueReason::Outside(_));
    Ok(app.asker.agent.is_none() && app.store.candidates(app.now)?.iter().any(waits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::core::chain::waiting_on::Blocking;
    use crate::core::id::{FrameId, RequestId};
    use crate::core::requests::request::RequestKind;
    use crate::core::waits::conditions::External;
    use crate::store::testing::{ask, new, store};
    use crate::store::{NewFrame, Store};

    fn asking(store: &Store, cwd: &str) -> (FrameId, RequestId) {
        let chain = store.create_root(&NewFrame { cwd: cwd.into(), ..new("a task") }).unwrap();
        (chain, store.request(store.start(chain), None, &[ask("When?")]).unwrap().remove(0))
    }

    fn ids(outcome: &Outcome) -> Vec<RequestId> {
        outcome.questions.iter().map(|question| question.id).collect()
    }

    #[test]
    fn the_oldest_of_the_project_are_listed_and_others_counted() {
        let (_temp, store) = store();
        let app = testing::app(&store);
        let [(chain, first), (_, second), (_, other)] = ["/", "/", "/elsewhere"].map(|cwd| asking(&store, cwd));
        let listed = |input: Input| {
            let found = questions(&app, &input).unwrap();
            (ids(&found), found.elsewhere, found.has_more)
        };
        let all = || Input { all_projects: true, ..Input::default() };
        assert_eq!(listed(Input::default()), (vec![first, second], 1, false));
        assert_eq!(listed(all()), (vec![first, second, other], 0, false));
        assert_eq!(listed(Input { most: Some(2), ..all() }), (vec![first, second], 0, true));
        assert_eq!(listed(Input { most: Some(3), ..all() }), (vec![first, second, other], 0, false));
        store.answer(first, "now").unwrap();
        assert_eq!(listed(Input::default()).0, [second]);
        assert_eq!(listed(Input { with_closed: true, ..Input::default() }).0, [first, second]);
        let named = |id: String, with_closed| listed(Input { id: Some(id), with_closed, ..Input::default() }).0;
        assert_eq!(named(chain.to_string(), false), []);
        assert_eq!(named(chain.to_string(), true), [first]);
        assert_eq!(named(first.to_string(), false), [first], "in any state");
        let views = views(&app, questions(&app, &Input::default()).unwrap().questions).unwrap();
        assert_eq!(views.iter().map(|view| view.id).collect::<Vec<_>>(), [second]);
    }

    #[test]
    fn an_agent_sees_what_was_asked_below_it() {
        let (_temp, store) = store();
        let (_, other) = asking(&store, "/");
        let caller = store.start(store.root());
        let asked = store.request(caller, None, &[ask("Why?")]).unwrap()[0];
        let app = testing::app_of(&store, caller);
        assert_eq!(ids(&questions(&app, &Input::default()).unwrap()), [asked]);
        assert!(questions(&app, &Input { id: Some(other.to_string()), ..Input::default() }).is_err());
    }

    #[test]
    fn other_waits_are_noticed() {
        let (_temp, store) = store();
        let app = testing::app(&store);
        asking(&store, "/");
        assert!(!are_there_other_waits(&app).unwrap());
        let caller = store.start(store.root());
        let wait = RequestKind::Wait(External::Time("2100-01-01T00:00:00Z".parse().unwrap()));
        let request = store.request(caller, None, &[wait]).unwrap()[0];
        store.end(caller, &crate::core::attempt::ending::Ending::Suspended);
        let waits = waits_of(&app, &caller.frame.to_string()).unwrap();
        assert!(matches!(waits.as_slice(), [Blocker { what: Blocking::External { .. }, .. }]), "{waits:?}");
        assert!(are_there_other_waits(&app).unwrap());
        assert!(!are_there_other_waits(&testing::app_of(&store, caller)).unwrap());
        let not_asked = Input { id: Some(request.to_string()), ..Input::default() };
        let error = questions(&app, &not_asked).unwrap_err();
        assert!(matches!(error, AppError::Store(StoreError::NotAQuestion(_))), "{error}");
    }
}
