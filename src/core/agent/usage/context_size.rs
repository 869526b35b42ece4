//! How much of its model's context window a conversation takes.

/// The size of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// How many tokens its last request sent and received.
    pub tokens: u64,
    /// How many its model takes.
    pub window: u64,
}
