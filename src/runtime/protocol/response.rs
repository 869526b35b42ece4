//! The hook's answer, and what is recorded once `claude` has received it.

use crate::claude::tools::hook::HookAnswer;
use crate::runtime::RuntimeError;
use crate::store::{Attempts, Caller, ResultUse, Store};

/// The hook's answer.
#[derive(Debug)]
pub(crate) struct HookResponse {
    /// The text for `claude`.
    pub answer: HookAnswer,
    /// For a resumed call that runs a program in its place.
    pub(super) returning: Option<(Store, Caller)>,
}

impl From<HookAnswer> for HookResponse {
    fn from(answer: HookAnswer) -> Self {
        Self { answer, returning: None }
    }
}

impl HookResponse {
    /// Records that `claude` has the answer. Not earlier: if a hook dies before, the call runs as a program, which must not ask a
    /// second time.
    pub(crate) fn printed(self) -> Result<(), RuntimeError> {
        match self.returning {
            Some((store, caller)) => Ok(store.use_results(caller, ResultUse::Returned(&|_| true)).map(drop)?),
            None => Ok(()),
        }
    }
}

/// Notices for the agent beside the result of the resumed call.
pub(super) fn notice(store: &Store, caller: Caller) -> Result<Option<String>, RuntimeError> {
    let attempt =
        store.attempts(Attempts::RunningOf(caller.frame))?.pop().filter(|attempt| attempt.id == caller.attempt);
    Ok(attempt.and_then(|attempt| attempt.notice))
}
