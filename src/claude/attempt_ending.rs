//! How an attempt ended: from what `claude` printed and how its process ended, to an [`Ending`].

use crate::claude::installation::start_refusal::StartRefusal;
use crate::claude::processes::process::ProcessExit;
use crate::claude::stream::digest::Digest;
use crate::claude::stream::event::{ReachedLimit, ResultEvent};
use crate::core::attempt::ending::{Ending, Objection};
use crate::core::text::escape::shortened;

/// How an attempt ended. `errors`: its output on standard error.
///
/// The last `result` event decides, by its `is_error`. Without one, the process died or refused to start.
pub(crate) fn classify(digest: &Digest, exit: ProcessExit, errors: &str) -> Ending {
    match &digest.result {
        // A turn that ended well before it was stopped counts.
        None | Some(ResultEvent { is_error: true, .. }) if exit.is_stopped() => of_stop(digest, exit),
        Some(result) if result.stopped_by_hook => match exit {
            // The signal may have been ours: the runner may have been killed after a person stopped the chain.
            ProcessExit::Stopped
            | ProcessExit::Killed
            | ProcessExit::ShutDown
            | ProcessExit::OverBudget
            | ProcessExit::Ended
            | ProcessExit::Unknown => of_stop(digest, exit),
            ProcessExit::Code(_) | ProcessExit::Signal(_) => Ending::Error("a hook stopped the agent".to_owned()),
        },
        Some(result) if result.is_error => of_error(digest, result, errors),
        Some(result) if result.deferred => Ending::Suspended,
        Some(result) if is_blocked(digest, result) => Ending::Refused {
            why: format!("a UserPromptSubmit hook does not let the prompt pass: {}", blocked_for(digest, result)),
            objection: Objection::Start,
        },
        Some(result) => Ending::Reply(result.text.clone()),
        None => of_silence(digest, exit, errors),
    }
}

/// Whether a hook of the user kept the prompt from the agent. What Claude Code prints in place of a reply is not a reply. A
/// slash command makes no request, either.
fn is_blocked(digest: &Digest, result: &ResultEvent) -> bool {
    let is_named = || digest.blocked.is_some() || BLOCKED.iter().any(|words| result.text.starts_with(words));
    // A call that has returned would be followed by a request.
    result.is_unasked && !digest.worked && (is_named() || digest.returned.is_some())
}

const BLOCKED: [&str; 2] = ["UserPromptSubmit operation blocked by hook", "Operation stopped by hook"];

/// The hook's words. Older versions print them in a text only.
fn blocked_for(digest: &Digest, result: &ResultEvent) -> String {
    let text = BLOCKED.iter().find_map(|words| result.text.strip_prefix(words)).unwrap_or(&result.text);
    let text = text.split("\n\nOriginal prompt:").next().unwrap_or_default();
    digest.blocked.as_deref().unwrap_or(text).trim_matches([':', ' ', '\n']).to_owned()
}

fn of_stop(digest: &Digest, exit: ProcessExit) -> Ending {
    let worked = digest.worked;
    match exit {
        ProcessExit::ShutDown => Ending::ShutDown { worked },
        ProcessExit::OverBudget => Ending::OverBudget { worked },
        _ => Ending::Stopped { worked },
    }
}

fn of_error(digest: &Digest, result: &ResultEvent, errors: &str) -> Ending {
    let worked = digest.worked;
    if let Some(ReachedLimit::Until(resets_at)) = digest.limit {
        return Ending::UsageLimit { resets_at, worked };
    }
    let why = [result.text.trim(), errors.trim()].into_iter().find(|text| !text.is_empty());
    let why = why.unwrap_or("claude reported an error without a message").to_owned();
    if passes_by_itself(digest, result) || digest.limit.is_some() {
        return Ending::Unavailable { why, worked };
    }
    if worked { Ending::Error(why) } else { refused(digest, why) }
}

/// Whether an API error may be temporary.
///
/// Events contain the kind of the error and its HTTP status, which is missing if there was no answer. Older versions (seen with
/// 2.1.89) only print a message.
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

fn of_silence(digest: &Digest, exit: ProcessExit, errors: &str) -> Ending {
    let how = how_it_ended(exit);
    let said = errors.trim();
    if exit.was_killed() {
        return Ending::Died { worked: digest.worked, how };
    }
    if digest.worked {
        let last = said.lines().next_back().map(|line| format!(" ({})", shortened(line.trim())));
        return Ending::Died { worked: true, how: format!("{how}{}", last.unwrap_or_default()) };
    }
    let why = match (said, digest.spoke, digest.broken_lines) {
        ("", false, 0) => format!("{how} and said nothing"),
        ("", false, lines) => format!("{how} after {lines} lines that are not what claude prints"),
        ("", true, _) => format!("{how} without a result"),
        (said, _, _) => said.to_owned(),
    };
    refused(digest, why)
}

fn refused(digest: &Digest, why: String) -> Ending {
    let objection = objection(digest, &why);
    Ending::Refused { why, objection }
}

/// Whether `claude` says that the session does not exist.
pub(crate) fn has_no_session(said: &str) -> bool {
    said.contains("No conversation found with session ID")
}

/// What `claude` refused. If it cannot continue at a suspended call, its wording varies, and the call has not returned by then.
///
/// A problem with a login, a model or the API can only occur after the call has returned, and Claude Code prints such errors as
/// messages.
fn objection(digest: &Digest, why: &str) -> Objection {
    // Only the option parser uses this wording.
    let is_of_start = || why.starts_with("error: ") || why.contains("/login") || why.contains("already in use");
    let is_of_api = || digest.worded || digest.result.as_ref().is_some_and(|result| result.api_error_status.is_some());
    if has_no_session(why) {
        Objection::Session
    } else if StartRefusal::from_message(why) == StartRefusal::Room {
        Objection::Room
    } else if is_of_start() || is_of_api() || digest.returned.is_some() {
        Objection::Start
    } else {
        Objection::Unknown
    }
}

fn how_it_ended(exit: ProcessExit) -> String {
    match exit {
        ProcessExit::Code(code) => format!("claude ended with exit code {code}"),
        ProcessExit::Signal(signal) => format!("claude was killed by signal {signal}"),
        ProcessExit::Unknown => "claude and its runner were killed".to_owned(),
        ProcessExit::Stopped
        | ProcessExit::Killed
        | ProcessExit::ShutDown
        | ProcessExit::OverBudget
        | ProcessExit::Ended => "claude was stopped".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::stream::output_reader;
    use crate::core::requests::request::Returned;

    const OK: ProcessExit = ProcessExit::Code(0);

    fn refused(why: &str, objection: Objection) -> Ending {
        Ending::Refused { why: why.into(), objection }
    }

    fn ended(lines: &str, exit: ProcessExit, errors: &str) -> Ending {
        classify(&output_reader::read(lines.as_bytes()).unwrap(), exit, errors)
    }

    fn result(is_error: bool, text: &str) -> String {
        serde_json::json!({"type": "result", "is_error": is_error, "result": text, "subtype": "success"}).to_string()
    }

    const WORK: &str = r#"{"type":"assistant","message":{"model":"claude-opus-4-8","content":[]}}"#;
    const LIMIT: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795298091}}"#;

    #[test]
    fn a_good_result_is_a_reply() {
        for text in ["Jan 1st", "SGN_PEND_STARTED"] {
            assert_eq!(ended(&result(false, text), OK, ""), Ending::Reply(text.into()));
        }
    }

    #[test]
    fn an_agent_that_a_hook_has_stopped_has_not_replied() {
        let line = r#"{"type":"result","is_error":false,"result":"","terminal_reason":"hook_stopped"}"#;
        for exit in [ProcessExit::Stopped, ProcessExit::Killed, ProcessExit::Unknown] {
            assert_eq!(ended(&format!("{WORK}\n{line}"), exit, ""), Ending::Stopped { worked: true });
        }
        assert!(matches!(ended(line, OK, ""), Ending::Error(_)));
    }

    #[test]
    fn what_a_hook_says_of_a_prompt_is_no_reply() {
        let result = |turns: u32, text: &str| {
            serde_json::json!({"type": "result", "is_error": false, "result": text, "num_turns": turns}).to_string()
        };
        let blocked = "UserPromptSubmit operation blocked by hook:\nno ticket\n\nOriginal prompt: go";
        let refusal = refused("a UserPromptSubmit hook does not let the prompt pass: no ticket", Objection::Start);
        assert_eq!(ended(&result(0, blocked), OK, ""), refusal);
        assert_eq!(ended(&result(0, "Operation stopped by hook: no ticket"), OK, ""), refusal);
        let told = r#"{"type":"system","subtype":"informational","prompt_submit_outcome":{"reason":"no ticket"}}"#;
        assert_eq!(ended(&format!("{told}\n{}", result(0, "anything")), OK, ""), refusal);
        let returned =
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#;
        let why = "a UserPromptSubmit hook does not let the prompt pass: ?";
        assert_eq!(ended(&format!("{returned}\n{}", result(0, "?")), OK, ""), refused(why, Objection::Start));
        // The agent may say the same, and a slash command makes no request.
        assert_eq!(ended(&format!("{WORK}\n{}", result(1, blocked)), OK, ""), Ending::Reply(blocked.into()));
        assert_eq!(ended(&result(0, "Compacted"), OK, ""), Ending::Reply("Compacted".into()));
    }

    #[test]
    fn a_suspended_call_is_a_request() {
        let line = r#"{"type":"result","is_error":false,"result":"","stop_reason":"tool_deferred"}"#;
        assert_eq!(ended(line, OK, ""), Ending::Suspended);
    }

    #[test]
    fn an_error_is_a_refusal_until_the_model_has_answered() {
        let error = result(true, "Not logged in");
        assert_eq!(ended(&error, ProcessExit::Code(1), ""), refused("Not logged in", Objection::Unknown));
        let after = format!("{WORK}\n{error}");
        assert_eq!(ended(&after, ProcessExit::Code(1), ""), Ending::Error("Not logged in".into()));
    }

    #[test]
    fn a_limit_with_a_time_is_a_wait() {
        let lines = format!("{LIMIT}\n{}", result(true, "You've hit your limit"));
        assert!(matches!(ended(&lines, ProcessExit::Code(1), ""), Ending::UsageLimit { worked: false, .. }));
        let lines = format!("{WORK}\n{lines}");
        assert!(matches!(ended(&lines, ProcessExit::Code(1), ""), Ending::UsageLimit { worked: true, .. }));
        for (at, is_known) in [
            ("1795298091.5", true),
            ("1795298091000", true),
            ("99999999999999999", false),
            ("-5", false),
            ("\"soon\"", false),
            ("null", false),
        ] {
            let limit = LIMIT.replace("1795298091", at);
            let ending =
                ended(&format!("{limit}\n{}", result(true, "You've hit your limit")), ProcessExit::Code(1), "");
            assert_eq!(matches!(ending, Ending::UsageLimit { .. }), is_known, "{at}");
            assert_eq!(matches!(ending, Ending::Unavailable { .. }), !is_known, "{at}");
        }
        let lines = format!("{LIMIT}\n{}", result(false, "Jan 1st"));
        assert_eq!(ended(&lines, OK, ""), Ending::Reply("Jan 1st".into()));
    }

    #[test]
    fn an_error_that_passes_by_itself_is_recognised_by_its_kind_and_status() {
        let ended = |kind: Option<&str>, status: Option<u64>, text: &str| {
            let said = serde_json::json!({"type": "assistant", "message": {"model": "<synthetic>"}, "error": kind});
            let result = serde_json::json!(
                {"type": "result", "is_error": true, "result": text, "api_error_status": status, "subtype": "success"});
            ended(&format!("{said}\n{result}"), ProcessExit::Code(1), "")
        };
        for (kind, status) in [
            (Some("rate_limit"), Some(429)),
            (Some("server_error"), Some(529)),
            (Some("server_error"), None),
            (Some("unknown"), Some(408)),
            (Some("unknown"), Some(500)),
            (None, Some(503)),
        ] {
            let ending = ended(kind, status, "words");
            assert_eq!(ending, Ending::Unavailable { why: "words".into(), worked: false }, "{kind:?} {status:?}");
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
            assert_eq!(ended(kind, status, "words"), refused("words", Objection::Start), "{kind:?} {status:?}");
        }
    }

    #[test]
    fn older_versions_tell_it_in_words() {
        let ended = |text: &str| ended(&format!("{WORK}\n{}", result(true, text)), ProcessExit::Code(1), "");
        for text in [
            r#"API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}"#,
            "API Error: 429 {}",
            "API Error: Request rejected (429) · slow down",
            "API Error: Unable to connect to API (ECONNREFUSED)",
            "Request timed out",
        ] {
            assert_eq!(ended(text), Ending::Unavailable { why: text.into(), worked: true });
        }
        for text in ["API Error: 400 {}", "API Error: out of order", "Credit balance is too low", "500", ""] {
            assert!(matches!(ended(text), Ending::Error(_)), "{text}");
        }
    }

    #[test]
    fn without_a_result_it_died_or_refused() {
        let died = |worked, how: &str| Ending::Died { worked, how: how.into() };
        assert_eq!(ended(WORK, ProcessExit::Signal(9), ""), died(true, "claude was killed by signal 9"));
        assert_eq!(ended("", ProcessExit::Signal(9), ""), died(false, "claude was killed by signal 9"));
        assert_eq!(ended("", ProcessExit::Code(143), ""), died(false, "claude ended with exit code 143"));
        assert_eq!(ended(WORK, ProcessExit::Code(1), ""), died(true, "claude ended with exit code 1"));
        let said = "a warning\n  Error: no \u{1b}such tool \n";
        let how = r"claude ended with exit code 1 (Error: no \u{1b}such tool)";
        assert_eq!(ended(WORK, ProcessExit::Code(1), said), died(true, how));
        assert_eq!(ended("", ProcessExit::Unknown, ""), died(false, "claude and its runner were killed"));
        assert_eq!(ended("", ProcessExit::Code(1), "Error: in use\n"), refused("Error: in use", Objection::Unknown));
        let silent = refused("claude ended with exit code 0 and said nothing", Objection::Unknown);
        assert_eq!(ended("", OK, ""), silent);
        let said = "claude ended with exit code 0 after 2 lines that are not what claude prints";
        let garbage = refused(said, Objection::Unknown);
        assert_eq!(ended("hello\nworld\n", OK, ""), garbage);
    }

    #[test]
    fn what_a_refusal_objects_to_follows_from_its_words_and_what_came_before() {
        for (said, objects_to) in [
            ("error: unknown option '--nonsense'", Objection::Start),
            ("Not logged in · Please run /login", Objection::Start),
            ("Error: Session ID 4f2c1a90 is already in use.", Objection::Start),
            ("No conversation found with session ID: 4f2c1a90", Objection::Session),
            ("Error: ENOSPC: no space left on device, write", Objection::Room),
            ("Error: No space left on device (os error 28)", Objection::Room),
            ("Error: No deferred tool marker found in the resumed session.", Objection::Unknown),
            (
                "Error: Input must be provided either through stdin or as a prompt argument when using --print",
                Objection::Unknown,
            ),
            ("claude reported an error without a message", Objection::Unknown),
        ] {
            assert_eq!(objection(&Digest::default(), said), objects_to, "{said}");
        }
        let of_api = ResultEvent { is_error: true, api_error_status: Some(404), ..ResultEvent::default() };
        let deferred = ResultEvent { is_error: true, deferred_call: Some("t1".into()), ..ResultEvent::default() };
        let returned = Returned { call: "t1".into(), text: "Jan 1st".into(), is_error: false };
        for (digest, objects_to) in [
            (Digest { result: Some(deferred), ..Digest::default() }, Objection::Unknown),
            (Digest { result: Some(of_api), ..Digest::default() }, Objection::Start),
            (Digest { worded: true, ..Digest::default() }, Objection::Start),
            (Digest { returned: Some(returned), ..Digest::default() }, Objection::Start),
        ] {
            assert_eq!(objection(&digest, "Error: nothing to go on at"), objects_to, "{digest:?}");
        }
    }

    #[test]
    fn what_was_stopped_is_stopped_unless_it_had_ended_well() {
        let error = result(true, "[Request interrupted by user]");
        assert_eq!(ended(&error, ProcessExit::Stopped, ""), Ending::Stopped { worked: false });
        assert_eq!(ended(WORK, ProcessExit::Stopped, ""), Ending::Stopped { worked: true });
        assert_eq!(ended(WORK, ProcessExit::ShutDown, ""), Ending::ShutDown { worked: true });
        assert_eq!(ended(&result(false, "Jan 1st"), ProcessExit::Stopped, ""), Ending::Reply("Jan 1st".into()));
    }
}
