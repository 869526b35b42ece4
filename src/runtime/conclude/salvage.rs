//! Determines how much of an attempt's conversation can be continued from.

use std::collections::HashSet;
use std::path::Path;

use crate::claude::stream::digest::Digest;
use crate::claude::transcript::salvaged_transcript::SalvagedTranscript;
use crate::core::attempt::delivery::one_for_each_batch;
use crate::core::attempt::salvaged::{Contents, Salvage, Signs};
use crate::core::chain::frame::Frame;
use crate::core::housekeeping::consistency::UsableLines;
use crate::core::id::RequestId;
use crate::core::requests::request::Delivery;
use crate::runtime::conclude::claude_output::Printed;
use crate::runtime::recovery::room;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::Store;
use crate::store::files::checkpoint;

/// The part of a conversation that can be continued from, and what is missing from it.
pub(super) struct Salvaged {
    pub(super) salvage: Salvage,
    /// The call at which the session is suspended.
    pub(super) suspended: Option<String>,
    /// The tool calls whose outcome is missing from the conversation.
    pub(super) uncertain_calls: Vec<String>,
    /// Results that calls of the attempt returned in time, but that the salvaged part of the conversation lacks.
    pub(super) lacks: Vec<RequestId>,
}

/// The results that an attempt was given.
#[derive(Clone, Copy)]
pub(super) struct Deliveries<'a> {
    /// When it began.
    pub(super) given: &'a [Delivery],
    /// While its calls lingered.
    pub(super) in_time: &'a [Delivery],
    /// The calls whose results the next attempt is given, because they have made requests.
    pub(super) to_come: &'a HashSet<String>,
}

/// Determines what can be continued from after the attempt of `frame` with this output. `last_message`: the id of the last message in
/// it.
pub(super) fn look(
    store: &Store,
    frame: &Frame,
    printed: &Printed,
    transcript: Option<&Path>,
    last_message: Option<&str>,
    deliveries: Deliveries<'_>,
) -> Result<Salvaged, RuntimeError> {
    let Printed { digest, was_killed, .. } = printed;
    let suspended = digest.suspended_call();
    let signs = Signs {
        has_result: digest.result.is_some(),
        was_killed: *was_killed,
        has_transcript: transcript.is_some(),
        has_no_room: transcript.is_none() && room::missing(frame).is_some(),
        is_cut: transcript
            .and_then(|file| checkpoint::lines(file).ok())
            .is_some_and(|lines| lines != UsableLines::Whole),
        is_suspended: suspended.is_some(),
    };
    let (salvage, salvaged) = match (signs.unread(), transcript) {
        (Some(salvage), _) => (salvage, SalvagedTranscript::default()),
        (None, None) => (Salvage::Nothing, SalvagedTranscript::default()),
        (None, Some(transcript)) => {
            let earlier = frame.continues().map(|kept| store.dir().checkpoint(kept.frame, kept.copy));
            let salvaged = SalvagedTranscript::from_file(transcript, earlier.as_deref())
                .map_err(while_trying("read the transcript"))?;
            (signs.salvage(contents(&salvaged, deliveries.given, last_message, suspended)), salvaged)
        }
    };
    let in_time =
        deliveries.in_time.iter().filter(|delivery| salvage == Salvage::Part && !salvaged.has_result(delivery));
    let lacks = in_time.map(|delivery| delivery.request).collect();
    Ok(Salvaged { lacks, ..Salvaged::new(salvage, &salvaged, digest, deliveries.to_come) })
}

/// What a transcript shows of an attempt that was given these results.
fn contents(
    salvaged: &SalvagedTranscript,
    given: &[Delivery],
    last_message: Option<&str>,
    suspended: Option<&str>,
) -> Contents {
    Contents {
        continues: salvaged.continues,
        has_deliveries: one_for_each_batch(given).iter().all(|given| salvaged.has_result(given)),
        has_end: last_message.is_none_or(|last| salvaged.has_line(last)),
        marks_suspension: suspended.is_some_and(|call| salvaged.suspended.contains(call)),
    }
}

impl Salvaged {
    fn new(salvage: Salvage, salvaged: &SalvagedTranscript, digest: &Digest, to_come: &HashSet<String>) -> Self {
        let suspended = digest.suspended_call();
        let digest = digest.without_calls(to_come);
        let (suspended, uncertain_calls) = match salvage {
            Salvage::Whole => (suspended, digest.unfinished_calls()),
            Salvage::Part => {
                let marked = suspended.filter(|call| salvaged.suspended.contains(*call));
                (marked, digest.uncertain_calls(&salvaged.answered))
            }
            Salvage::Nothing => (None, digest.uncertain_calls(&HashSet::new())),
        };
        Self { salvage, suspended: suspended.map(str::to_owned), uncertain_calls, lacks: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::claude::stream::output_reader;
    use crate::core::attempt::prompt;
    use crate::core::requests::question_form::Form;
    use crate::core::requests::request::{RequestKind, RequestResult};

    #[test]
    fn only_calls_whose_outcome_the_conversation_lacks_are_uncertain() {
        let call = |id: &str| {
            let tool = format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"{id}"}}}}"#);
            format!(r#"{{"type":"assistant","message":{{"content":[{tool}]}}}}"#)
        };
        let result =
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"done"}]}}"#;
        let digest = output_reader::read([call("a"), result.to_owned(), call("b")].join("\n").as_bytes()).unwrap();
        let salvaged = |answered: &[&str]| {
            let mut salvaged = SalvagedTranscript::default();
            salvaged.answered.extend(answered.iter().map(|id| (*id).to_owned()));
            salvaged
        };
        let uncertain = |salvage, answered: &[&str]| {
            Salvaged::new(salvage, &salvaged(answered), &digest, &HashSet::new()).uncertain_calls
        };
        assert_eq!(uncertain(Salvage::Whole, &[]), ["Bash: b"]);
        assert_eq!(uncertain(Salvage::Part, &["a"]), ["Bash: b"]);
        assert_eq!(uncertain(Salvage::Part, &[]), ["Bash: a", "Bash: b"]);
        assert_eq!(uncertain(Salvage::Nothing, &["a"]), ["Bash: a", "Bash: b"]);
        let to_come = HashSet::from(["b".to_owned()]);
        for salvage in [Salvage::Whole, Salvage::Part, Salvage::Nothing] {
            let known = Salvaged::new(salvage, &salvaged(&["a"]), &digest, &to_come).uncertain_calls;
            assert!(!known.contains(&"Bash: b".to_owned()), "{salvage:?}: {known:?}");
        }
    }

    #[test]
    fn a_call_stays_suspended_only_if_the_salvaged_conversation_marks_it() {
        let call =
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}}"#;
        let result = r#"{"type":"result","subtype":"success","is_error":false,"stop_reason":"tool_deferred","deferred_tool_use":{"id":"a","name":"Bash","input":{}}}"#;
        let digest = output_reader::read([call, result].join("\n").as_bytes()).unwrap();
        assert_eq!(digest.suspended_call(), Some("a"));
        let mut marks = SalvagedTranscript::default();
        marks.suspended.insert("a".to_owned());
        let suspended = |salvage, salvaged: &SalvagedTranscript| {
            Salvaged::new(salvage, salvaged, &digest, &HashSet::new()).suspended
        };
        assert_eq!(suspended(Salvage::Whole, &SalvagedTranscript::default()).as_deref(), Some("a"));
        assert_eq!(suspended(Salvage::Part, &marks).as_deref(), Some("a"));
        assert_eq!(suspended(Salvage::Part, &SalvagedTranscript::default()), None);
        assert_eq!(suspended(Salvage::Nothing, &marks), None);
    }

    /// How an agent is given the result of a call.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Given {
        /// The call returns it.
        ByItsCall,
        InThePrompt,
        /// In the prompt, because the call has returned something else.
        AfterAnotherResult,
    }

    /// A session that was forked and given results, as `claude` would write it.
    #[derive(Debug)]
    struct Session {
        history: Vec<Value>,
        /// What the agent was given.
        given: Vec<Value>,
        /// What it has done since then.
        done: Vec<Value>,
        deliveries: Vec<Delivery>,
    }

    impl Session {
        fn new(results: &[Given], is_told_something: bool, messages: usize) -> Self {
            let user =
                |name: &str, content: Value| json!({"type": "user", "uuid": name, "message": {"content": content}});
            let says = |name: String, block: Value| json!({"type": "assistant", "uuid": name, "message": {"id": name, "content": [block]}});
            let returns =
                |call: &str, text: &str| json!([{"type": "tool_result", "tool_use_id": call, "content": text}]);
            let mut session = Self {
                history: vec![user("task", json!("go"))],
                given: Vec::new(),
                done: Vec::new(),
                deliveries: Vec::new(),
            };
            let mut in_prompt = Vec::new();
            for (at, how) in results.iter().enumerate() {
                let call = format!("call{at}");
                session
                    .history
                    .push(says(format!("asks{at}"), json!({"type": "tool_use", "id": call, "name": "Bash"})));
                let delivery = Delivery {
                    request: RequestId(Uuid::from_u128((at as u128) << 96)),
                    call: Some(call.clone()),
                    kind: RequestKind::Ask(Form::text("When?")),
                    result: RequestResult::Text(format!("answer {at}")),
                };
                match how {
                    Given::ByItsCall => {
                        session.given.push(user(&format!("result{at}"), returns(&call, &format!("answer {at}"))));
                    }
                    Given::InThePrompt => in_prompt.push(delivery.clone()),
                    Given::AfterAnotherResult => {
                        session.history.push(user(&format!("other{at}"), returns(&call, "Exit code 137")));
                        in_prompt.push(delivery.clone());
                    }
                }
                session.deliveries.push(delivery);
            }
            if is_told_something || !in_prompt.is_empty() {
                let mut meta = user("meta", json!("Continue from where you left off."));
                meta["isMeta"] = true.into();
                session.given.push(meta);
                session.given.push(user("prompt", json!(prompt::resume(&in_prompt, &["It was killed.".to_owned()]))));
            }
            session.done =
                (0..messages).map(|at| says(format!("done{at}"), json!({"type": "text", "text": "so"}))).collect();
            session
        }

        /// As an older version writes it.
        fn forget_names(&mut self) {
            for line in self.history.iter_mut().chain(&mut self.given).chain(&mut self.done) {
                line.as_object_mut().unwrap().remove("uuid");
            }
        }

        fn last_message(&self) -> Option<&str> {
            self.done.last().and_then(|message| message["uuid"].as_str())
        }
    }

    fn text<'a>(lines: impl IntoIterator<Item = &'a Value>) -> String {
        lines.into_iter().map(|line| format!("{line}\n")).collect()
    }

    proptest! {
        #[test]
        fn what_is_continued_from_has_all_that_the_agent_was_given(
            results in prop::collection::vec(prop_oneof![Just(Given::ByItsCall), Just(Given::InThePrompt), Just(Given::AfterAnotherResult)], 0..4),
            // Without names, a prompt without results looks like one of the history.
            (is_named, is_told_something) in prop_oneof![Just((true, true)), Just((true, false)), Just((false, false))],
            messages in 0..4_usize,
            cut in prop_oneof![Just(1.0), 0.0..1.0_f64],
            is_at_the_end_of_a_line: bool,
            (has_result, was_killed) in prop_oneof![Just((true, true)), Just((false, true)), Just((false, false))],
        ) {
            let folder = tempfile::tempdir().unwrap();
            let file = |name: &str, text: &str| {
                fs::write(folder.path().join(name), text).unwrap();
                folder.path().join(name)
            };
            let mut session = Session::new(&results, is_told_something, messages);
            let has_prompt = session.given.iter().any(|line| line["uuid"] == "prompt");
            if !is_named {
                session.forget_names();
            }
            let Session { history, given, done, deliveries } = &session;
            let all = text(history.iter().chain(given).chain(done));
            #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "a place in a short text")]
            let at = (all.len() as f64 * cut) as usize;
            let written = if is_at_the_end_of_a_line { all[..at].rfind('\n').map_or("", |end| &all[..=end]) } else { &all[..at] };
            let has = |until: &str| written.len() >= until.len();
            let (earlier, transcript) = (file("earlier", &text(history)), file("transcript", written));
            let is_cut = checkpoint::lines(&transcript).unwrap() != UsableLines::Whole;
            let signs = Signs { has_result, was_killed, has_transcript: true, has_no_room: false, is_cut, is_suspended: false };
            let salvaged = SalvagedTranscript::from_file(&transcript, Some(&earlier)).unwrap();
            let salvage = signs.unread().unwrap_or_else(|| signs.salvage(contents(&salvaged, deliveries, session.last_message(), None)));
            let was_given = has(&text(history.iter().chain(given)));
            match salvage {
                Salvage::Whole => prop_assert!(has_result && if is_named { has(&all) } else { was_given }, "{written}"),
                Salvage::Part => prop_assert!(was_given, "{written}"),
                Salvage::Nothing => prop_assert!(!has(&all) || !has_prompt && done.is_empty(), "{written}"),
            }
        }
    }
}
