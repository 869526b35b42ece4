//! What runs in an agent's background, and how long `claude` may stay alive with it after the agent's turn.
//!
//! Claude Code stays alive while a command, a monitor, a subagent or a workflow runs in the background, even if its agent waits
//! for a person or has replied. When one of them ends, Claude Code continues the turn automatically.

use std::collections::HashSet;
use std::time::Duration;

use crate::claude::stream::digest::Digest;
use crate::claude::stream::event::ResultEvent;
use crate::core::attempt::rest::TurnState;

/// How long `claude` may take to continue with its standard input, even on a busy system.
const READS_ITS_INPUT: Duration = Duration::from_secs(20);

/// How far the agent's turn has come according to its transcript. The stream's view is in the [`Digest`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WrittenTurn {
    /// The calls of its last message that are marked as suspended.
    pub suspended: HashSet<String>,
    /// The reply that ended its turn.
    pub reply: Option<String>,
    /// US dollars as the session counts them, including those of the session that it was forked from.
    pub total_cost_usd: Option<f64>,
}

impl Digest {
    /// Whether `claude` may stay alive after its agent's turn. Otherwise it exits.
    pub(crate) fn may_live_on(&self) -> bool {
        self.result.is_some() || !self.tasks.is_empty()
    }

    /// How long `claude` may stay alive in this state of its agent. It does not exit while a task runs, and a task that ends in
    /// the meantime would continue the agent's turn past a suspended call.
    pub(crate) fn patience(&self, rest: TurnState, grace: Duration) -> Option<Duration> {
        let waits = rest == TurnState::Paused && !self.tasks.is_empty();
        let limit = |patience| match () {
            () if waits => Duration::ZERO,
            () if self.is_where_it_began() => READS_ITS_INPUT,
            () => patience,
        };
        rest.patience(grace).map(limit)
    }

    /// Whether the agent's turn has ended, given what the transcript contains. While a subagent runs, `claude` prints no result.
    pub(crate) fn rest(&self, written: &WrittenTurn) -> TurnState {
        match &self.result {
            Some(result) if result.is_error || result.deferred || result.stopped_by_hook => TurnState::Paused,
            Some(result) => TurnState::after_reply(&result.text),
            None if self.is_suspended(written) => TurnState::Paused,
            None if !self.calls.open.is_empty() => TurnState::Works,
            None => written.reply.as_deref().map_or(TurnState::Works, TurnState::after_reply),
        }
    }

    /// Adds what `claude` would have printed if it had not been ended while something ran in its background, and withdraws a
    /// result that was not final. `by_us`: whether agent-cli ended it. `killed`: whether it did not exit itself.
    pub(crate) fn complete(&mut self, written: &WrittenTurn, by_us: bool, killed: bool) {
        let is_interim = |result: &ResultEvent| !result.is_error && !result.deferred && !result.stopped_by_hook;
        if killed && !by_us && !self.tasks.is_empty() && self.result.as_ref().is_some_and(is_interim) {
            self.interim = self.result.take();
        }
        if self.result.is_some() {
            return;
        }
        let total_cost_usd = written.total_cost_usd.unwrap_or_default();
        if self.is_suspended(written) {
            let deferred_call = self.calls.open.last().map(|call| call.id.clone());
            self.result = Some(ResultEvent { deferred: true, deferred_call, total_cost_usd, ..ResultEvent::default() });
        } else if let Some(reply) = written.reply.clone().filter(|_| by_us && self.worked && self.calls.open.is_empty())
        {
            self.result = Some(ResultEvent { text: reply, total_cost_usd, ..ResultEvent::default() });
            self.note_beside();
        }
    }

    /// Whether its agent only waits for suspended calls: a call that runs at the same time may finish.
    fn is_suspended(&self, written: &WrittenTurn) -> bool {
        !self.calls.open.is_empty() && self.calls.open.iter().all(|call| written.suspended.contains(&call.id))
    }

    /// What runs in the agent's background, for people.
    pub(crate) fn background(&self) -> String {
        let titles: Vec<&str> = self.tasks.iter().map(|task| task.title.as_str()).collect();
        titles.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str =
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}"#;
    const OTHER: &str =
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Bash","input":{}}]}}"#;
    const ENDED: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2"}]}}"#;
    const STARTED: &str =
        r#"{"type":"system","subtype":"task_started","task_id":"b1","description":"the server\nof all"}"#;
    const OVER: &str = r#"{"type":"system","subtype":"task_notification","task_id":"b1","status":"completed"}"#;
    const REPLY: &str = r#"{"type":"result","is_error":false,"result":"started it","total_cost_usd":0.5}"#;
    const DEFERRED: &str = r#"{"type":"result","is_error":false,"result":"","stop_reason":"tool_deferred"}"#;
    const ERROR: &str = r#"{"type":"result","is_error":true,"result":"529"}"#;
    const INIT: &str = r#"{"type":"system","subtype":"init"}"#;
    const WORDS: &str = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]}}"#;

    fn digest(lines: &[&str]) -> Digest {
        let mut digest = Digest::default();
        lines.iter().for_each(|line| digest.absorb(serde_json::from_str(line).unwrap()));
        digest
    }

    fn marked(calls: &[&str]) -> WrittenTurn {
        WrittenTurn { suspended: calls.iter().map(|call| (*call).to_owned()).collect(), ..WrittenTurn::default() }
    }

    fn replied() -> WrittenTurn {
        WrittenTurn { reply: Some("so".into()), total_cost_usd: Some(0.25), ..WrittenTurn::default() }
    }

    #[test]
    fn a_task_runs_until_its_end_is_reported() {
        assert_eq!(digest(&[STARTED]).background(), "the server⏎of all");
        assert_eq!(digest(&[STARTED, STARTED]).tasks.len(), 1);
        assert!(digest(&[STARTED]).may_live_on() && digest(&[REPLY]).may_live_on());
        assert!(!digest(&[STARTED, OVER]).may_live_on() && !digest(&[CALL]).may_live_on());
    }

    #[test]
    fn a_turn_is_over_with_a_result_or_when_it_is_written_so() {
        for (lines, written, rest) in [
            (&[REPLY][..], WrittenTurn::default(), TurnState::Replied),
            (&[DEFERRED], WrittenTurn::default(), TurnState::Paused),
            (&[ERROR], WrittenTurn::default(), TurnState::Paused),
            (&[REPLY, INIT], WrittenTurn::default(), TurnState::Works),
            (&[REPLY, WORDS], WrittenTurn::default(), TurnState::Works),
            (&[CALL], marked(&["t1"]), TurnState::Paused),
            (&[CALL], WrittenTurn::default(), TurnState::Works),
            // A parallel call may finish.
            (&[CALL, OTHER], marked(&["t1"]), TurnState::Works),
            (&[CALL, OTHER, ENDED], marked(&["t1"]), TurnState::Paused),
            (&[CALL, OTHER], marked(&["t1", "t2"]), TurnState::Paused),
            // An old mark, and no calls since.
            (&[], marked(&["t0"]), TurnState::Works),
            (&[WORDS], replied(), TurnState::Replied),
            (&[WORDS], WrittenTurn { reply: Some("SGN_PEND_STARTED (x)".into()), ..replied() }, TurnState::Paused),
            (&[CALL], replied(), TurnState::Works),
        ] {
            assert_eq!(digest(lines).rest(&written), rest, "{lines:?} {written:?}");
        }
    }

    #[test]
    fn a_call_that_stands_open_again_waits_for_what_is_on_standard_input() {
        let again =
            r#"{"type":"result","is_error":false,"stop_reason":"tool_deferred","deferred_tool_use":{"id":"t1"}}"#;
        let patience = |lines: &[&str]| {
            let digest = digest(lines);
            digest.patience(digest.rest(&WrittenTurn::default()), Duration::ZERO)
        };
        assert_eq!(patience(&[again]), Some(READS_ITS_INPUT));
        assert!(patience(&[CALL, again]).unwrap() < READS_ITS_INPUT, "the call was made in this attempt");
        assert_eq!(patience(&[again, INIT]), None, "it goes on");
        let refused = r#"{"type":"result","is_error":true,"result":"Not logged in"}"#;
        for (lines, has_read) in
            [(&[][..], false), (&[INIT], false), (&[again], false), (&[again, INIT], true), (&[refused], true)]
        {
            assert_eq!(digest(lines).has_read_input(), has_read, "{lines:?}");
        }
        assert_eq!(patience(&[STARTED, again]), Some(Duration::ZERO));
        // Only a call of this attempt, and without parallel calls, takes its result from there.
        assert!(digest(&[CALL, again]).takes_result());
        assert!(digest(&[STARTED, OVER, CALL, again]).takes_result(), "its model was told");
        for lines in [
            &[again][..],
            &[STARTED, CALL, again],
            &[CALL, STARTED, again],
            &[STARTED, CALL, again, OVER],
            &[CALL],
            &[CALL, REPLY],
        ] {
            assert!(!digest(lines).takes_result(), "{lines:?}");
        }
    }

    #[test]
    fn what_was_not_printed_is_taken_from_what_was_written() {
        let complete = |lines: &[&str], written: WrittenTurn, by_us, killed| {
            let mut digest = digest(lines);
            digest.complete(&written, by_us, killed);
            digest
        };
        for (by_us, killed) in [(true, true), (false, true), (false, false)] {
            let result = complete(&[STARTED, CALL, OTHER], marked(&["t1", "t2"]), by_us, killed).result.unwrap();
            assert!(result.deferred && result.deferred_call.as_deref() == Some("t2"));
        }
        let reply = complete(&[STARTED, WORDS], replied(), true, true).result.unwrap();
        assert_eq!((reply.text.as_str(), reply.total_cost_usd), ("so", 0.25));
        assert_eq!(complete(&[STARTED, WORDS], replied(), false, true).result, None);
        // Output of an earlier attempt.
        assert_eq!(complete(&[STARTED], replied(), true, true).result, None);
    }

    #[test]
    fn an_interim_text_is_no_reply() {
        let complete = |lines: &[&str], by_us, killed| {
            let mut digest = digest(lines);
            digest.complete(&WrittenTurn::default(), by_us, killed);
            (digest.result.map(|result| result.text), digest.interim.map(|result| result.total_cost_usd))
        };
        let (last, interim) = ((Some("started it".to_owned()), None), (None, Some(0.5)));
        assert_eq!(complete(&[STARTED, REPLY], false, true), interim);
        assert_eq!(complete(&[STARTED, REPLY], true, true), last);
        assert_eq!(complete(&[STARTED, REPLY], false, false), last);
        assert_eq!(complete(&[STARTED, REPLY, OVER], false, true), last);
        assert_eq!(complete(&[STARTED, REPLY, OVER, INIT], false, false), interim);
        assert_eq!(complete(&[STARTED, REPLY, OVER, INIT, WORDS, REPLY], false, true).0, last.0);
        assert_eq!(complete(&[STARTED, DEFERRED], false, true).0.as_deref(), Some(""));
        assert_eq!(complete(&[STARTED, ERROR], false, true).0.as_deref(), Some("529"));
    }

    #[test]
    fn beside_a_task_who_waits_is_ended_at_once() {
        let grace = Duration::from_secs(60);
        assert_eq!(digest(&[DEFERRED]).patience(TurnState::Paused, grace), TurnState::Paused.patience(grace));
        assert_eq!(digest(&[STARTED, DEFERRED]).patience(TurnState::Paused, grace), Some(Duration::ZERO));
        assert_eq!(digest(&[STARTED, REPLY]).patience(TurnState::Replied, grace), Some(grace));
    }
}
