//! How an attempt ended: from what `claude` printed and how its process ended, to an [`Outcome`].

use crate::claude::processes::process::Exit;
use crate::claude::stream::digest::Digest;
use crate::claude::stream::result_event::ResultEvent;
use crate::core::attempt::decision::Outcome;

/// How an attempt ended. `errors` is what it wrote to standard error. What a reply means, the record tells.
///
/// The last `result` event decides, and in it `is_error`. Without one the process died, or refused to begin.
#[must_use]
pub fn outcome(digest: &Digest, exit: Exit, errors: &str) -> Outcome {
    match &digest.result {
        // A turn that had ended well before the stop reached it counts.
        None | Some(ResultEvent { is_error: true, .. }) if exit.is_stopped() => {
            Outcome::Stopped { worked: digest.worked }
        }
        Some(result) if result.stopped_by_hook => match exit {
            // It may have been ours: then its runner was killed after a person had stopped it.
            Exit::Stopped | Exit::Killed | Exit::Ended | Exit::Unknown => Outcome::Stopped { worked: digest.worked },
            Exit::Code(_) | Exit::Signal(_) => Outcome::Error("a hook has stopped the agent".to_owned()),
        },
        Some(result) if result.is_error => of_error(digest, result, errors),
        Some(result) if result.deferred => Outcome::Requested,
        Some(result) => Outcome::Reply(result.text.clone()),
        None => of_silence(digest, exit, errors),
    }
}

fn of_error(digest: &Digest, result: &ResultEvent, errors: &str) -> Outcome {
    let worked = digest.worked;
    if let Some(resets_at) = digest.limit_resets_at {
        return Outcome::UsageLimit { resets_at, worked };
    }
    let why = [result.text.trim(), errors.trim()].into_iter().find(|text| !text.is_empty());
    let why = why.unwrap_or("claude reported an error without a word").to_owned();
    if passes_by_itself(digest, result) {
        return Outcome::Unavailable { why, worked };
    }
    if worked { Outcome::Error(why) } else { Outcome::Refused(why) }
}

/// Whether an error of the API goes away when nothing is done about it.
///
/// Events say it, the kind of the error and its HTTP status, which is missing when there was no answer at all. Of older
/// versions (seen with 2.1.89) there are only words.
fn passes_by_itself(digest: &Digest, result: &ResultEvent) -> bool {
    match (digest.api_error.as_deref(), result.api_error_status) {
        (Some("rate_limit" | "server_error"), _) => true,
        (_, Some(status)) => is_status_that_passes(status),
        (None | Some("unknown"), None) => are_words_of_an_error_that_passes(&result.text),
        (Some(_), None) => false,
    }
}

fn is_status_that_passes(status: u64) -> bool {
    matches!(status, 408 | 429 | 500..)
}

fn are_words_of_an_error_that_passes(text: &str) -> bool {
    let Some(error) = text.strip_prefix("API Error: ") else { return text.starts_with("Request timed out") };
    let status = error.trim_start_matches("Request rejected (").split(|c: char| !c.is_ascii_digit()).next();
    error.starts_with("Unable to connect to API")
        || status.and_then(|status| status.parse().ok()).is_some_and(is_status_that_passes)
}

/// Whether `claude` says that the session is not there.
#[must_use]
pub fn has_no_session(said: &str) -> bool {
    said.contains("No conversation found with session ID")
}

/// Whether a refusal is about the command line, the login or the session, and not about what is to be gone on with.
#[must_use]
pub fn is_about_the_start(said: &str) -> bool {
    // What parses the options speaks like this, and nothing else does.
    said.starts_with("error: ") || said.contains("/login") || said.contains("already in use") || has_no_session(said)
}

/// Whether `claude` has refused to go on at the suspended call of an attempt that it was started for without a prompt, in
/// whatever words: what the call returns can be given with a prompt. `elsewhere`: whether it said that the cause is another one.
///
/// A login, a model or the API matter only when the call has returned, and Claude Code words such errors as messages.
#[must_use]
pub fn wants_prompt(outcome: &Outcome, digest: &Digest, elsewhere: bool) -> bool {
    let is_of_api = digest.worded || digest.result.as_ref().is_some_and(|result| result.api_error_status.is_some());
    matches!(outcome, Outcome::Refused(_)) && digest.returned.is_none() && !is_of_api && !elsewhere
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
        Exit::Stopped | Exit::Killed | Exit::Ended => "claude was stopped".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::stream::reader;
    use crate::core::requests::returned::Returned;

    const OK: Exit = Exit::Code(0);

    fn ended(lines: &str, exit: Exit, errors: &str) -> Outcome {
        outcome(&reader::read(lines.as_bytes()).unwrap(), exit, errors)
    }

    fn result(is_error: bool, text: &str) -> String {
        serde_json::json!({"type": "result", "is_error": is_error, "result": text, "subtype": "success"}).to_string()
    }

    const WORK: &str = r#"{"type":"assistant","message":{"model":"claude-opus-4-8","content":[]}}"#;
    const LIMIT: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795298091}}"#;

    #[test]
    fn a_good_result_is_a_reply() {
        for text in ["Jan 1st", "SGN_PEND_STARTED"] {
            assert_eq!(ended(&result(false, text), OK, ""), Outcome::Reply(text.into()));
        }
    }

    #[test]
    fn an_agent_that_a_hook_has_stopped_has_not_replied() {
        let line = r#"{"type":"result","is_error":false,"result":"","terminal_reason":"hook_stopped"}"#;
        for exit in [Exit::Stopped, Exit::Killed, Exit::Unknown] {
            assert_eq!(ended(&format!("{WORK}\n{line}"), exit, ""), Outcome::Stopped { worked: true });
        }
        assert!(matches!(ended(line, OK, ""), Outcome::Error(_)));
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
    fn an_error_that_passes_by_itself_is_told_by_its_kind_and_status() {
        let ended = |kind: Option<&str>, status: Option<u64>, text: &str| {
            let said = serde_json::json!({"type": "assistant", "message": {"model": "<synthetic>"}, "error": kind});
            let result = serde_json::json!(
                {"type": "result", "is_error": true, "result": text, "api_error_status": status, "subtype": "success"});
            ended(&format!("{said}\n{result}"), Exit::Code(1), "")
        };
        for (kind, status) in [
            (Some("rate_limit"), Some(429)),
            (Some("server_error"), Some(529)),
            (Some("server_error"), None),
            (Some("unknown"), Some(408)),
            (Some("unknown"), Some(500)),
            (None, Some(503)),
        ] {
            let outcome = ended(kind, status, "words");
            assert_eq!(outcome, Outcome::Unavailable { why: "words".into(), worked: false }, "{kind:?} {status:?}");
        }
        for (kind, status) in [
            (Some("authentication_failed"), None),
            (Some("authentication_failed"), Some(401)),
            (Some("billing_error"), Some(400)),
            (Some("model_not_found"), Some(404)),
            (Some("invalid_request"), Some(413)),
            (Some("unknown"), Some(400)),
            (Some("unknown"), None),
            (None, None),
        ] {
            assert_eq!(ended(kind, status, "words"), Outcome::Refused("words".into()), "{kind:?} {status:?}");
        }
    }

    #[test]
    fn older_versions_tell_it_in_words() {
        let ended = |text: &str| ended(&format!("{WORK}\n{}", result(true, text)), Exit::Code(1), "");
        for text in [
            r#"API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}"#,
            "API Error: 429 {}",
            "API Error: Request rejected (429) · slow down",
            "API Error: Unable to connect to API (ECONNREFUSED)",
            "Request timed out",
        ] {
            assert_eq!(ended(text), Outcome::Unavailable { why: text.into(), worked: true });
        }
        for text in ["API Error: 400 {}", "API Error: out of order", "Credit balance is too low", "500", ""] {
            assert!(matches!(ended(text), Outcome::Error(_)), "{text}");
        }
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
    fn a_refusal_to_start_is_no_refusal_to_go_on() {
        for said in [
            "error: unknown option '--nonsense'",
            "Not logged in · Please run /login",
            "Error: Session ID 4f2c1a90 is already in use.",
            "No conversation found with session ID: 4f2c1a90",
        ] {
            assert!(is_about_the_start(said), "{said}");
        }
        for said in [
            "Error: No deferred tool marker found in the resumed session.",
            "Error: Input must be provided either through stdin or as a prompt argument when using --print",
            "claude reported an error without a word",
        ] {
            assert!(!is_about_the_start(said), "{said}");
        }
    }

    #[test]
    fn what_was_stopped_is_stopped_unless_it_had_ended_well() {
        let error = result(true, "[Request interrupted by user]");
        assert_eq!(ended(&error, Exit::Stopped, ""), Outcome::Stopped { worked: false });
        assert_eq!(ended(WORK, Exit::Stopped, ""), Outcome::Stopped { worked: true });
        assert_eq!(ended(&result(false, "Jan 1st"), Exit::Stopped, ""), Outcome::Reply("Jan 1st".into()));
    }

    #[test]
    fn a_refusal_to_go_on_at_a_call_is_one_before_the_call_has_returned() {
        let refused = Outcome::Refused("No deferred tool marker found".into());
        let nothing = Digest::default();
        assert!(wants_prompt(&refused, &nothing, false));
        let unavailable = ResultEvent { is_error: true, deferred_call: Some("t1".into()), ..ResultEvent::default() };
        assert!(wants_prompt(&refused, &Digest { result: Some(unavailable), ..Digest::default() }, false));
        assert!(!wants_prompt(&refused, &nothing, true));
        assert!(!wants_prompt(&refused, &Digest { worded: true, ..Digest::default() }, false));
        let of_api = ResultEvent { is_error: true, api_error_status: Some(404), ..ResultEvent::default() };
        assert!(!wants_prompt(&refused, &Digest { result: Some(of_api), ..Digest::default() }, false));
        let returned = Returned { call: "t1".into(), text: "Jan 1st".into(), is_error: false };
        assert!(!wants_prompt(&refused, &Digest { returned: Some(returned), ..Digest::default() }, false));
        let others = [Outcome::Reply(String::new()), Outcome::Error(String::new()), Outcome::Stopped { worked: false }];
        assert!(!others.iter().any(|outcome| wants_prompt(outcome, &nothing, false)));
    }
}
