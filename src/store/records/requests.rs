//! Requests, their results, and who makes and gets them.

use jiff::Timestamp;

use crate::core::chain::group::GroupMember;
use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::question_form::Form;
use crate::core::requests::request::{Delivery, RequestResult};
use crate::core::steering::message::Message;
use crate::core::waits::scheduled::Scheduled;
use crate::core::waits::wait_progress::{CheckResult, WaitProgress};
use crate::store::records::chains::Target;

/// In whose name a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The frame whose agent asks.
    pub frame: FrameId,
    /// The attempt in which it asks.
    pub attempt: AttemptId,
}

/// Which requests are meant, of those that were not withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests<'a> {
    One(RequestId),
    /// Those that a tool call of a frame has made.
    OfCall(FrameId, &'a str),
    /// Those that an attempt has made, and whose results its agent has not been given. They may be there.
    Undelivered(AttemptId),
    /// The jobs of a frame whose prompts have not been delivered.
    Jobs(FrameId),
}

/// What can be seen of a request from outside.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// How far an external wait is, or what is known about the file of a question. It is added to what is recorded.
    Progress(&'a WaitProgress),
    /// That the command at this place is tried from now on, if it is still due. One without an interval is due if it was not tried
    /// since this time.
    Try(usize, Timestamp),
    /// How such a try has ended.
    Tried(usize, &'a CheckResult),
    /// What time it is: a question may have expired.
    Time(Timestamp),
    /// The form that a question's file has now.
    Form(&'a Form),
    /// That the files of a question which is over say so, or never will.
    Filed,
}

/// What `claude` has printed or told its hooks about requests that the records may not agree with.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintedRequests<'a> {
    /// The calls that have no result after the turn has ended. Others were not suspended after all: another hook denied or changed
    /// them.
    pub open: Option<&'a [&'a str]>,
    /// The jobs that were made.
    pub made: &'a [Scheduled],
    /// The ids of those that were removed.
    pub removed: &'a [String],
}

/// What a running attempt does with results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResultUse<'a> {
    /// Its resumed call returns the result of the first of these that it has yet to return.
    Returned(&'a [RequestId]),
    /// Its resumed call has returned these. The user's hooks decide what the agent sees of them.
    Shown(&'a [RequestId]),
    /// Its agent has looked up the result of what it asked for in this attempt, and has read this.
    LookedUp(Target, &'a RequestResult),
    /// The call that a person has allowed runs.
    Permission(RequestId),
}

/// What the next attempt of a frame is to give to its agent, and the mode that it begins in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Undelivered {
    /// The results of its requests, in the order of these.
    pub results: Vec<Delivery>,
    /// What the call returns at which the agent stood when it was stopped. It is the result of no request.
    pub moot: Option<Delivery>,
    /// The messages to it.
    pub messages: Vec<Message>,
    /// The permission mode that a person chose for the last plan whose approval was delivered.
    pub chosen_mode: Option<String>,
}

/// What a frame and the members of a group have replied.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    /// The text that the frame's agent ended with, or that the group has for its parent.
    pub reply: Option<String>,
    /// The members of a group, in order; none if the frame is not a group.
    pub members: Vec<GroupMember>,
}
