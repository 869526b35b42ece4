//! What an agent is doing now, from its events.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::core::agent::usage::Usage;
use crate::core::attempt::signal::Signal;
use crate::core::events::agent_event::{AgentEvent, AgentEventKind};
use crate::core::id::AttemptId;
use crate::core::text::escape::shortened;

/// What an agent is doing now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "activity", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum Activity {
    /// Its `claude` has not begun to work yet.
    Starting,
    /// Its model is working, or Claude Code is between two calls.
    Thinking,
    /// A tool is running.
    Running {
        /// The newest call, on one short, escaped line.
        tool: String,
        /// How many other calls are running.
        others: usize,
    },
    /// The API refused a request, and the next try is still to come.
    Throttled {
        /// The HTTP status; `None`: there was no response.
        status: Option<u64>,
        retry: u64,
        max_retries: Option<u64>,
        /// When the next try is made.
        until: Timestamp,
    },
    /// The next try is being made.
    Retrying { retry: u64, max_retries: Option<u64> },
    /// The attempt has ended, and the agent waits.
    Waiting,
    /// The agent is done, failed or was stopped.
    Ended,
}

/// Follows the events of one agent, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ActivityTracker {
    attempt: Option<AttemptId>,
    phase: ActivityPhase,
    /// Calls without a result, the newest last.
    open: Vec<OpenCall>,
    /// What the agent itself has said, if it has done nothing since.
    said: Option<String>,
    /// When the last event happened; `None`: there was none.
    pub last_event: Option<Timestamp>,
    /// The tokens in the conversation of the agent itself.
    pub context_tokens: Option<u64>,
    /// Tokens of all finished turns, over all attempts.
    pub usage: Usage,
    /// The cost of the ended attempts.
    pub cost_usd: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct OpenCall {
    /// Claude's id for it.
    id: String,
    line: String,
    since: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
enum ActivityPhase {
    Starting,
    Works,
    Throttled { status: Option<u64>, retry: u64, max_retries: Option<u64>, until: Timestamp },
    Waiting,
    Ended,
}

impl Default for ActivityTracker {
    fn default() -> Self {
        let (phase, open) = (ActivityPhase::Starting, Vec::new());
        Self {
            attempt: None,
            phase,
            open,
            said: None,
            last_event: None,
            context_tokens: None,
            usage: Usage::default(),
            cost_usd: 0.0,
        }
    }
}

impl ActivityTracker {
    /// Processes the next event.
    pub(crate) fn absorb(&mut self, event: &AgentEvent) {
        self.last_event = self.last_event.max(Some(event.at));
        if event.attempt.is_some() && event.attempt != self.attempt {
            // The calls of the earlier attempt have ended.
            self.end(ActivityPhase::Starting);
            self.attempt = event.attempt;
        }
        if event.parent_tool_use_id.is_none() {
            self.context_tokens = event.context_tokens.or(self.context_tokens);
        }
        match &event.what {
            AgentEventKind::Started { .. } | AgentEventKind::Thinking { .. } => self.phase = ActivityPhase::Works,
            AgentEventKind::Text { text } => {
                self.phase = ActivityPhase::Works;
                if event.parent_tool_use_id.is_none() {
                    self.said = last_words(text);
                }
            }
            AgentEventKind::ToolUse { id, summary, .. } => {
                self.phase = ActivityPhase::Works;
                self.said = None;
                self.open.retain(|open| open.id != *id);
                self.open.push(OpenCall { id: id.clone(), line: summary.clone(), since: event.at });
            }
            AgentEventKind::ToolResult { tool_use_id, .. } => {
                self.phase = ActivityPhase::Works;
                self.open.retain(|open| open.id != *tool_use_id);
            }
            AgentEventKind::ApiRetry { retry, max_retries, retry_delay_ms, error_status, .. } => {
                let delay = SignedDuration::from_millis(i64::try_from(*retry_delay_ms).unwrap_or(i64::MAX));
                let until = event.at.checked_add(delay).unwrap_or(Timestamp::MAX);
                let (retry, max_retries, status) = (*retry, *max_retries, *error_status);
                self.phase = ActivityPhase::Throttled { status, retry, max_retries, until };
            }
            AgentEventKind::Result { usage, .. } => {
                self.phase = ActivityPhase::Works;
                self.usage = self.usage.plus(*usage);
                self.open.clear();
            }
            AgentEventKind::Paused { cost_usd, .. } => {
                self.cost_usd += cost_usd.unwrap_or(0.0);
                self.end(ActivityPhase::Waiting);
            }
            AgentEventKind::Ended { cost_usd, .. } => {
                self.cost_usd += cost_usd.unwrap_or(0.0);
                self.end(ActivityPhase::Ended);
            }
            AgentEventKind::RateLimit { .. }
            | AgentEventKind::Request { .. }
            | AgentEventKind::Detached { .. }
            | AgentEventKind::RequestOver { .. }
            | AgentEventKind::Message { .. }
            | AgentEventKind::PermissionDenied { .. }
            | AgentEventKind::Task { .. }
            | AgentEventKind::Compaction { .. }
            | AgentEventKind::Other { .. } => {}
        }
    }

    /// Records that the agent is working, though its events are not known from the beginning.
    pub(crate) fn works(&mut self, attempt: AttemptId) {
        (self.attempt, self.phase) = (Some(attempt), ActivityPhase::Works);
    }

    /// Since when its newest call is running.
    pub(crate) fn call_since(&self) -> Option<Timestamp> {
        self.open.last().map(|call| call.since)
    }

    /// The last line that the agent has written, escaped, until it calls a tool.
    pub(crate) fn said(&self) -> Option<&str> {
        self.said.as_deref()
    }

    fn end(&mut self, phase: ActivityPhase) {
        self.phase = phase;
        self.said = None;
        self.open.clear();
    }

    /// What the agent is doing at `now`. An agent only counts as throttled until its next try: the model's first token comes
    /// later.
    pub(crate) fn activity(&self, now: Timestamp) -> Activity {
        match (&self.phase, self.open.last()) {
            (ActivityPhase::Starting, _) => Activity::Starting,
            (ActivityPhase::Waiting, _) => Activity::Waiting,
            (ActivityPhase::Ended, _) => Activity::Ended,
            (ActivityPhase::Throttled { status, retry, max_retries, until }, _) => {
                let (status, retry, max_retries, until) = (*status, *retry, *max_retries, *until);
                if now < until {
                    Activity::Throttled { status, retry, max_retries, until }
                } else {
                    Activity::Retrying { retry, max_retries }
                }
            }
            (ActivityPhase::Works, Some(newest)) => {
                Activity::Running { tool: newest.line.clone(), others: self.open.len().saturating_sub(1) }
            }
            (ActivityPhase::Works, None) => Activity::Thinking,
        }
    }
}

impl Activity {
    /// In words: `running Bash: cargo test`, `throttled: 529, try 3 of 10, next in 12 s`.
    pub(crate) fn words(&self, now: Timestamp) -> String {
        let limit = |max: &Option<u64>| max.map(|max| format!(" of {max}")).unwrap_or_default();
        match self {
            Self::Starting => "starting".to_owned(),
            Self::Thinking => "thinking".to_owned(),
            Self::Running { tool, others: 0 } => format!("running {tool}"),
            Self::Running { tool, others } => format!("running {tool} (and {others} more)"),
            Self::Throttled { status, retry, max_retries, until } => {
                // A try that is due in half a second is not due now.
                let left = (until.duration_since(now).as_millis().max(0) + 999) / 1000;
                format!("{}, try {retry}{}, next in {left} s", api_error(*status), limit(max_retries))
            }
            Self::Retrying { retry, max_retries } => format!("thinking, try {retry}{}", limit(max_retries)),
            Self::Waiting => "waiting".to_owned(),
            Self::Ended => "ended".to_owned(),
        }
    }
}

/// Why the API gave no answer: it has too much to do, or does not accept the request at all.
pub(crate) fn api_error(status: Option<u64>) -> String {
    match status {
        None => "throttled: no answer".to_owned(),
        // A timeout, a conflict and too many requests.
        Some(status @ (408 | 409 | 429)) => format!("throttled: {status}"),
        Some(status @ 400..500) => format!("refused: {status}"),
        Some(status) => format!("throttled: {status}"),
    }
}

/// The last line of a text that is not a signal.
fn last_words(text: &str) -> Option<String> {
    let mut lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    lines.next().filter(|line| Signal::on_a_line(line).is_none()).map(shortened)
}

/// Whether a running agent has had no event for so long that a person should look.
pub(crate) fn is_stalled(last_event: Timestamp, now: Timestamp, after: SignedDuration) -> bool {
    now.duration_since(last_event) >= after
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::events::agent_event::VERSION;
    use crate::core::id::FrameId;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn event(second: i64, what: AgentEventKind) -> AgentEvent {
        AgentEvent {
            version: VERSION,
            at: at(second),
            frame: FrameId(uuid::Uuid::nil()),
            attempt: None,
            parent_tool_use_id: None,
            context_tokens: None,
            cut: false,
            what,
        }
    }

    fn call(id: &str) -> AgentEventKind {
        let (id, name, summary) = (id.to_owned(), "Bash".to_owned(), format!("Bash: {id}"));
        AgentEventKind::ToolUse { id, name, summary, input: serde_json::Value::Null }
    }

    fn result(id: &str) -> AgentEventKind {
        let (tool_use_id, summary, content) = (id.to_owned(), String::new(), String::new());
        AgentEventKind::ToolResult { tool_use_id, is_error: false, summary, content }
    }

    fn retry(retry: u64, retry_delay_ms: u64) -> AgentEventKind {
        let (max_retries, error_status) = (Some(10), Some(529));
        AgentEventKind::ApiRetry { retry, max_retries, retry_delay_ms, error_status, error: None }
    }

    fn words(happenings: Vec<AgentEventKind>, now: i64) -> String {
        let mut progress = ActivityTracker::default();
        happenings.into_iter().for_each(|what| progress.absorb(&event(0, what)));
        progress.activity(at(now)).words(at(now))
    }

    fn started() -> AgentEventKind {
        AgentEventKind::Started { model: None, claude_code_version: None, permission_mode: None }
    }

    #[test]
    fn an_agent_starts_thinks_and_runs_tools() {
        assert_eq!(words(vec![], 0), "starting");
        assert_eq!(words(vec![started()], 0), "thinking");
        assert_eq!(words(vec![started(), call("make")], 0), "running Bash: make");
        assert_eq!(words(vec![call("make"), call("ls")], 0), "running Bash: ls (and 1 more)");
        assert_eq!(words(vec![call("make"), call("ls"), result("ls")], 0), "running Bash: make");
        assert_eq!(words(vec![call("make"), result("make")], 0), "thinking");
        assert_eq!(
            words(
                vec![
                    call("make"),
                    AgentEventKind::Paused { waits_for: "requests".into(), message: None, cost_usd: None }
                ],
                0
            ),
            "waiting"
        );
    }

    #[test]
    fn a_throttled_agent_is_so_until_its_next_try() {
        assert_eq!(words(vec![started(), retry(3, 12_000)], 0), "throttled: 529, try 3 of 10, next in 12 s");
        assert_eq!(words(vec![started(), retry(3, 12_000)], 11), "throttled: 529, try 3 of 10, next in 1 s");
        assert_eq!(words(vec![started(), retry(3, 12_000)], 12), "thinking, try 3 of 10");
        assert_eq!(words(vec![retry(3, 12_000), AgentEventKind::Text { text: "so".into() }], 1), "thinking");
        assert!(words(vec![retry(1, u64::MAX)], 1).starts_with("throttled: 529, try 1 of 10, next in"));
    }

    #[test]
    fn a_refused_request_is_not_throttled() {
        let said = [None, Some(401), Some(403), Some(408), Some(429), Some(500), Some(529)].map(api_error);
        insta::assert_snapshot!(said.join(", "), @"throttled: no answer, refused: 401, refused: 403, throttled: 408, throttled: 429, throttled: 500, throttled: 529");
    }

    #[test]
    fn what_an_agent_said_last_counts_until_it_does_something() {
        let said = |happenings: Vec<AgentEventKind>| {
            let mut progress = ActivityTracker::default();
            happenings.into_iter().for_each(|what| progress.absorb(&event(0, what)));
            progress.said().map(str::to_owned)
        };
        let text = |text: &str| AgentEventKind::Text { text: text.into() };
        assert_eq!(said(vec![text("First.\n Then\u{1b} this: \n\n")]).as_deref(), Some("Then\\u{1b} this:"));
        assert_eq!(said(vec![text("So."), call("make")]), None);
        assert_eq!(said(vec![text("SGN_PEND_STARTED (4f2c1a90)")]), None);
        let mut progress = ActivityTracker::default();
        progress.absorb(&event(7, call("make")));
        assert_eq!(progress.call_since(), Some(at(7)));
        progress.absorb(&event(8, result("make")));
        assert_eq!(progress.call_since(), None);
    }

    #[test]
    fn a_new_attempt_has_no_open_calls() {
        let mut progress = ActivityTracker::default();
        let of = |attempt, what| AgentEvent { attempt: Some(attempt), ..event(0, what) };
        let [one, other] = [AttemptId::random(), AttemptId::random()];
        progress.absorb(&of(one, call("make")));
        progress.absorb(&of(other, AgentEventKind::Other { name: "x".into() }));
        assert_eq!(progress.activity(at(0)), Activity::Starting);
        progress.absorb(&of(other, started()));
        assert_eq!(progress.activity(at(0)), Activity::Thinking);
    }

    #[test]
    fn an_agent_without_an_event_for_long_is_stalled() {
        let after = SignedDuration::from_mins(10);
        assert!(!is_stalled(at(0), at(599), after) && is_stalled(at(0), at(600), after));
        assert!(!is_stalled(at(700), at(600), after));
    }
}
