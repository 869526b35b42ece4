//! What happened to an agent, as people read it.

use jiff::Timestamp;
use serde_json::Value;

use crate::cli::output::format::{age, one_line};

/// Older events are in `--json`.
const MOST: usize = 30;

/// The newest events as lines, oldest first, each with how long ago it was.
pub(crate) fn lines<'a>(
    events: impl ExactSizeIterator<Item = (Timestamp, &'a str, &'a Value)>,
    now: Timestamp,
) -> Vec<String> {
    let earlier = events.len().saturating_sub(MOST);
    let more = (earlier > 0).then(|| format!("… {earlier} earlier: --json has them"));
    let shown = events.skip(earlier).map(|(at, kind, detail)| format!("{} ago: {}", age(at, now), words(kind, detail)));
    more.into_iter().chain(shown).collect()
}

fn words(kind: &str, detail: &Value) -> String {
    let text = |value: &Value| value.as_str().map(one_line);
    let short = |value: &Value| text(value).map(|id| id.chars().take(8).collect::<String>()).unwrap_or_default();
    let state = || text(&detail["to"]["state"]).unwrap_or_default();
    match kind {
        "created" => format!("created, {}", state()),
        "began" => match text(&detail["from"]["state"]).as_deref() {
            Some("ready") => "began".to_owned(),
            _ => "continued".to_owned(),
        },
        "requested" => format!("{} ({})", requested(&detail["detail"]), short(&detail["request"])),
        "ended" => {
            let outcome = text(&detail["outcome"]).unwrap_or_default();
            let discarded = if detail["kept"] == false { ", discarded" } else { "" };
            format!("ended its turn: {outcome}{discarded}, {}", state())
        }
        "answered" | "answer_replaced" => {
            let verb = if kind == "answered" { "answered" } else { "given another answer to" };
            format!("was {verb} {}{}", short(&detail["request"]), by(&detail["by"]))
        }
        "stopped" | "paused" => {
            let reason = text(&detail["reason"]).map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("was {kind}{}{reason}", by(&detail["by"]))
        }
        "put_off" => format!("could not be started: {}", text(&detail["why"]).unwrap_or_default()),
        "tried_again" => format!("is to be retried, {}", state()),
        "expired" => match text(&detail["default"]) {
            Some(default) => format!("got the default of {}, which expired: {default}", short(&detail["request"])),
            None => format!("got no answer to {}, which expired", short(&detail["request"])),
        },
        "wait_over" => format!("got what it waited for ({})", short(&detail["request"])),
        "withdrawn" => format!("no longer asks for {}", short(&detail["request"])),
        "permission_used" => "made the call that was allowed".to_owned(),
        "name_lost" => {
            format!("is no longer named {}: {} is", text(&detail["name"]).unwrap_or_default(), short(&detail["to"]))
        }
        "limits" => "was given other limits".to_owned(),
        "launch" => "was given other launch options".to_owned(),
        "message" => format!("was sent a message{}", by(&detail["by"])),
        "instructed" => "was given a new instruction".to_owned(),
        other => one_line(&other.replace('_', " ")),
    }
}

fn requested(detail: &Value) -> String {
    let named = detail.as_object().and_then(|object| object.iter().next());
    match named.map(|(kind, value)| (kind.as_str(), value)) {
        Some(("ask", ask)) => format!("asked: {}", one_line(ask["question"].as_str().unwrap_or_default())),
        Some(("spawn", spawn)) => format!("started {}", one_line(spawn["task"].as_str().unwrap_or_default())),
        Some(("wait", _)) => "began to wait".to_owned(),
        Some(("permission", call)) => {
            format!("asked for an approval of {}", one_line(call["tool"].as_str().unwrap_or_default()))
        }
        Some(("plan", _)) => "asked for an approval of its plan".to_owned(),
        _ => "made a request".to_owned(),
    }
}

/// Who did it, as far as that was recorded.
fn by(origin: &Value) -> String {
    if let Some(agent) = origin["agent"].as_str() {
        return format!(" by agent {}", one_line(&agent.chars().take(8).collect::<String>()));
    }
    let user = origin["user"].as_str().map(|user| format!(" by {}", one_line(user))).unwrap_or_default();
    let file = origin["file"]["path"].as_str().map(|path| format!(" in the file {}", one_line(path)));
    user + &file.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_a_sentence_without_its_subject() {
        let id = "4f2c1a90-0000-4000-8000-000000000001";
        for (kind, detail, expected) in [
            ("created", json!({"to": {"state": "ready"}}), "created, ready"),
            ("began", json!({"from": {"state": "ready"}}), "began"),
            (
                "requested",
                json!({"request": id, "detail": {"ask": {"question": "When?\u{1b}"}}}),
                "asked: When?\\u{1b} (4f2c1a90)",
            ),
            (
                "ended",
                json!({"outcome": "reply", "kept": false, "to": {"state": "done"}}),
                "ended its turn: reply, discarded, done",
            ),
            ("answered", json!({"request": id, "by": {"user": "me"}}), "was answered 4f2c1a90 by me"),
            ("answered", json!({"request": id, "by": {"agent": id}}), "was answered 4f2c1a90 by agent 4f2c1a90"),
            ("of_next_year", json!(7), "of next year"),
        ] {
            assert_eq!(words(kind, &detail), expected);
        }
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let (now, detail) = (Timestamp::UNIX_EPOCH, json!({}));
        let events = vec![(now, "joined", &detail); 32];
        let lines = lines(events.into_iter(), now);
        assert_eq!((lines.len(), lines[0].as_str()), (31, "… 2 earlier: --json has them"));
        assert_eq!(lines[1], "0 s ago: joined");
    }
}
