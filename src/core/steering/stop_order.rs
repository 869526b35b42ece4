//! A stop or pause that a person, an agent above or a timeout has ordered.

use serde::{Deserialize, Serialize};

use crate::core::id::FrameId;
use crate::core::text::escape;

/// An order to stop an agent, as recorded for each affected agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stop {
    /// The outcome for the agent.
    pub how: StopKind,
    /// Whether its running tool must not finish.
    #[serde(default)]
    pub now: bool,
    /// Who ordered it.
    pub by: By,
    /// The reason, in the words of that person or agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The agent that was named: this agent, or one above it.
    pub of: FrameId,
    /// What the agent has done so far, for its parent, if that was known when the stop was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

/// The outcome for an agent that is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum StopKind {
    /// It is paused until a person resumes it.
    Pause,
    /// It ends, and its parent is told what it has done so far.
    Stop,
}

/// Who ordered a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum By {
    /// A person.
    Person,
    /// An agent above.
    Agent(FrameId),
    /// It has run for the maximum time, in seconds.
    Timeout(u64),
}

impl Stop {
    /// The stop of an agent in the background of a caller that has ended without its result.
    pub(crate) fn of_left_behind(caller: FrameId, child: FrameId) -> Self {
        let reason = Some("it has ended, and this agent worked in its background".to_owned());
        Self { how: StopKind::Stop, now: false, by: By::Agent(caller), reason, of: child, report: None }
    }

    /// Whether it comes from a timeout.
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self.by, By::Timeout(_))
    }

    /// The combination with a `later` order: the stronger one counts. If both are the same, both reasons are kept.
    pub(crate) fn and(self, later: Self) -> Self {
        let now = self.now || later.now;
        let report = self.report.clone().or(later.report.clone());
        let reason = self.reason_with(&later);
        let same = self.how == later.how;
        let first = self.how == StopKind::Stop || later.how == StopKind::Pause;
        let counts = if first { self } else { later };
        Self { now, report, reason: if same { reason } else { counts.reason }, ..counts }
    }

    /// Its reason, together with a different one of a later order.
    fn reason_with(&self, later: &Self) -> Option<String> {
        const LONGEST: usize = 2_000;
        let by = if self.by == later.by { String::new() } else { format!("also {}: ", later.by.in_words()) };
        let (Some(own), Some(other)) = (&self.reason, &later.reason) else {
            return self.reason.clone().or_else(|| later.reason.as_ref().map(|other| by + other));
        };
        if own.contains(other.as_str()) || own.len() + other.len() > LONGEST {
            return Some(own.clone());
        }
        Some(format!("{own}; {by}{other}"))
    }

    /// What happened, in one line: `stopped by a person: wrong branch`.
    pub(crate) fn in_words(&self) -> String {
        let happened = match self.how {
            StopKind::Pause => "paused",
            StopKind::Stop => "stopped",
        };
        let by = self.by.in_words();
        match &self.reason {
            Some(reason) => format!("{happened} {by}: {}", escape::one_line(reason.trim())),
            None => format!("{happened} {by}"),
        }
    }
}

impl By {
    fn in_words(self) -> String {
        match self {
            Self::Person => "by a person".to_owned(),
            Self::Agent(agent) => format!("by agent {}", agent.short()),
            Self::Timeout(seconds) => format!("after its timeout of {}", length(seconds)),
        }
    }
}

/// A number of seconds in the largest unit in which it is whole.
fn length(seconds: u64) -> String {
    match seconds {
        0 => "0 s".to_owned(),
        _ if seconds.is_multiple_of(86_400) => format!("{} d", seconds / 86_400),
        _ if seconds.is_multiple_of(3_600) => format!("{} h", seconds / 3_600),
        _ if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn stop(how: StopKind, by: By, reason: Option<&str>) -> Stop {
        Stop { how, now: false, by, reason: reason.map(str::to_owned), of: FrameId(Uuid::nil()), report: None }
    }

    #[test]
    fn who_stopped_it_and_why_is_one_line() {
        let agent = By::Agent(FrameId(Uuid::from_u128(0x4f2c_1a90 << 96)));
        for (stop, words) in [
            (stop(StopKind::Stop, By::Person, Some("wrong\nbranch ")), "stopped by a person: wrong⏎branch"),
            (stop(StopKind::Stop, agent, None), "stopped by agent 4f2c1a90"),
            (stop(StopKind::Pause, By::Person, None), "paused by a person"),
            (stop(StopKind::Stop, By::Timeout(600), None), "stopped after its timeout of 10 min"),
            (stop(StopKind::Stop, By::Timeout(90), None), "stopped after its timeout of 90 s"),
            (stop(StopKind::Stop, By::Timeout(7200), None), "stopped after its timeout of 2 h"),
            (stop(StopKind::Stop, By::Timeout(172_800), None), "stopped after its timeout of 2 d"),
        ] {
            assert_eq!(stop.in_words(), words);
            assert_eq!(stop.is_timeout(), words.contains("timeout"), "{words}");
        }
    }

    #[test]
    fn whoever_wants_more_gets_it() {
        let (pause, stopped) =
            (stop(StopKind::Pause, By::Person, None), stop(StopKind::Stop, By::Person, Some("first")));
        let again = Stop { now: true, ..stop(StopKind::Stop, By::Timeout(1), Some("second")) };
        assert_eq!(pause.clone().and(stopped.clone()), stopped);
        assert_eq!(stopped.clone().and(pause.clone()), stopped);
        let both = Some("first; also after its timeout of 1 s: second".to_owned());
        assert_eq!(stopped.clone().and(again), Stop { now: true, reason: both, ..stopped });
        assert_eq!(pause.clone().and(Stop { now: true, ..pause.clone() }), Stop { now: true, ..pause });
    }

    #[test]
    fn every_reason_is_kept_once() {
        let of = |reason: Option<&str>| stop(StopKind::Stop, By::Person, reason);
        let words = |stop: Stop| stop.in_words();
        assert_eq!(words(of(Some("a")).and(of(Some("b")))), "stopped by a person: a; b");
        assert_eq!(words(of(Some("a")).and(of(Some("b"))).and(of(Some("a")))), "stopped by a person: a; b");
        assert_eq!(words(of(None).and(of(Some("b")))), "stopped by a person: b");
        let long = "x".repeat(1_500);
        assert_eq!(of(Some(&long)).and(of(Some(&"y".repeat(1_000)))), of(Some(&long)), "it does not grow without end");
    }
}
