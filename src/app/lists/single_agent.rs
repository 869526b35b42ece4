//! Shows everything known about one agent.

use crate::app::App;
use crate::app::chains::estimate::Estimator;
use crate::app::error::{AppError, Refusal};
use crate::app::lookup::frame_named;
use crate::app::view::agent_detail::{self, AgentDetailView};
use crate::core::chain::frame_state::FrameState;
use crate::core::id::FrameId;
use crate::runtime::run::status;
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::{Question, Store};

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) agent: AgentDetailView,
    /// The agent's open questions.
    pub(crate) questions: Vec<Question>,
}

/// `run`: the asker's settings for running chains.
pub(crate) fn agent(app: &App<'_>, id: &str, run: &RunSettings) -> Result<Outcome, AppError> {
    let id = frame_named(app, id)?;
    let gone = || Refusal::unknown(format!("agent {} no longer exists", id.short()));
    let frame = app.store.frame(id)?.ok_or_else(gone)?;
    let has_next = !frame.state.is_over() && !matches!(frame.state, FrameState::Running { .. });
    let next_request = match has_next && !frame.task.is_group() {
        true => Some(Estimator::without_processes(app, run).of_frame(&frame, &frame.launch)?),
        false => None,
    };
    let agent = agent_detail::gather(app.store, frame, next_request, app.now)?;
    let mut questions = app.store.questions(Some(id), true)?;
    questions.retain(|question| question.frame == id);
    Ok(Outcome { agent, questions })
}

/// Returns the agent's whole reply, or an error if it has none.
pub(crate) fn reply(app: &App<'_>, id: &str) -> Result<String, AppError> {
    let id = frame_named(app, id)?;
    reply_of(app.store, id)?.ok_or_else(|| {
        let short = id.short();
        Refusal::unknown(format!("agent {short} has not replied"))
            .hint(format!("agent-cli show {short} says why"))
            .into()
    })
}

/// Returns the reply of an agent that is done. `None` if it has none.
pub(crate) fn reply_of(store: &Store, id: FrameId) -> Result<Option<String>, RuntimeError> {
    Ok(match store.frame(id)? {
        Some(frame) if agent_detail::has_reply(&frame) => store.replies(id)?.reply,
        // A person has continued it since it was stopped.
        Some(frame) if frame.state == FrameState::Done => status::latest_reply(store, id)?,
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::chains::run::testing::settings;
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
        let outcome = agent(&testing::app(&store), &caller.frame.to_string(), &settings()).unwrap();
        assert_eq!((outcome.agent.id, outcome.agent.children), (caller.frame, vec![child]));
        assert_eq!(outcome.questions.iter().map(|question| question.id).collect::<Vec<_>>(), [second]);
        let error = agent(&testing::app(&store), "0000", &settings()).unwrap_err();
        assert_eq!(error.to_string(), "no agent or question matches `0000`");
    }
}
