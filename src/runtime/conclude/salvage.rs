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
        (Some(salvage), _) => (salvage, None),
        (None, None) => (Salvage::Nothing, None),
        (None, Some(transcript)) => {
            let earlier = frame.continues().map(|kept| store.dir().checkpoint(kept.frame, kept.copy));
            let salvaged = SalvagedTranscript::from_file(transcript, earlier.as_deref())
                .map_err(while_trying("read the transcript"))?;
            let contents = Contents {
                continues: salvaged.continues,
                has_deliveries: one_for_each_batch(deliveries.given).iter().all(|given| salvaged.has_result(given)),
                has_end: last_message.is_none_or(|last| salvaged.has_line(last)),
                marks_suspension: suspended.is_some_and(|call| salvaged.suspended.contains(call)),
            };
            (signs.salvage(contents), Some(salvaged))
        }
    };
    let salvaged = salvaged.unwrap_or_default();
    let in_time =
        deliveries.in_time.iter().filter(|delivery| salvage == Salvage::Part && !salvaged.has_result(delivery));
    let lacks = in_time.map(|delivery| delivery.request).collect();
    Ok(Salvaged { lacks, ..Salvaged::new(salvage, &salvaged, digest, deliveries.to_come) })
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
    use super::*;
    use crate::claude::stream::output_reader;

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
}
