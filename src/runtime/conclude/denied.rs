//! An attempt's denied calls.

use crate::claude::stream::digest::Digest;
use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::tools::denied;
use crate::claude::transcript::reopen::NOT_RUN;
use crate::core::agent::denied::Denied;
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
    Ok(denied::recorded(listed, &digest.asking_hooks))
}
