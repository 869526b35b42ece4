//! The steps in which an agent is stopped.
//!
//! ```text
//! Runs ── signal ──> Finishes ── its tool is done, a second signal, the end of the grace period ──> Interrupted
//!   └──── signal, and no tool runs ──────────────────────────────────────────────────────────────────^   │
//!                                  Killed <── a signal, or time ── Terminated <── time ──────────────────┘
//! ```

use std::time::Duration;

/// How far an agent has been stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopPhase {
    /// No stop was requested.
    Runs,
    /// Its running tool may finish; then a hook stops it.
    Finishes,
    /// It was interrupted, as by Ctrl-C: its tool is killed, and it writes down what it knows.
    Interrupted,
    /// It was asked to end immediately.
    Terminated,
    /// It was killed.
    Killed,
}

/// The state of the tools that ran when the agent was first asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// None is running, and nothing else will stop the agent.
    None,
    Runs,
    /// They finished this long ago, and the process has not ended yet.
    IsDone(Duration),
}

/// How long an agent whose tool has finished may take to end before it is interrupted.
pub(crate) const AFTER_ITS_TOOL: Duration = Duration::from_secs(2);
/// How long it may take to end after a signal, before a harsher one follows.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// How long its tool may take to finish, unless a person sets another limit.
pub(crate) const GRACE: Duration = Duration::from_secs(60);

impl StopPhase {
    /// The phase after a person sends one more signal.
    pub(crate) fn on_signal(self, tool: Tool) -> Self {
        match self {
            Self::Runs if tool == Tool::Runs => Self::Finishes,
            Self::Runs | Self::Finishes => Self::Interrupted,
            Self::Interrupted | Self::Terminated | Self::Killed => Self::Killed,
        }
    }

    /// The phase if its running tool must not finish.
    pub(crate) fn without_grace(self) -> Self {
        if self == Self::Finishes { Self::Interrupted } else { self }
    }

    /// The phase after the current one has lasted `lasted`. `grace`: how long a tool may take to finish.
    pub(crate) fn on_time(self, lasted: Duration, tool: Tool, grace: Duration) -> Self {
        let is_over = match self {
            Self::Runs | Self::Killed => false,
            Self::Finishes => match tool {
                Tool::None => true,
                Tool::Runs => lasted >= grace,
                Tool::IsDone(since) => since >= AFTER_ITS_TOOL,
            },
            Self::Interrupted | Self::Terminated => lasted >= PATIENCE,
        };
        match self {
            Self::Finishes if is_over => Self::Interrupted,
            Self::Interrupted if is_over => Self::Terminated,
            Self::Terminated if is_over => Self::Killed,
            phase => phase,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_thinking_agent_is_interrupted_and_then_killed() {
        let first = StopPhase::Runs.on_signal(Tool::None);
        assert_eq!(first, StopPhase::Interrupted);
        assert_eq!(first.on_signal(Tool::None), StopPhase::Killed);
    }

    #[test]
    fn a_running_tool_finishes_unless_there_is_a_second_signal() {
        let first = StopPhase::Runs.on_signal(Tool::Runs);
        assert_eq!(first, StopPhase::Finishes);
        assert_eq!(first.on_time(NOW, Tool::Runs, GRACE), StopPhase::Finishes);
        assert_eq!(first.on_signal(Tool::Runs), StopPhase::Interrupted);
        assert_eq!(first.on_signal(Tool::Runs).on_signal(Tool::Runs), StopPhase::Killed);
    }

    #[test]
    fn only_a_running_tool_has_a_grace_period_to_lose() {
        assert_eq!(StopPhase::Finishes.without_grace(), StopPhase::Interrupted);
        for phase in [StopPhase::Runs, StopPhase::Interrupted, StopPhase::Terminated, StopPhase::Killed] {
            assert_eq!(phase.without_grace(), phase);
        }
    }

    #[test]
    fn the_grace_period_ends() {
        let just_before = GRACE.checked_sub(Duration::from_millis(1)).unwrap();
        assert_eq!(StopPhase::Finishes.on_time(just_before, Tool::Runs, GRACE), StopPhase::Finishes);
        assert_eq!(StopPhase::Finishes.on_time(GRACE, Tool::Runs, GRACE), StopPhase::Interrupted);
        assert_eq!(StopPhase::Finishes.on_time(NOW, Tool::Runs, NOW), StopPhase::Interrupted);
    }

    #[test]
    fn an_agent_that_its_hook_has_not_stopped_is_interrupted() {
        for (tool, next) in [
            (Tool::IsDone(NOW), StopPhase::Finishes),
            (Tool::IsDone(AFTER_ITS_TOOL), StopPhase::Interrupted),
            (Tool::None, StopPhase::Interrupted),
        ] {
            assert_eq!(StopPhase::Finishes.on_time(NOW, tool, GRACE), next, "{tool:?}");
        }
    }

    #[test]
    fn who_does_not_listen_is_killed_in_the_end() {
        for (phase, next) in [
            (StopPhase::Runs, StopPhase::Runs),
            (StopPhase::Interrupted, StopPhase::Terminated),
            (StopPhase::Terminated, StopPhase::Killed),
            (StopPhase::Killed, StopPhase::Killed),
        ] {
            assert_eq!(phase.on_time(PATIENCE, Tool::Runs, GRACE), next);
            assert_eq!(phase.on_time(NOW, Tool::Runs, GRACE), phase);
        }
    }

    proptest! {
        /// Whatever happens, no step is undone, and three signals kill.
        #[test]
        fn stopping_goes_one_way(steps in prop::collection::vec((any::<bool>(), 0..3_u8, 0..7200_u64), 0..12)) {
            let (mut phase, mut signals) = (StopPhase::Runs, 0);
            for (is_signal, tool, seconds) in steps {
                let time = Duration::from_secs(seconds);
                let tool = [Tool::None, Tool::Runs, Tool::IsDone(time)][usize::from(tool)];
                let next = if is_signal { phase.on_signal(tool) } else { phase.on_time(time, tool, GRACE) };
                signals += u32::from(is_signal);
                prop_assert!(next as u8 >= phase as u8);
                prop_assert!(signals > 0 || next == StopPhase::Runs);
                phase = next;
            }
            prop_assert!(signals < 3 || phase == StopPhase::Killed);
            if signals > 0 {
                for _ in 0..3 {
                    phase = phase.on_time(LONG, Tool::Runs, GRACE);
                }
                prop_assert_eq!(phase, StopPhase::Killed);
            }
        }
    }
}
