//! The hook: Claude Code asks before and after each tool call of an agent that may be a request.
//!
//! A request is recorded, and its call suspended: `claude` saves the open call and exits. When the result is there, the
//! resumed `claude` asks about the same call again, and gets a command that returns the result. It asks once more when
//! that has run: what the agent sees then counts as the result, and the user's shell has no say in it.

use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::tools::exit_plan_mode::EXIT_PLAN_MODE;
use crate::claude::tools::hook::{HookAnswer, HookInput, POST_TOOL_USE};
use crate::runtime::protocol::command::{self, Typed};
use crate::runtime::protocol::{Asking, ProtocolError, plan, questions, schedule};
use crate::runtime::{RuntimeError, while_trying};
use crate::store::{Caller, Store};

/// What the hook answers.
#[derive(Debug)]
pub struct Answered {
    /// What `claude` is told.
    pub answer: HookAnswer,
    /// Of a resumed call that runs a program in its place.
    pub(super) returning: Option<(Store, Caller)>,
}

impl From<HookAnswer> for Answered {
    fn from(answer: HookAnswer) -> Self {
        Self { answer, returning: None }
    }
}

impl Answered {
    /// Records that `claude` was told. Not before: a hook that dies leaves the call to the program that it names, which must
    /// not ask a second time.
    ///
    /// # Errors
    ///
    /// Those of the state directory.
    pub fn printed(self) -> Result<(), RuntimeError> {
        match self.returning {
            Some((store, caller)) => Ok(store.returned(caller)?),
            None => Ok(()),
        }
    }
}

/// Answers what Claude Code has written to the hook's standard input. `parse` reads the words of a command of this program,
/// the program's name not among them.
///
/// # Errors
///
/// [`ProtocolError`] when there is nothing to say about the call.
pub fn answer(
    asking: &Asking,
    input: &[u8],
    parse: impl FnOnce(&[String]) -> Typed,
) -> Result<Answered, ProtocolError> {
    let input = HookInput::parse(input).map_err(|error| while_trying("read the hook's input")(error.into()))?;
    let is_over = input.hook_event_name.as_deref() == Some(POST_TOOL_USE);
    let answer = match (input.tool_name.as_deref(), is_over) {
        (Some(tool), _) if schedule::is_about(tool) => schedule::answer(asking, tool, is_over, &input)?,
        (Some(EXIT_PLAN_MODE), _) => plan::answer(asking, &input)?,
        (Some(ASK_USER_QUESTION), true) => questions::after(asking, &input)?,
        (Some(ASK_USER_QUESTION), false) => questions::before(asking, &input)?,
        (_, true) => command::after(asking, &input)?,
        (_, false) => return command::before(asking, &input, parse),
    };
    Ok(answer.into())
}

/// What the agent is told beside the result of the call that it is resumed at.
pub(super) fn notice(store: &Store, caller: Caller) -> Result<Option<String>, RuntimeError> {
    let attempt = store.running_attempt(caller.frame)?.filter(|attempt| attempt.id == caller.attempt);
    Ok(attempt.and_then(|attempt| attempt.notice))
}
