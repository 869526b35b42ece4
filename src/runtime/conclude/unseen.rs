//! Determines which delivered results the agent did not see, and which texts it may repeat.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

use crate::claude::stream::digest::Digest;
use crate::claude::stream::output_reader;
use crate::claude::tools::ask_user_question;
use crate::claude::transcript::salvaged_transcript;
use crate::core::attempt::prompt;
use crate::core::chain::frame::{Frame, Task};
use crate::core::id::RequestId;
use crate::core::requests::request::{Delivery, RequestKind, RequestResult, Returned};
use crate::core::steering::message::Message;

/// The requests whose results the agent did not see although their call was resumed to return them: a user's hook can deny,
/// rewrite or suspend the call, and a rule can deny the command that returns it.
///
/// `shown`: the requests whose call has returned the result, whatever a user's hook let the agent see. `lost`: the call
/// whose result was provided from outside and is missing from the conversation.
pub(super) fn unseen(
    deliveries: &[Delivery],
    digest: &Digest,
    shown: &[RequestId],
    lost: Option<&str>,
) -> Vec<RequestId> {
    let suspended_again = digest.result.as_ref().and_then(|result| result.deferred_call.as_ref());
    let returned = digest.returned.as_ref();
    let of_call = |delivery: &&Delivery| returned.is_some_and(|back| delivery.call.as_ref() == Some(&back.call));
    // An approved call returns the tool's own result.
    let results = || deliveries.iter().filter(|delivery| !matches!(delivery.kind, RequestKind::Permission { .. }));
    let is_in = |delivery: &Delivery| returned.is_some_and(|back| delivery.result.is_in(back));
    let is_seen = results().filter(of_call).all(is_in) || returned.is_some_and(|back| is_denied_with(deliveries, back));
    let unseen = results().filter(|delivery| !shown.contains(&delivery.request)).filter(|delivery| {
        let again = suspended_again.is_some() && delivery.call.as_ref() == suspended_again;
        let is_lost = lost.is_some() && delivery.call.as_deref() == lost;
        again || is_lost || (!is_seen && of_call(delivery))
    });
    unseen.map(|delivery| delivery.request).collect()
}

/// The requests whose results the agent did not see although the calls that made them lingered until the results were
/// available. `output`: the output of its `claude`.
pub(super) fn unseen_in_time<R: BufRead>(
    in_time: &[Delivery],
    shown: &[RequestId],
    output: impl Fn() -> io::Result<R>,
) -> io::Result<Vec<RequestId>> {
    let mut unseen = Vec::new();
    // An approved call returns the tool's own result, and a denied call only the reason.
    let is_said = |delivery: &&Delivery| !matches!(delivery.kind, RequestKind::Permission { .. });
    for delivery in in_time.iter().filter(is_said).filter(|delivery| !shown.contains(&delivery.request)) {
        let returned = delivery.call.as_ref().map(|call| output_reader::returned(output()?, call)).transpose()?;
        if !returned.flatten().is_some_and(|returned| delivery.result.is_in(&returned)) {
            unseen.push(delivery.request);
        }
    }
    Ok(unseen)
}

/// The requests whose results the agent has looked up, although no call in its conversation has returned them: a program records that
/// it has printed a result, and the command around it may have been cut short.
pub(super) fn unseen_looked_up(looked_up: &[Delivery], transcript: Option<&Path>) -> io::Result<Vec<RequestId>> {
    let mut unseen = Vec::new();
    for delivery in looked_up {
        let is_seen = transcript.map(|transcript| salvaged_transcript::shows(transcript, delivery)).transpose()?;
        if is_seen != Some(true) {
            unseen.push(delivery.request);
        }
    }
    Ok(unseen)
}

/// Whether a call of Claude Code's own tool for questions returned the existing answers and that some questions were not
/// answered.
fn is_denied_with(deliveries: &[Delivery], returned: &Returned) -> bool {
    let of_call = deliveries.iter().filter(|delivery| delivery.call.as_ref() == Some(&returned.call));
    let results: Option<Vec<_>> =
        of_call.map(|delivery| Some((delivery.kind.native_question()?, &delivery.result))).collect();
    let is_unanswered = |(_, result): &(&str, &RequestResult)| matches!(result, RequestResult::Unanswered { .. });
    results.filter(|results| results.iter().any(is_unanswered)).is_some_and(|results| {
        returned.is_error && returned.text.contains(ask_user_question::denial(&results).as_str())
    })
}

/// No agent reads more of its instructions at once.
const MOST_INSTRUCTIONS: u64 = 1024 * 1024;

/// The texts in the prompt of an attempt of `frame` that was given `deliveries`.
pub(super) fn texts(frame: &Frame, deliveries: &[Delivery], messages: &[Message]) -> Vec<String> {
    let scheduled = deliveries.iter().filter_map(|delivery| Some(delivery.kind.scheduled()?.prompt.clone()));
    let trouble = prompt::of_last_attempt(frame);
    let task = frame.checkpoint.is_none().then(|| task(frame));
    let summary = frame.summary().map(str::to_owned);
    let told = messages.iter().map(|message| message.text.clone());
    scheduled.chain(trouble).chain(task).chain(summary).chain(told).collect()
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
    use crate::claude::stream::event::ResultEvent;
    use crate::core::chain::frame::Trouble;
    use crate::core::id::AttemptId;
    use crate::core::requests::question_form::Form;
    use crate::store::testing;

    fn delivery(call: &str, text: &str) -> Delivery {
        Delivery {
            request: RequestId::random(),
            call: Some(call.to_owned()),
            kind: RequestKind::Ask(Form::text("When?")),
            result: RequestResult::Text(text.into()),
        }
    }

    fn returned(call: &str, text: &str, is_error: bool) -> Digest {
        Digest { returned: Some(Returned { call: call.into(), text: text.into(), is_error }), ..Digest::default() }
    }

    #[test]
    fn a_result_is_unseen_where_its_call_returned_something_else() {
        let delivery = delivery("t1", "Jan 1st");
        for (digest, is_unseen) in [
            (Digest::default(), false),
            (returned("t1", "Jan 1st", false), false),
            (returned("t1", "denied by a hook", true), true),
            (returned("t1", "another command's output", false), true),
            (returned("t2", "of another call", false), false),
        ] {
            let expected = if is_unseen { vec![delivery.request] } else { vec![] };
            assert_eq!(unseen(std::slice::from_ref(&delivery), &digest, &[], None), expected, "{digest:?}");
            assert_eq!(unseen(std::slice::from_ref(&delivery), &digest, &[delivery.request], None), []);
        }
    }

    #[test]
    fn one_result_of_a_call_that_is_not_there_makes_all_of_them_unseen() {
        let both = [delivery("t1", "Jan 1st"), delivery("t1", "Ann")];
        let requests = [both[0].request, both[1].request];
        assert_eq!(unseen(&both, &returned("t1", "Jan 1st", false), &[], None), requests);
        assert_eq!(unseen(&both, &returned("t1", "Jan 1st, Ann", false), &[], None), []);
    }

    #[test]
    fn a_call_that_was_suspended_again_has_returned_nothing() {
        let delivery = delivery("t1", "Jan 1st");
        let result = ResultEvent { deferred_call: Some("t1".into()), ..ResultEvent::default() };
        let digest = Digest { result: Some(result), ..Digest::default() };
        assert_eq!(unseen(std::slice::from_ref(&delivery), &digest, &[], None), [delivery.request]);
        let permission =
            RequestKind::Permission { tool: "Bash".into(), input: serde_json::Value::Null, reason: None, place: None };
        assert_eq!(unseen(&[Delivery { kind: permission, ..delivery }], &digest, &[], None), []);
    }

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
