//! What the tool call behind a request returned.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    /// Claude's id of the call.
    pub call: String,
    /// The text that the agent sees.
    pub text: String,
    pub is_error: bool,
}
