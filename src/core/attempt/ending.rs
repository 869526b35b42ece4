//! How an attempt ended, according to its process and its output. The [decision](crate::core::attempt::decision) says
//! what follows.

use jiff::Timestamp;

/// What an attempt's process and output show at its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// Its turn ended with this text. The [record](crate::core::attempt::meaning) shows whether that is a reply.
    Reply(String),
    /// A hook suspended a tool call.
    Suspended,
    /// The account has reached its usage limit until a known time.
    UsageLimit {
        /// When the limit is lifted.
        resets_at: Timestamp,
        /// Whether the agent had worked in this attempt before it reached the limit.
        worked: bool,
    },
    /// The API is unreachable or overloaded, or it throttles requests, without saying until when.
    Unavailable {
        /// The message of `claude`, for people.
        why: String,
        /// Whether the agent had worked in this attempt.
        worked: bool,
    },
    /// `claude` refused before any work.
    Refused {
        /// Its message, for people.
        why: String,
        /// The reason of the refusal.
        objection: Objection,
    },
    /// An error after work: an API error, a budget, a limit of turns.
    Error(String),
    /// A person stopped it.
    Stopped {
        /// Whether the agent had worked in this attempt.
        worked: bool,
    },
    /// The system wanted its runner to end, for example because the machine shuts down. The agent itself was not stopped.
    ShutDown {
        /// Whether the agent had worked in this attempt.
        worked: bool,
    },
    /// The budget of its chain is spent. The agent was not to stop.
    OverBudget {
        /// Whether the agent had worked in this attempt.
        worked: bool,
    },
    /// The process ended without a result.
    Died {
        /// Whether the agent had worked in this attempt.
        worked: bool,
        /// How it ended, as far as known.
        how: String,
    },
}

/// Why `claude` refuses to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objection {
    /// The session does not exist.
    Session,
    /// A disk is full.
    Room,
    /// A cause that another way to continue would not remove: an option, the login, the model, the API.
    Start,
    /// The message names none of these. If the attempt tried to continue at a suspended call, `claude` may not support that.
    Unknown,
}
