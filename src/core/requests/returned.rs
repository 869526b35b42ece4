//! What the tool call behind a request returned.

/// What a tool call has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Claude's id of the call.
    pub call: String,
    /// What the agent sees of it.
    pub text: String,
    /// Whether it is an error.
    pub is_error: bool,
}
