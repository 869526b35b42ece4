//! Lists what agents asked, who answered, and what they did next.

use jiff::Timestamp;

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::project::Selection;
use crate::app::lookup;
use crate::app::view::exchange::ExchangeView;
use crate::store::{Asked, Target};

#[derive(Debug, Default)]
pub(crate) struct Input {
    /// A question, or a chain or agent with all of its questions. `None`: the questions of the project, or below the agent
    /// that asks.
    pub(crate) id: Option<String>,
    /// Also list questions of other projects.
    pub(crate) all_projects: bool,
    /// Leave out earlier questions.
    pub(crate) since: Option<Timestamp>,
    /// The most questions of a project to list, the newest. `None`: all.
    pub(crate) most: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) exchanges: Vec<ExchangeView>,
    /// Whether the id named one question.
    pub(crate) is_one: bool,
    /// How many questions of other projects were left out.
    pub(crate) elsewhere: u64,
    pub(crate) has_more: bool,
}

/// Lists everything on record about questions, the oldest first.
pub(crate) fn history(app: &App<'_>, input: &Input) -> Result<Outcome, AppError> {
    let asked = match (&input.id, app.asker.agent) {
        (Some(id), _) => match lookup::target_named(app, id)? {
            Target::Frame(frame) => Asked::Below(frame),
            Target::Request(request) => Asked::One(request),
        },
        (None, Some(caller)) => Asked::Below(caller.frame),
        (None, None) => Asked::Anywhere,
    };
    let is_listed = asked == Asked::Anywhere;
    let most = input.most.filter(|_| is_listed).unwrap_or(usize::MAX);
    let directories = Selection::new(app, !is_listed || input.all_projects)?.directories(app.store)?;
    let since = input.since.unwrap_or(Timestamp::MIN);
    // Reading one more than the limit shows whether there are more.
    let mut found = app.store.exchanges(asked, since, most.saturating_add(1), directories.as_deref())?;
    let has_more = found.exchanges.len() > most;
    found.exchanges.drain(..found.exchanges.len().saturating_sub(most));
    let exchanges = found.exchanges.into_iter().map(|exchange| ExchangeView::gather(app.store, exchange));
    Ok(Outcome {
        exchanges: exchanges.collect::<Result<_, _>>()?,
        is_one: matches!(asked, Asked::One(_)),
        elsewhere: found.passed_over,
        has_more,
    })
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::app::testing;
    use crate::core::id::{FrameId, RequestId};
    use crate::store::testing::{ask, new, store};
    use crate::store::{NewFrame, Store};

    fn asking(store: &Store, cwd: &str) -> (FrameId, RequestId) {
        let chain = store.create_root(&NewFrame { cwd: cwd.into(), ..new("a task") }).unwrap();
        (chain, store.request(store.start(chain), None, &[ask("When?")]).unwrap().remove(0))
    }

    #[test]
    fn the_newest_of_the_project_are_listed_and_others_counted() {
        let (_temp, store) = store();
        let app = testing::app(&store);
        let [(chain, first), (_, second), (_, other)] = ["/", "/", "/elsewhere"].map(|cwd| asking(&store, cwd));
        let listed = |input: Input| {
            let found = history(&app, &input).unwrap();
            let ids = found.exchanges.iter().map(|exchange| exchange.id).collect::<Vec<_>>();
            (ids, found.is_one, found.elsewhere, found.has_more)
        };
        let all = || Input { all_projects: true, ..Input::default() };
        assert_eq!(listed(Input::default()), (vec![first, second], false, 1, false));
        assert_eq!(listed(all()), (vec![first, second, other], false, 0, false));
        assert_eq!(listed(Input { most: Some(2), ..all() }), (vec![second, other], false, 0, true));
        assert_eq!(listed(Input { most: Some(3), ..all() }), (vec![first, second, other], false, 0, false));
        let later = Timestamp::now().checked_add(SignedDuration::from_hours(1)).unwrap();
        assert_eq!(listed(Input { since: Some(later), ..all() }).0, []);
        let named = |id: String| listed(Input { id: Some(id), most: Some(0), ..Input::default() });
        assert_eq!(named(chain.to_string()), (vec![first], false, 0, false));
        assert_eq!(named(other.to_string()), (vec![other], true, 0, false));
    }

    #[test]
    fn an_agent_sees_what_was_asked_below_it() {
        let (_temp, store) = store();
        asking(&store, "/");
        let caller = store.start(store.root());
        let asked = store.request(caller, None, &[ask("Why?")]).unwrap()[0];
        let found = history(&testing::app_of(&store, caller), &Input::default()).unwrap();
        assert_eq!(found.exchanges.iter().map(|exchange| exchange.id).collect::<Vec<_>>(), [asked]);
        assert_eq!((found.is_one, found.elsewhere, found.has_more), (false, 0, false));
    }
}
