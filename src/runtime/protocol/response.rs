//! The hook's answer, and what is recorded after `claude` has received it.

use crate::claude::tools::hook_input::HookAnswer;
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
    /// Records that `claude` has the answer. Not earlier: if the hook dies before, the call runs as a program, which must not
    /// make the request again.
    pub(crate) fn printed(self) -> Result<(), RuntimeError> {
        match self.returning {
            Some((store, caller)) => {
                let given = store.at_end(caller.frame, caller.attempt)?.given;
                let given: Vec<_> = given.iter().map(|given| given.request).collect();
                store.use_results(caller, ResultUse::Returned(&given))?;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Notices for the agent in addition to the result of the resumed call.
pub(super) fn notice(store: &Store, caller: Caller) -> Result<Option<String>, RuntimeError> {
    let attempt =
        store.attempts(Attempts::RunningOf(caller.frame))?.pop().filter(|attempt| attempt.id == caller.attempt);
    Ok(attempt.and_then(|attempt| attempt.notice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NewAttempt;
    use crate::store::testing::{self, attempt};

    #[test]
    fn an_agent_is_told_what_its_attempt_was_recorded_with_and_nothing_else() {
        let (_temp, store) = testing::store();
        let begun = |notice: Option<&str>| {
            let new = NewAttempt { notice: notice.map(str::to_owned), ..attempt(Vec::new()) };
            let frame = store.root();
            store.begin(frame, &new).unwrap();
            Caller { frame, attempt: new.id }
        };
        let (told, silent) = (begun(Some("its shell is elsewhere")), begun(None));
        assert_eq!(notice(&store, told).unwrap().as_deref(), Some("its shell is elsewhere"));
        assert_eq!(notice(&store, silent).unwrap(), None);
        let earlier = Caller { attempt: silent.attempt, ..told };
        assert_eq!(notice(&store, earlier).unwrap(), None, "of an attempt that is over");
    }
}
