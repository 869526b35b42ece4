//! Everything known about one agent.

use crate::app::App;
use crate::app::error::{AppError, Refusal};
use crate::app::lookup::frame_named;
use crate::app::view::agent_detail::{self, AgentDetailView};
use crate::store::Question;

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) agent: AgentDetailView,
    /// Its questions that wait for an answer.
    pub(crate) questions: Vec<Question>,
}

pub(crate) fn agent(app: &App<'_>, id: &str) -> Result<Outcome, AppError> {
    let id = frame_named(app, id)?;
    let gone = || Refusal::unknown(format!("agent {} no longer exists", id.short()));
    let agent = agent_detail::gather(app.store, app.store.frame(id)?.ok_or_else(gone)?, app.now)?;
    let mut questions = app.store.questions(Some(id), true)?;
    questions.retain(|question| question.frame == id);
    Ok(Outcome { agent, questions })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::store;
    use crate::store::testing::{ask, new};

    #[test]
    fn only_its_own_open_questions_are_its_own() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        let asks = |agent, text| store.request(agent, None, &[ask(text)]).unwrap().remove(0);
        let (first, second) = (asks(caller, "When?"), asks(caller, "Where?"));
        asks(store.start(child), "Why?");
        store.answer(first, "now").unwrap();
        let outcome = agent(&testing::app(&store), &caller.frame.to_string()).unwrap();
        assert_eq!((outcome.agent.id, outcome.agent.children), (caller.frame, vec![child]));
        assert_eq!(outcome.questions.iter().map(|question| question.id).collect::<Vec<_>>(), [second]);
        let error = agent(&testing::app(&store), "0000").unwrap_err();
        assert_eq!(error.to_string(), "no agent or question matches `0000`");
    }
}
