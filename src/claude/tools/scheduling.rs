//! ScheduleWakeup and CronCreate, Claude Code's own tools for a prompt at a later time: what an agent asks for with them, and
//! the results.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::core::requests::cron_expression::CronExpression;
use crate::core::waits::scheduled::{Scheduled, Scheduler};

/// The tool that wakes an agent after a delay.
pub(crate) const SCHEDULE_WAKEUP: &str = "ScheduleWakeup";
/// The tool that creates a job.
pub(crate) const CRON_CREATE: &str = "CronCreate";
/// The tool that deletes one.
pub(crate) const CRON_DELETE: &str = "CronDelete";

/// What a call of CronCreate creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// A job that is due once.
    OneShot,
    /// A job that is due repeatedly, or that is kept for other sessions.
    Lasting,
}

/// The prompt that a call of ScheduleWakeup made `now` asks for. `None`: it cancels such calls, or Claude Code refuses it.
pub(crate) fn wakeup(input: &Value, now: Timestamp, zone: &TimeZone) -> Option<Scheduled> {
    let delay = &input["delaySeconds"];
    let delay = delay.as_f64().or_else(|| delay.as_str()?.trim().parse().ok()).filter(|delay| !delay.is_nan())?;
    let prompt = input["prompt"].as_str().filter(|_| input["stop"] != true)?.to_owned();
    // The tool's own bounds.
    let seconds = delay.clamp(60.0, 3_600.0).round();
    let at = now.checked_add(SignedDuration::from_secs_f64(seconds)).ok()?;
    Some(Scheduled { at, prompt, by: Scheduler::Wakeup { returns: returned(at, seconds, zone) } })
}

/// What the tool itself returns, in the words of 2.1.330.
fn returned(at: Timestamp, seconds: f64, zone: &TimeZone) -> String {
    let clock = at.to_zoned(zone.clone()).strftime("%H:%M:%S");
    format!(
        "Next wakeup scheduled for {clock} (in {seconds}s). If you owe the user a status update this tick, write it now as \
         ordinary response text; then end the turn — the harness re-invokes you when the wakeup fires or a task-notification \
         arrives."
    )
}

/// What kind of job a call of CronCreate creates. Claude Code's default is recurring.
pub(crate) fn kind(input: &Value) -> Job {
    if input["recurring"] == false && input["durable"] != true { Job::OneShot } else { Job::Lasting }
}

/// The prompt of a job that CronCreate created `now`. `None`: it recurs, or its time is unknown.
pub(crate) fn job(input: &Value, response: &Value, now: Timestamp, zone: &TimeZone) -> Option<Scheduled> {
    if response["recurring"] != false {
        return None;
    }
    let announced = || Timestamp::from_millisecond(response["nextFireAt"].as_i64()?).ok();
    // Before 2.1.250 the tool does not return the time.
    let found = || input["cron"].as_str()?.parse::<CronExpression>().ok()?.next(&now.to_zoned(zone.clone()));
    let at = announced().or_else(found)?;
    let by = Scheduler::Job { id: response["id"].as_str()?.to_owned() };
    Some(Scheduled { at, prompt: input["prompt"].as_str()?.to_owned(), by })
}

/// The job that CronDelete deleted.
pub(crate) fn deleted(response: &Value) -> Option<&str> {
    response["id"].as_str()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn asked(input: &Value) -> Option<Scheduled> {
        wakeup(input, NOW, &TimeZone::UTC)
    }

    #[test]
    fn a_wakeup_is_within_the_bounds_of_the_tool() {
        for (delay, seconds) in [
            (json!(1200), 1200),
            (json!(59.6), 60),
            (json!(90.4), 90),
            (json!(-5), 60),
            (json!(1e300), 3600),
            (json!("120"), 120),
            (json!(" inf "), 3600),
        ] {
            let wanted = asked(&json!({"delaySeconds": delay, "prompt": "look", "reason": "x"})).unwrap();
            assert_eq!((wanted.at.as_second(), wanted.prompt.as_str()), (seconds, "look"), "{delay}");
        }
        let wanted = asked(&json!({"delaySeconds": 1200, "prompt": "look"})).unwrap();
        assert!(
            matches!(&wanted.by, Scheduler::Wakeup { returns } if returns.starts_with("Next wakeup scheduled for 00:20:00 (in 1200s). If")),
            "{wanted:?}"
        );
    }

    #[test]
    fn what_claude_code_refuses_and_an_end_are_no_wakeup() {
        for input in [
            Value::Null,
            json!({"stop": true}),
            json!({"delaySeconds": 60, "prompt": "look", "stop": true}),
            json!({"delaySeconds": 60}),
            json!({"delaySeconds": "soon", "prompt": "look"}),
            json!({"delaySeconds": "nan", "prompt": "look"}),
            json!({"delaySeconds": null, "prompt": "look"}),
            json!({"delaySeconds": 60, "prompt": ["look"]}),
        ] {
            assert_eq!(asked(&input), None, "{input}");
        }
    }

    #[test]
    fn a_job_is_due_when_the_tool_says_or_else_when_its_expression_does() {
        let input = json!({"cron": "5 0 * * *", "prompt": "look", "recurring": false});
        let made = |response: Value| job(&input, &response, NOW, &TimeZone::UTC);
        let older = json!({"id": "j1", "humanSchedule": "x", "recurring": false, "durable": false});
        assert_eq!(made(older.clone()).unwrap().at.as_second(), 300);
        let mut newer = older.clone();
        newer["nextFireAt"] = json!(7_000);
        let by = Scheduler::Job { id: "j1".into() };
        assert_eq!(made(newer), Some(Scheduled { at: Timestamp::from_second(7).unwrap(), prompt: "look".into(), by }));
        let mut recurring = older;
        recurring["recurring"] = json!(true);
        assert_eq!(made(recurring), None);
        assert_eq!(made(json!("Too many")), None);
    }

    #[test]
    fn what_is_not_said_to_be_due_once_recurs() {
        assert_eq!(kind(&json!({"recurring": false})), Job::OneShot);
        assert_eq!(kind(&json!({"recurring": false, "durable": false})), Job::OneShot);
        for lasting in [
            json!({}),
            json!({"recurring": true}),
            json!({"recurring": "false"}),
            json!({"recurring": false, "durable": true}),
        ] {
            assert_eq!(kind(&lasting), Job::Lasting, "{lasting}");
        }
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused(input in crate::core::text::json::any_json(), response in crate::core::text::json::any_json()) {
            let _ = asked(&json!({"delaySeconds": input, "prompt": input}));
            let _ = job(&input, &response, NOW, &TimeZone::UTC);
            let _ = job(&json!({"cron": input, "prompt": "x"}), &json!({"id": "x", "recurring": false, "nextFireAt": response}), NOW, &TimeZone::UTC);
            let _ = (kind(&input), deleted(&response));
        }
    }
}
