//! The end of an attempt, and what was recorded until then.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use crate::core::agent::denied_call::Denied;
use crate::core::agent::situation::Situation;
use crate::core::agent::usage::{Spending, Totals};
use crate::core::attempt::decision::Decision;
use crate::core::chain::frame_state::FrameState;
use crate::core::id::{AttemptId, FrameId, MessageId, RequestId, SessionId};
use crate::core::requests::request::Delivery;
use crate::core::steering::message::Message;
use crate::core::steering::stop_order::Stop;

/// How an attempt ended, and what follows from it.
#[derive(Clone, Debug)]
pub struct AttemptEnd<'a> {
    /// The frame.
    pub frame: FrameId,
    /// The attempt.
    pub attempt: AttemptId,
    /// What its end does.
    pub decision: &'a Decision,
    /// When it ended, if that was seen only later; `None`: now.
    pub ended: Option<Timestamp>,
    /// For how long it ran, if that was measured.
    pub ran: Option<Duration>,
    /// What it spent.
    pub spending: Spending,
    /// What its session had spent then. A fork of it may count on from there.
    pub total: Totals,
    /// The model that it ran with, which the frame keeps with its session.
    pub model: Option<String>,
    /// The version of Claude Code.
    pub version: Option<String>,
    /// Where its transcript is.
    pub transcript: Option<PathBuf>,
    /// A digest of the transcript that it leaves behind, when it is not kept.
    pub leaves: Option<String>,
    /// The tool call at which its session is suspended.
    pub suspended: Option<String>,
    /// What its agent has besides its conversation.
    pub situation: Situation,
    /// The calls that were denied in it.
    pub denied: Vec<Denied>,
    /// The stop that the decision takes into account.
    pub stop: Option<Stop>,
    /// What its agent has done so far, for its parent, if it was stopped.
    pub report: Option<String>,
    /// The messages that its agent was given and has not seen.
    pub unseen_messages: Vec<MessageId>,
}

/// What the end of an attempt has led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedAttempt {
    /// The state of its frame.
    pub state: FrameState,
    /// The attempts of its frame whose copies are needed.
    pub copies: Vec<AttemptId>,
}

/// What is recorded about what an attempt was given and asked for, when it has ended.
#[derive(Clone, Debug)]
pub struct AtEnd {
    /// The results that its agent was given, at its start or when it looked them up.
    pub given: Vec<Delivery>,
    /// Those requests among them that it made itself, and whose results it has looked up.
    pub looked_up: Vec<RequestId>,
    /// Those whose results a resumed call has returned.
    pub shown: Vec<RequestId>,
    /// Whether it waits for something: it has made requests whose results it has not been given, or has jobs.
    pub has_open: bool,
    /// Whether it has asked for a permission.
    pub awaits_permission: bool,
    /// The messages that its agent was given.
    pub messages: Vec<Message>,
}

/// What was done before an agent could go on.
#[derive(Clone, Copy, Debug)]
pub enum Recovery<'a> {
    /// The transcript of a session is here now, together with the files beside it.
    Moved(&'a Path),
    /// What somebody said in the session is another session now.
    SetAside(SessionId),
}
