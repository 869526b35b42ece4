//! Requests of agents. An agent either runs this program, or has its tool call suspended until the result is available.

pub(crate) mod ask;
pub(crate) mod form_input;
pub(crate) mod wait;

use std::io::Read;

use crate::app::error::{AppError, Refusal};
use crate::app::lookup::LookedUp;
use crate::app::{App, spawn};
use crate::runtime::requests::agent_request::AgentRequest;
use crate::store::{Caller, Requests, Target};

#[derive(Clone, Debug)]
pub(crate) enum Input {
    Spawn(Box<spawn::Input>),
    Ask(Box<ask::Input>),
    Wait(wait::Input),
}

#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The recorded request, or the agent that it starts.
    Recorded(Target),
    /// An agent that works in the caller's background.
    InBackground(Target),
    /// The same call made this request before it was resumed.
    MadeBefore(LookedUp),
}

/// The agent that asks.
pub(crate) fn caller(agent: Option<Caller>, input: &Input) -> Result<Caller, Refusal> {
    agent.ok_or_else(|| match input {
        Input::Ask(_) => Refusal::new("only agents can ask: this shell was not started by agent-cli")
            .hint("agent-cli questions lists what agents have asked"),
        Input::Wait(_) => Refusal::new("only agents can wait: this shell was not started by agent-cli")
            .hint("agent-cli spawn FILE starts an agent, which can"),
        Input::Spawn(_) => Refusal::new("only agents can request an agent"),
    })
}

/// Builds the agent's request, with the content of the files that it names. Records nothing.
pub(crate) fn resolve(
    app: &App<'_>,
    input: Input,
    standard_input: &mut dyn Read,
) -> Result<(Caller, AgentRequest), AppError> {
    let caller = caller(app.asker.agent, &input)?;
    let request = match input {
        Input::Spawn(input) => spawn::request(app, caller, *input, standard_input),
        Input::Ask(input) => ask::request(app, caller, *input, standard_input),
        Input::Wait(input) => wait::request(app, caller, input),
    };
    Ok((caller, request?))
}

/// Records the agent's request, unless the same call has made it before.
pub(crate) fn make(app: &App<'_>, input: Input, standard_input: &mut dyn Read) -> Result<Outcome, AppError> {
    let (caller, request) = resolve(app, input, standard_input)?;
    if request.returns_at_once() {
        return Ok(Outcome::InBackground(request.record(app.store, caller, None)?));
    }
    if let Some(made) = request.made_before(app.store, caller)? {
        let known = app.store.requests(Requests::One(made))?.pop();
        return Ok(match known {
            Some((request, result @ Some(_))) => {
                Outcome::MadeBefore(LookedUp { target: Target::from_request(&request), result })
            }
            Some((request, None)) => Outcome::Recorded(Target::from_request(&request)),
            None => Outcome::Recorded(Target::Request(made)),
        });
    }
    Ok(Outcome::Recorded(request.record(app.store, caller, None)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Asker, GivenText, testing};
    use crate::core::requests::request::RequestKind;
    use crate::store::{self, Requests};

    fn ask(question: &str) -> Input {
        let question = Some(GivenText::Text(question.to_owned()));
        Input::Ask(Box::new(ask::Input { question, ..ask::Input::default() }))
    }

    #[test]
    fn a_person_makes_no_requests() {
        let (_temp, store) = store::testing::store();
        let refused = |input| make(&testing::app(&store), input, &mut std::io::empty()).unwrap_err().to_string();
        assert_eq!(refused(ask("When?")), "only agents can ask: this shell was not started by agent-cli");
        let wait = Input::Wait(wait::Input::default());
        assert_eq!(refused(wait), "only agents can wait: this shell was not started by agent-cli");
        let spawn = Input::Spawn(Box::default());
        assert_eq!(refused(spawn), "only agents can request an agent");
    }

    #[test]
    fn a_request_is_recorded_for_the_agent_that_makes_it() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let asker = Asker { agent: Some(caller), ..Asker::default() };
        let app = App { asker, ..testing::app(&store) };
        let Outcome::Recorded(Target::Request(id)) = make(&app, ask("When?"), &mut std::io::empty()).unwrap() else {
            panic!("it was not made before")
        };
        let (request, result) = store.requests(Requests::One(id)).unwrap().pop().unwrap();
        assert!(matches!(request.kind, RequestKind::Ask(form) if form.question == "When?"));
        assert_eq!(result, None);
        let until = jiff::Timestamp::from_second(5).ok();
        let wait = Input::Wait(wait::Input { until, ..wait::Input::default() });
        assert!(matches!(make(&app, wait, &mut std::io::empty()), Ok(Outcome::Recorded(Target::Request(_)))));
    }
}
