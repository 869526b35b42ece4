//! Sends a message to a running or waiting agent.

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::{AppError, Refusal};
use crate::app::lookup;
use crate::app::view::outcome::{Arrival, ToldView};
use crate::core::chain::frame::Frame;
use crate::core::id::{FrameId, MessageId};
use crate::core::steering::message::MessageSender;
use crate::core::steering::stop_order::By;
use crate::runtime::steering::tell::{self, Arrives};
use crate::store::{Store, StoreError};

/// A text for an agent. It is read only after all other checks have passed, because a person may have to type it.
pub(crate) type DeferredText = Box<dyn FnOnce() -> Result<String, AppError>>;

pub(crate) struct Input {
    pub(crate) id: String,
    pub(crate) text: DeferredText,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) message: MessageId,
    pub(crate) agent: FrameId,
    pub(crate) arrives: Arrives,
}

/// The size limit of a message, in bytes. Instructions have the same limit.
const LARGEST: usize = 1 << 20;

pub(crate) fn tell(app: &App<'_>, input: Input) -> Result<Outcome, AppError> {
    // An agent finds only those that it has started.
    if app.asker.agent.is_none() {
        app.asker.may(PersonsTask::Tell)?;
    }
    let agent = agent(app.store, lookup::frame_named(app, &input.id)?)?;
    if app.asker.agent.is_some_and(|caller| caller.frame == agent.id) {
        let refusal = Refusal::new("an agent cannot tell itself anything");
        return Err(refusal.hint("name an agent that it has started: agent-cli tree shows them").into());
    }
    if agent.state.is_over() {
        return Err(StoreError::IsOver(agent.id).into());
    }
    let text = read(input.text, &format!("agent-cli tell {}", agent.id.short()))?;
    let (message, arrives) = tell::tell(app.store, &agent, &text, &sender(app))?;
    Ok(Outcome { message, agent: agent.id, arrives })
}

/// Returns the agent with this id. Refuses groups, which cannot read messages.
pub(crate) fn agent(store: &Store, id: FrameId) -> Result<Frame, AppError> {
    let frame = store.frame(id)?.ok_or(StoreError::UnknownFrame(id))?;
    if frame.task.is_group() {
        let refusal = Refusal::new(format!("{} is a group of agents", id.short()));
        return Err(refusal.hint(format!("agent-cli tree {} shows them: name one of them", id.short())).into());
    }
    Ok(frame)
}

/// The sender that the agent is told.
pub(crate) fn sender(app: &App<'_>) -> MessageSender {
    let by = app.asker.agent.map_or(By::Person, |caller| By::Agent(caller.frame));
    MessageSender { by, origin: app.asker.origin.clone() }
}

/// Reads the text, and checks whether it can be given to an agent. `command` takes the text as its last argument.
pub(crate) fn read(text: DeferredText, command: &str) -> Result<String, AppError> {
    let text = text()?;
    match text.len() {
        _ if text.trim().is_empty() => {
            let hint = format!("{command} TEXT sends one; TEXT can be `-` for standard input");
            Err(Refusal::new("the text is empty").hint(hint).into())
        }
        length if length > LARGEST => {
            let refusal = Refusal::new(format!("the text has {length} bytes, where 1 MiB is allowed"));
            Err(refusal.hint("write it to a file, and name the file to the agent").into())
        }
        _ => Ok(text),
    }
}

impl Outcome {
    pub(crate) fn view(&self) -> ToldView {
        let arrives = match self.arrives {
            Arrives::NextCall => Arrival::NextCall,
            Arrives::NextWakeUp => Arrival::NextWakeUp,
        };
        ToldView { id: self.message, agent: self.agent, arrives }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Asker, testing};
    use crate::store;
    use crate::store::testing::{group, new, reply};

    fn input(id: FrameId, text: &str) -> Input {
        let text = text.to_owned();
        Input { id: id.to_string(), text: Box::new(|| Ok(text)) }
    }

    fn unread(id: FrameId) -> Input {
        Input { id: id.to_string(), text: Box::new(|| panic!("it is not read")) }
    }

    #[test]
    fn an_agent_gets_the_text_and_who_wrote_it() {
        let (_temp, store) = store::testing::store();
        let waits = store.asking("When?").0;
        let mut asker = Asker::default();
        asker.origin.process = 42;
        let app = App { asker, ..testing::app(&store) };
        let told = tell(&app, input(waits, " Use the test server.\n")).unwrap().view();
        assert_eq!((told.agent, told.arrives), (waits, Arrival::NextWakeUp));
        let message = store.steering(waits).unwrap().messages.remove(0);
        assert_eq!((message.id, message.text.as_str()), (told.id, " Use the test server.\n"));
        let sender = message.sender.unwrap();
        assert_eq!((sender.by, sender.origin.process), (By::Person, 42));
        let runs = store.start(store.root()).frame;
        assert_eq!(tell(&app, input(runs, "x")).unwrap().view().arrives, Arrival::NextCall);
    }

    #[test]
    fn what_agents_left_running_tells_nothing() {
        let (_temp, store) = store::testing::store();
        let waits = store.asking("When?").0;
        let app = App { asker: Asker { runner: Some(7), ..Asker::default() }, ..testing::app(&store) };
        let refused = tell(&app, unread(waits)).unwrap_err();
        assert_eq!(refused.to_string(), "agents can send messages only to agents that they have started");
    }

    #[test]
    fn an_agent_tells_only_those_below_it() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("a task"), "a task").unwrap();
        let app = App { asker: Asker { agent: Some(caller), ..Asker::default() }, ..testing::app(&store) };
        let itself = tell(&app, unread(caller.frame)).unwrap_err();
        assert_eq!(itself.to_string(), "an agent cannot tell itself anything");
        tell(&app, unread(store.root())).unwrap_err();
        tell(&app, input(child, "x")).unwrap();
        assert_eq!(store.steering(child).unwrap().messages.remove(0).sender.unwrap().by, By::Agent(caller.frame));
    }

    #[test]
    fn neither_a_group_nor_an_agent_that_has_ended_is_told_anything() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        let caller = store.start(store.root());
        let (_, group) = store.request_child(caller, None, &group(&["one", "other"]), "one other").unwrap();
        let refused = tell(&app, unread(group)).unwrap_err().to_string();
        assert_eq!(refused, format!("{} is a group of agents", group.short()));
        let done = store.start(store.root());
        store.end(done, &reply("done"));
        let refused = tell(&app, unread(done.frame)).unwrap_err();
        assert!(matches!(refused, AppError::Store(StoreError::IsOver(id)) if id == done.frame), "{refused}");
    }

    #[test]
    fn a_text_is_neither_empty_nor_endless() {
        let (_temp, store) = store::testing::store();
        let agent = store.asking("When?").0;
        let app = testing::app(&store);
        let refused = |text: &str| tell(&app, input(agent, text)).unwrap_err().to_string();
        assert_eq!(refused(" \n"), "the text is empty");
        assert_eq!(refused(&"x".repeat(LARGEST + 1)), "the text has 1048577 bytes, where 1 MiB is allowed");
        tell(&app, input(agent, &"x".repeat(LARGEST))).unwrap();
    }
}
