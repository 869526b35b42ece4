//! Operations on the outbox of notifications, which a person's processes send.

pub(crate) mod listed;
pub(crate) mod sending;
pub(crate) mod subscription;

use jiff::{SignedDuration, Timestamp};

use crate::core::id::{AttemptId, FrameId};
use crate::failpoint::Step;
use crate::store::error::Result;
use crate::store::outbox::{
    Claimed, ListedNotification, Notifications, Outbox, SendOutcome, Subscribing, Subscription,
};
use crate::store::sql::database::connection::Database;

impl Outbox for Database {
    fn note_stall(&self, frame: FrameId, attempt: AttemptId, last_event: Timestamp) -> Result<()> {
        subscription::note_stall(self, frame, attempt, last_event)
    }

    fn subscription(&self) -> Result<Option<Subscription>> {
        self.query(subscription::subscription)
    }

    fn subscribe(&self, to: &Subscribing) -> Result<()> {
        subscription::subscribe(self, to)
    }

    fn claim(&self, lasts: SignedDuration) -> Result<Option<Claimed>> {
        sending::claim(self, lasts)
    }

    fn end(&self, claimed: &Claimed, outcome: SendOutcome<'_>) -> Result<Option<Timestamp>> {
        self.write(Step::EndNotification, |connection| sending::end(connection, claimed, outcome))
    }

    fn list(&self, of: Notifications) -> Result<Vec<ListedNotification>> {
        self.query(|connection| listed::list(connection, of))
    }
}
