//! Notifications: the events that a person subscribed to.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

use crate::core::id::{AttemptId, FrameId, NotificationId, RequestId};
use crate::core::notifications::occasion::Occasion;
use crate::core::notifications::payload::About;
use crate::store::error::Result;

/// The events that a person wants to be notified about.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    /// The config file that names them.
    pub(crate) config: PathBuf,
    pub(crate) events: Vec<Occasion>,
}

/// A notification that this process must send.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    pub(crate) about: About,
    /// The question or approval that it is about.
    pub request: Option<RequestId>,
    pub(crate) claim: String,
}

/// The outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome<'a> {
    Sent,
    /// Why it was not sent.
    Failed(&'a str),
    /// This process cannot send it: the notification is due again.
    GivenBack,
}

/// A notification and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedNotification {
    /// Its id.
    pub id: NotificationId,
    /// The name of its event.
    pub event: String,
    /// The root of the chain.
    pub root: FrameId,
    /// The agent that it is about.
    pub frame: FrameId,
    /// The question or approval.
    pub request: Option<RequestId>,
    /// When it happened.
    pub made: Timestamp,
    /// `pending`, `sent`, `failed` or `outdated`.
    pub status: String,
    /// How many attempts to send it have failed.
    pub failures: u64,
    /// Why the last attempt failed.
    pub why: Option<String>,
    /// When it was sent, given up or found outdated.
    pub ended: Option<Timestamp>,
    /// When the next attempt is due.
    pub due: Timestamp,
}

/// Which notifications are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notifications {
    /// This many of the newest, the newest last.
    Newest(usize),
    /// The one to send next.
    NextDue,
}

/// A change of the subscription.
#[derive(Clone, Debug, PartialEq)]
pub enum Subscribing {
    /// Replaces the subscription by this one.
    To(Subscription),
    /// Ends the subscription, if it belongs to this config file.
    NoLonger(PathBuf),
}

impl Subscribing {
    /// Applies the change to the current subscription.
    pub(crate) fn apply(&self, before: Option<Subscription>) -> Option<Subscription> {
        match self {
            Self::To(wanted) => Some(wanted.clone()),
            Self::NoLonger(config) => before.filter(|it| it.config != *config),
        }
    }
}

/// Notifications for a person. Each is recorded in the transaction that records its event, and one process sends it.
pub trait Outbox {
    /// Records once that an attempt has been silent since `last_event`.
    fn note_stall(&self, frame: FrameId, attempt: AttemptId, last_event: Timestamp) -> Result<()>;

    /// The current subscription: the recorded events, and the config file that names them.
    fn subscription(&self) -> Result<Option<Subscription>>;

    /// Changes which events are recorded from now on. Notifications of other events are not sent.
    fn subscribe(&self, to: &Subscribing) -> Result<()>;

    /// Claims the next notification that is due, for this long; `None`: none is due. Outdated notifications are not sent.
    fn claim(&self, lasts: SignedDuration) -> Result<Option<Claimed>>;

    /// Ends a claim. Returns when the notification is tried again; `None`: never, or another process has claimed it, and
    /// nothing changes.
    fn end(&self, claimed: &Claimed, outcome: SendOutcome<'_>) -> Result<Option<Timestamp>>;

    fn list(&self, of: Notifications) -> Result<Vec<ListedNotification>>;
}
