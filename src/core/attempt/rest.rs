//! Whether an agent's turn has ended, and how long its `claude` may then continue.

use std::time::Duration;

use crate::core::agent::launch::Launch;
use crate::core::attempt::signal::Signal;

/// Whether an agent's turn has ended, although its `claude` may still be running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnState {
    /// It continues.
    Works,
    /// It waits, or was stopped by an error: `claude` should do nothing more for it now.
    Paused,
    /// It has replied. If background work ends, it may have more to say.
    Replied,
}

/// How long `claude` may continue after its agent has replied, by default: as long as it would without agent-cli.
pub(crate) const GRACE: Duration = Duration::from_secs(600);

/// How long a `claude` whose turn has ended may take to end.
const ENDS_BY_ITSELF: Duration = Duration::from_millis(300);

/// How much longer another runner waits before it ends a `claude`, whose own runner may be about to do so.
const ABANDONED: Duration = Duration::from_secs(3);

impl TurnState {
    /// The state after a reply: a signal on a separate line says that its agent waits.
    pub(crate) fn after_reply(text: &str) -> Self {
        if Signal::on_a_line(text).is_some() { Self::Paused } else { Self::Replied }
    }

    /// The state if the agent is known to have undelivered requests: it waits for them, whatever it has said.
    pub(crate) fn with_requests(self) -> Self {
        if self == Self::Replied { Self::Paused } else { self }
    }

    /// How long `claude` may continue with its agent's background work, if it is allowed `grace` after a reply.
    pub(crate) fn patience(self, grace: Duration) -> Option<Duration> {
        match self {
            Self::Works => None,
            Self::Paused => Some(ENDS_BY_ITSELF),
            Self::Replied => Some(grace.max(ENDS_BY_ITSELF)),
        }
    }

    /// Whether a `claude` that was not ended, and whose last activity was at `since`, was abandoned by its runner.
    pub(crate) fn is_abandoned(self, since: Duration, grace: Duration) -> bool {
        self.patience(grace).is_some_and(|patience| since >= patience + ABANDONED)
    }
}

impl Launch {
    /// How long `claude` may continue with background work after its agent has replied.
    pub(crate) fn background_grace(&self) -> Duration {
        self.background_grace.map_or(GRACE, Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_ended_at_once_and_who_has_replied_when_its_time_is_over() {
        let grace = Duration::from_secs(60);
        assert_eq!(TurnState::Works.patience(grace), None);
        assert_eq!(TurnState::Paused.patience(grace), Some(ENDS_BY_ITSELF));
        assert_eq!(TurnState::Replied.patience(grace), Some(grace));
        assert_eq!(TurnState::Replied.with_requests().patience(grace), Some(ENDS_BY_ITSELF));
        assert_eq!(TurnState::Replied.patience(Duration::ZERO), Some(ENDS_BY_ITSELF));
        assert!(!TurnState::Works.is_abandoned(Duration::MAX, grace));
        assert!(
            !TurnState::Paused.is_abandoned(ABANDONED, grace)
                && TurnState::Paused.is_abandoned(ABANDONED + ENDS_BY_ITSELF, grace)
        );
        assert!(
            !TurnState::Replied.is_abandoned(grace, grace) && TurnState::Replied.is_abandoned(grace + ABANDONED, grace)
        );
    }
}
