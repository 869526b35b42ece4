//! What the hook answers, and what is recorded once `claude` was told.

use crate::claude::tools::hook::HookAnswer;
use crate::runtime::RuntimeError;
use crate::store::{Caller, Store};

/// What the hook answers.
#[derive(Debug)]
pub(crate) struct HookResponse {
    /// What `claude` is told.
    pub answer: HookAnswer,
    /// Of a resumed call that runs a program in its place.
    pub(super) returning: Option<(Store, Caller)>,
}

impl From<HookAnswer> for HookResponse {
    fn from(answer: HookAnswer) -> Self {
        Self { answer, returning: None }
    }
}

impl HookResponse {
    /// Records that `claude` was told. Not before: a hook that dies leaves the call to the program that it names, which must
    /// not ask a second time.
    ///
    /// # Errors
    ///
    /// Those of the state directory.
    pub(crate) fn printed(self) -> Result<(), RuntimeError> {
        match self.returning {
            Some((store, caller)) => Ok(store.returned(caller)?),
            None => Ok(()),
        }
    }
}

/// What the agent is told beside the result of the call that it is resumed at.
pub(super) fn notice(store: &Store, caller: Caller) -> Result<Option<String>, RuntimeError> {
    let attempt = store.running_attempt(caller.frame)?.filter(|attempt| attempt.id == caller.attempt);
    Ok(attempt.and_then(|attempt| attempt.notice))
}
