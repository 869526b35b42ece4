//! What an attempt's agent was told apart from results: words in it are not the agent's own.

use std::fs::File;
use std::io::Read;

use crate::core::attempt::prompt;
use crate::core::chain::frame::{Frame, Task};
use crate::core::requests::request::Delivery;
use crate::core::steering::message::Message;

/// No agent reads more of its instructions at once.
const MOST_INSTRUCTIONS: u64 = 1024 * 1024;

/// The texts in the prompt of an attempt of `frame` that was given `deliveries`.
pub(super) fn texts(frame: &Frame, deliveries: &[Delivery], messages: &[Message]) -> Vec<String> {
    let scheduled = deliveries.iter().filter_map(|delivery| Some(delivery.kind.scheduled()?.prompt.clone()));
    let trouble = frame.trouble.as_ref().map(prompt::of_trouble);
    let task = frame.checkpoint.is_none().then(|| task(frame));
    let told = messages.iter().map(|message| message.text.clone());
    scheduled.chain(trouble).chain(task).chain(told).collect()
}

/// The task in a frame's first prompt, or the content of the file that the prompt names.
fn task(frame: &Frame) -> String {
    match &frame.task {
        Task::Prompt(text) => text.clone(),
        Task::File(path) => {
            let mut text = Vec::new();
            // An agent cannot have repeated anything from a file that is no longer readable.
            let _ = File::open(path).and_then(|file| file.take(MOST_INSTRUCTIONS).read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        }
        Task::Group(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chain::frame::Trouble;
    use crate::core::id::AttemptId;
    use crate::store::testing;

    #[test]
    fn an_agent_was_given_its_task_only_at_the_beginning_of_its_conversation() {
        let (temp, store) = testing::store();
        let frame = store.frame(store.root()).unwrap().unwrap();
        let of =
            |task: Task, checkpoint: Option<AttemptId>| texts(&Frame { task, checkpoint, ..frame.clone() }, &[], &[]);
        let file = temp.path().join("ins.md");
        std::fs::write(&file, "Say SGN_PEND_STARTED.").unwrap();
        assert_eq!(of(Task::File(file.clone()), None), ["Say SGN_PEND_STARTED."]);
        assert_eq!(of(Task::File(file), Some(AttemptId::random())), [""; 0]);
        assert_eq!(of(Task::Prompt("do it".into()), None), ["do it"]);
        assert_eq!(of(Task::File(temp.path().join("gone")), None), [""]);
    }

    #[test]
    fn what_went_wrong_and_what_others_say_is_given_too() {
        let (_temp, store) = testing::store();
        let frame = store.frame(store.root()).unwrap().unwrap();
        let trouble = Trouble { what: "it was killed".into(), ..Trouble::default() };
        let frame = Frame { trouble: Some(trouble), checkpoint: Some(AttemptId::random()), ..frame };
        let given = texts(&frame, &[], &[]);
        assert!(given.len() == 1 && given[0].contains("it was killed"), "{given:?}");
    }
}
