//! An attempt's denied calls.

use crate::claude::stream::denials;
use crate::claude::stream::digest::Digest;
use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::transcript::reopen::NOT_RUN;
use crate::core::agent::denied_call::Denied;
use crate::core::chain::frame::Frame;
use crate::runtime::RuntimeError;
use crate::store::{Requests, Store};

/// The denied calls. Those that a person is asked about are recorded with the answer.
pub(super) fn denied(store: &Store, frame: &Frame, digest: &Digest) -> Result<Vec<Denied>, RuntimeError> {
    let mut listed = Vec::new();
    for denial in digest.denials.listed() {
        let may_be_made_again = denial.denied.said.starts_with(NOT_RUN) || denial.denied.tool == ASK_USER_QUESTION;
        if !may_be_made_again && store.requests(Requests::OfCall(frame.id, &denial.call))?.is_empty() {
            listed.push(denial);
        }
    }
    Ok(denials::recorded(listed, &digest.asking_hooks))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::claude::stream::output_reader;
    use crate::core::requests::request::RequestKind;
    use crate::store::testing;

    #[test]
    fn a_denied_call_is_listed_unless_it_may_be_made_again_or_a_person_is_asked() {
        let (_temp, store) = testing::store();
        let caller = store.start(store.root());
        let asked = RequestKind::Permission { tool: "Bash".into(), input: json!({}), reason: None, place: None };
        store.request(caller, Some("asked"), &[asked]).unwrap();
        let frame = store.frame(caller.frame).unwrap().unwrap();
        let calls = [
            ("denied", "Bash", "not this"),
            ("silent", "Write", ""),
            ("asked", "Bash", "not this"),
            ("beside", "Bash", NOT_RUN),
            ("question", ASK_USER_QUESTION, "nobody can be asked"),
        ];
        let result = |(call, _, said): &(&str, &str, &str)| json!({"type": "tool_result", "tool_use_id": call, "is_error": true, "content": said});
        let listed = |(call, tool, _): &(&str, &str, &str)| json!({"tool_use_id": call, "tool_name": tool, "tool_input": {"command": call}});
        let results = json!({"type": "user", "message": {"content": calls.iter().map(result).collect::<Vec<Value>>()}});
        let end = json!({"type": "result", "permission_denials": calls.iter().map(listed).collect::<Vec<Value>>()});
        let digest = output_reader::read(format!("{results}\n{end}\n").as_bytes()).unwrap();
        let found = denied(&store, &frame, &digest).unwrap();
        assert_eq!(found.iter().map(|denied| denied.input.as_str()).collect::<Vec<_>>(), ["denied", "silent"]);
    }
}
