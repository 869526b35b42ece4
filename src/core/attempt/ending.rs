//! How an attempt ended, as its process and what it printed show. What that does, a [`decision`](crate::core::attempt::decision)
//! says.

use jiff::Timestamp;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// Its turn came to an end with this text. Whether that is a reply, the [record](crate::core::attempt::meaning) tells.
    Reply(String),
    /// A hook suspended a tool call.
    Suspended,
    /// The account is over its usage limit until a known time.
    UsageLimit {
        /// When the limit is lifted.
        resets_at: Timestamp,
        /// Whether the agent had worked in this attempt before it met the limit.
        worked: bool,
    },
    /// The API cannot be reached, is overloaded, or wants fewer requests, and does not say until when.
    Unavailable {
        /// What `claude` said, for people.
        why: String,
        /// Whether the agent had worked in this attempt.
        worked: bool,
    },
    /// `claude` refused before any work.
    Refused {
        /// What it said, for people.
        why: String,
        /// What it objects to.
        objection: Objection,
    },
    /// An error after work: an API error, a budget, a limit of turns.
    Error(String),
    /// A person stopped it.
    Stopped {
        /// Whether the agent had worked in this attempt.
        worked: bool,
    },
    /// The process ended without a result.
    Died {
        /// Whether the agent had worked in this attempt.
        worked: bool,
        /// How it ended, as far as that is known.
        how: String,
    },
}

/// What `claude` objects to when it refuses to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objection {
    /// There is no such session.
    Session,
    /// Something that another way to continue would not change: an option, the login, the model, the API.
    Start,
    /// It names nothing of this kind. Where it was to go on at a suspended call, that may be what it cannot do.
    Unknown,
}
