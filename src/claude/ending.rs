//! How an attempt ended: from what `claude` printed and how its process ended, to an [`Outcome`].

use super::process::Exit;
use crate::core::outcome::Outcome;
use crate::core::signal::Signal;
use crate::core::stream::{Digest, ResultEvent};

/// How an attempt ended. `errors` is what it wrote to standard error.
///
/// The last `result` event decides, and in it `is_error`. Without one the process died, or refused to begin.
#[must_use]
pub fn outcome(digest: &Digest, exit: Exit, errors: &str) -> Outcome {
    match &digest.result {
        // A turn that had ended well before the stop reached it counts.
        None | Some(ResultEvent { is_error: true, .. }) if exit == Exit::Stopped => {
            Outcome::Stopped { worked: digest.worked }
        }
        Some(result) if result.is_error => of_error(digest, result, errors),
        Some(result) if result.deferred => Outcome::Requested,
        Some(result) => of_reply(&result.text),
        None => of_silence(digest, exit, errors),
    }
}

fn of_reply(text: &str) -> Outcome {
    match Signal::find(text) {
        Some(Signal::Started) => Outcome::Started,
        Some(Signal::Ongoing) => Outcome::Ongoing,
        Some(Signal::Unhandled) => Outcome::Unhandled,
        None => Outcome::Reply(text.to_owned()),
    }
}

fn of_error(digest: &Digest, result: &ResultEvent, errors: &str) -> Outcome {
    let worked = digest.worked;
    if let Some(resets_at) = digest.limit_resets_at {
        return Outcome::UsageLimit { resets_at, worked };
    }
    let why = [result.text.trim(), errors.trim()].into_iter().find(|text| !text.is_empty());
    let why = why.unwrap_or("claude reported an error without a word").to_owned();
    if worked { Outcome::Error(why) } else { Outcome::Refused(why) }
}

fn of_silence(digest: &Digest, exit: Exit, errors: &str) -> Outcome {
    let how = how_it_ended(exit);
    let said = errors.trim();
    if digest.worked || exit.was_killed() {
        return Outcome::Died { worked: digest.worked, how };
    }
    Outcome::Refused(match (said, digest.spoke, digest.broken_lines) {
        ("", false, 0) => format!("{how} and said nothing"),
        ("", false, lines) => format!("{how} after {lines} lines that are not what claude prints"),
        ("", true, _) => format!("{how} without a result"),
        (said, _, _) => said.to_owned(),
    })
}

fn how_it_ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("claude ended with exit code {code}"),
        Exit::Signal(signal) => format!("claude was killed by signal {signal}"),
        Exit::Unknown => "claude and its runner were killed".to_owned(),
        Exit::Stopped => "claude was stopped".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::output;

    const OK: Exit = Exit::Code(0);

    fn ended(lines: &str, exit: Exit, errors: &str) -> Outcome {
        outcome(&output::read(lines.as_bytes()).unwrap(), exit, errors)
    }

    fn result(is_error: bool, text: &str) -> String {
        serde_json::json!({"type": "result", "is_error": is_error, "result": text, "subtype": "success"}).to_string()
    }

    const WORK: &str = r#"{"type":"assistant","message":{"model":"claude-opus-4-8","content":[]}}"#;
    const LIMIT: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795298091}}"#;

    #[test]
    fn a_good_result_is_a_reply_or_a_signal() {
        assert_eq!(ended(&result(false, "Jan 1st"), OK, ""), Outcome::Reply("Jan 1st".into()));
        assert_eq!(ended(&result(false, "`SGN_PEND_STARTED`"), OK, ""), Outcome::Started);
        assert_eq!(ended(&result(false, "SGN_PEND_ONGOING"), OK, ""), Outcome::Ongoing);
        assert_eq!(ended(&result(false, "SGN_UNHANDLED"), OK, ""), Outcome::Unhandled);
    }

    #[test]
    fn a_suspended_call_is_a_request() {
        let line = r#"{"type":"result","is_error":false,"result":"","stop_reason":"tool_deferred"}"#;
        assert_eq!(ended(line, OK, ""), Outcome::Requested);
    }

    #[test]
    fn an_error_is_a_refusal_until_the_model_has_answered() {
        let error = result(true, "Not logged in");
        assert_eq!(ended(&error, Exit::Code(1), ""), Outcome::Refused("Not logged in".into()));
        let after = format!("{WORK}\n{error}");
        assert_eq!(ended(&after, Exit::Code(1), ""), Outcome::Error("Not logged in".into()));
    }

    #[test]
    fn a_limit_with_a_time_is_a_wait() {
        let lines = format!("{LIMIT}\n{}", result(true, "You've hit your limit"));
        assert!(matches!(ended(&lines, Exit::Code(1), ""), Outcome::UsageLimit { worked: false, .. }));
        let lines = format!("{WORK}\n{lines}");
        assert!(matches!(ended(&lines, Exit::Code(1), ""), Outcome::UsageLimit { worked: true, .. }));
        let lines = format!("{LIMIT}\n{}", result(false, "Jan 1st"));
        assert_eq!(ended(&lines, OK, ""), Outcome::Reply("Jan 1st".into()));
    }

    #[test]
    fn without_a_result_it_died_or_refused() {
        let died = |worked, how: &str| Outcome::Died { worked, how: how.into() };
        assert_eq!(ended(WORK, Exit::Signal(9), ""), died(true, "claude was killed by signal 9"));
        assert_eq!(ended("", Exit::Signal(9), ""), died(false, "claude was killed by signal 9"));
        assert_eq!(ended("", Exit::Code(143), ""), died(false, "claude ended with exit code 143"));
        assert_eq!(ended(WORK, Exit::Code(1), "oops"), died(true, "claude ended with exit code 1"));
        assert_eq!(ended("", Exit::Unknown, ""), died(false, "claude and its runner were killed"));
        assert_eq!(ended("", Exit::Code(1), "Error: in use\n"), Outcome::Refused("Error: in use".into()));
        let silent = Outcome::Refused("claude ended with exit code 0 and said nothing".into());
        assert_eq!(ended("", OK, ""), silent);
        let garbage =
            Outcome::Refused("claude ended with exit code 0 after 2 lines that are not what claude prints".into());
        assert_eq!(ended("hello\nworld\n", OK, ""), garbage);
    }

    #[test]
    fn what_was_stopped_is_stopped_unless_it_had_ended_well() {
        let error = result(true, "[Request interrupted by user]");
        assert_eq!(ended(&error, Exit::Stopped, ""), Outcome::Stopped { worked: false });
        assert_eq!(ended(WORK, Exit::Stopped, ""), Outcome::Stopped { worked: true });
        assert_eq!(ended(&result(false, "Jan 1st"), Exit::Stopped, ""), Outcome::Reply("Jan 1st".into()));
    }
}
