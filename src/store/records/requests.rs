//! Requests, their results, and the agents that make and get them.

use jiff::Timestamp;

use crate::core::chain::group::GroupMember;
use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::question_form::Form;
use crate::core::requests::request::{Delivery, RequestResult};
use crate::core::steering::message::Message;
use crate::core::waits::scheduled::Scheduled;
use crate::core::waits::wait_progress::{CheckResult, WaitProgress};
use crate::store::records::chains::Target;

/// The agent and the attempt in whose name a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The frame whose agent asks.
    pub frame: FrameId,
    /// The attempt in which it asks.
    pub attempt: AttemptId,
}

/// Selects requests. Withdrawn ones are never included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests<'a> {
    One(RequestId),
    /// The requests that a tool call of a frame has made.
    OfCall(FrameId, &'a str),
    /// The requests that an attempt has made and whose results its agent has not been given, whether or not the results
    /// exist.
    Undelivered(AttemptId),
    /// The requests of a frame for agents in its background whose results it has not been given.
    Background(FrameId),
    /// The jobs of a frame whose prompts have not been delivered.
    Jobs(FrameId),
}

/// An observation of a request.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// The progress of an external wait, or an observation of the file of a question. It is added to what is recorded.
    Progress(&'a WaitProgress),
    /// A try of the command at this index begins now, if the command is still due. A command without an interval is due if
    /// it was not tried since this time.
    Try(usize, Timestamp),
    /// The outcome of such a try.
    Tried(usize, &'a CheckResult),
    /// The current time: a question may have expired.
    Time(Timestamp),
    /// The form that a question's file has now.
    Form(&'a Form),
    /// The files of a closed question say that it is closed, or never will.
    Filed,
}

/// What `claude` has printed or passed to its hooks about requests. The records may disagree with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintedRequests<'a> {
    /// The calls that have no result after the turn has ended. Others were not suspended after all: another hook denied or
    /// changed them.
    pub open: Option<&'a [&'a str]>,
    /// The calls that have returned something: a person is not asked about them, because a hook of the user has decided.
    pub returned: &'a [&'a str],
    /// The jobs that were created.
    pub made: &'a [Scheduled],
    /// The ids of removed jobs.
    pub removed: &'a [String],
}

/// The ways in which a running attempt uses results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResultUse<'a> {
    /// Its resumed call returns the result of the first of these that it has yet to return.
    Returned(&'a [RequestId]),
    /// Its resumed call has returned these. The user's hooks decide what the agent sees of them.
    Shown(&'a [RequestId]),
    /// Its agent has looked up the result of what it asked for in this attempt, and has read this.
    LookedUp(Target, &'a RequestResult),
    /// The call that a person has allowed is running.
    Permission(RequestId),
    /// The call that made these in this attempt lingers, at most until this time: their results are expected soon.
    Awaited(&'a [RequestId], Timestamp),
    /// That call has yet to return these results: all of them, or none.
    InTime(&'a [(RequestId, RequestResult)]),
    /// The call that made it in this attempt runs as a program after all, which must not make it again.
    OfProgram(RequestId),
}

/// Everything that the next attempt of a frame must deliver to its agent, and the mode in which it begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Undelivered {
    /// The results of its requests, in the order of the requests.
    pub results: Vec<Delivery>,
    /// The result of the call at which the agent was stopped. It belongs to no request.
    pub moot: Option<Delivery>,
    /// The messages to it.
    pub messages: Vec<Message>,
    /// The permission mode that a person chose for the last plan whose approval was delivered.
    pub chosen_mode: Option<String>,
}

/// The replies of a frame and of the members of a group.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    /// The text that the frame's agent ended with, or that the group returns to its parent.
    pub reply: Option<String>,
    /// The members of a group, in order; none if the frame is not a group.
    pub members: Vec<GroupMember>,
}
