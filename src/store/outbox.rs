//! Notifications: what a person wants to be told.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

use crate::core::id::{AttemptId, FrameId, NotificationId, RequestId};
use crate::core::notifications::occasion::Occasion;
use crate::core::notifications::payload::About;
use crate::store::error::Result;

/// What a person wants to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    /// The config file that says so.
    pub(crate) config: PathBuf,
    pub(crate) events: Vec<Occasion>,
}

/// A notification that this process is to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    pub(crate) about: About,
    /// The question or approval that it is about.
    pub request: Option<RequestId>,
    pub(crate) claim: String,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome<'a> {
    Sent,
    /// Why it was not sent.
    Failed(&'a str),
    /// This process cannot use it: the notification is due again.
    GivenBack,
}

/// A notification, and what became of it.
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
    /// How often sending it has failed.
    pub failures: u64,
    /// Why sending it failed last.
    pub why: Option<String>,
    /// When it was sent, given up or found outdated.
    pub ended: Option<Timestamp>,
    /// When it is tried next.
    pub due: Timestamp,
}

/// Which notifications are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notifications {
    /// So many of the newest, the newest last.
    Newest(usize),
    /// The one that is to be sent next.
    NextDue,
}

/// What becomes of the subscription.
#[derive(Clone, Debug, PartialEq)]
pub enum Subscribing {
    /// It is this one.
    To(Subscription),
    /// Ends the subscription, if it belongs to this config file.
    NoLonger(PathBuf),
}

impl Subscribing {
    /// What it makes of the subscription that there is.
    pub(crate) fn apply(&self, before: Option<Subscription>) -> Option<Subscription> {
        match self {
            Self::To(wanted) => Some(wanted.clone()),
            Self::NoLonger(config) => before.filter(|it| it.config != *config),
        }
    }
}

/// What a person wants to be told. It is noted in the transaction that records what happened, and one process sends each.
pub trait Outbox {
    /// Notes, once, that an attempt has been silent since then.
    fn note_stall(&self, frame: FrameId, attempt: AttemptId, last_event: Timestamp) -> Result<()>;

    /// The events that are noted, and the config file that says so.
    fn subscription(&self) -> Result<Option<Subscription>>;

    /// Has other events noted from now on. What was noted of others is not sent.
    fn subscribe(&self, to: &Subscribing) -> Result<()>;

    /// Claims the next notification that is due, for so long; `None`: none is. What is no longer so is not sent.
    fn claim(&self, lasts: SignedDuration) -> Result<Option<Claimed>>;

    /// Ends a claim. Returns when the notification is tried again; `None`: never, or another process has claimed it, and nothing
    /// changes.
    fn end(&self, claimed: &Claimed, outcome: SendOutcome<'_>) -> Result<Option<Timestamp>>;

    /// The notifications that are meant.
    fn list(&self, of: Notifications) -> Result<Vec<ListedNotification>>;
}
