//! Whether the turn of an agent is over, and how long its `claude` may go on then.

use std::time::Duration;

use crate::core::agent::launch::Launch;
use crate::core::attempt::signal::Signal;

/// Whether the turn of an agent is over, though its `claude` may live on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It goes on.
    Works,
    /// It waits, or was stopped by an error: whatever `claude` would still do, the agent is not to do now.
    Paused,
    /// It has replied. If something ends in its background, it may have more to say.
    Replied,
}

/// How long `claude` may go on when its agent has replied, unless a person says otherwise: as long as it would by itself.
pub(crate) const GRACE: Duration = Duration::from_secs(600);

/// How long a `claude` whose turn is over may take to end by itself.
const SETTLES: Duration = Duration::from_millis(300);

/// How much longer than its own runner another one waits before it ends a `claude`: its runner may be about to.
const ABANDONED: Duration = Duration::from_secs(3);

impl Rest {
    /// After a reply: a signal on a line of its own says that its agent waits.
    #[must_use]
    pub(crate) fn of_reply(text: &str) -> Self {
        if Signal::on_a_line(text).is_some() { Self::Paused } else { Self::Replied }
    }

    /// The same where the agent is known to have made requests whose results it has not been given: it waits for them, whatever
    /// it has said.
    #[must_use]
    pub(crate) fn with_requests(self) -> Self {
        if self == Self::Replied { Self::Paused } else { self }
    }

    /// How long `claude` may go on with what runs beside its agent, where it is allowed `grace` after a reply.
    #[must_use]
    pub(crate) fn patience(self, grace: Duration) -> Option<Duration> {
        match self {
            Self::Works => None,
            Self::Paused => Some(SETTLES),
            Self::Replied => Some(grace.max(SETTLES)),
        }
    }

    /// Whether a `claude` that nobody has ended, and that was last seen to do something `since`, was abandoned by its runner.
    #[must_use]
    pub(crate) fn is_abandoned(self, since: Duration, grace: Duration) -> bool {
        self.patience(grace).is_some_and(|patience| since >= patience + ABANDONED)
    }
}

impl Launch {
    /// How long `claude` may go on with what runs beside an agent that has replied.
    #[must_use]
    pub fn background_grace(&self) -> Duration {
        self.background_grace.map_or(GRACE, Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_ended_at_once_and_who_has_replied_when_its_time_is_over() {
        let grace = Duration::from_secs(60);
        assert_eq!(Rest::Works.patience(grace), None);
        assert_eq!(Rest::Paused.patience(grace), Some(SETTLES));
        assert_eq!(Rest::Replied.patience(grace), Some(grace));
        assert_eq!(Rest::Replied.with_requests().patience(grace), Some(SETTLES));
        assert_eq!(Rest::Replied.patience(Duration::ZERO), Some(SETTLES));
        assert!(!Rest::Works.is_abandoned(Duration::MAX, grace));
        assert!(!Rest::Paused.is_abandoned(ABANDONED, grace) && Rest::Paused.is_abandoned(ABANDONED + SETTLES, grace));
        assert!(!Rest::Replied.is_abandoned(grace, grace) && Rest::Replied.is_abandoned(grace + ABANDONED, grace));
    }
}
