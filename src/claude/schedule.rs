//! Claude Code's own tools for a prompt at a later time, ScheduleWakeup and CronCreate: what an agent asks for with them,
//! and what it is told.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::core::cron_expression::CronExpression;
use crate::core::scheduled::{Scheduled, Scheduler};

/// The tool that has an agent called back after a delay.
pub const SCHEDULE_WAKEUP: &str = "ScheduleWakeup";
/// The tool that makes a job.
pub const CRON_CREATE: &str = "CronCreate";
/// The tool that removes one.
pub const CRON_DELETE: &str = "CronDelete";

/// What becomes of a call of CronCreate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// It is due once.
    OneShot,
    /// It is due again and again, or it is kept for other sessions.
    Lasting,
}

/// The prompt that a call of ScheduleWakeup wants, which is made `now`. `None`: it ends such calls, or Claude Code refuses it.
#[must_use]
pub fn wakeup(input: &Value, now: Timestamp, zone: &TimeZone) -> Option<Scheduled> {
    let delay = &input["delaySeconds"];
    let delay = delay.as_f64().or_else(|| delay.as_str()?.trim().parse().ok()).filter(|delay| !delay.is_nan())?;
    let prompt = input["prompt"].as_str().filter(|_| input["stop"] != true)?.to_owned();
    // The bounds of the tool.
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

/// What kind of job a call of CronCreate makes. Claude Code takes one for recurring that does not say.
#[must_use]
pub fn kind(input: &Value) -> Job {
    if input["recurring"] == false && input["durable"] != true { Job::OneShot } else { Job::Lasting }
}

/// The prompt that a job brings, which CronCreate has made `now`. `None`: it is due again, or nobody knows when.
#[must_use]
pub fn job(input: &Value, response: &Value, now: Timestamp, zone: &TimeZone) -> Option<Scheduled> {
    if response["recurring"] != false {
        return None;
    }
    let told = || Timestamp::from_millisecond(response["nextFireAt"].as_i64()?).ok();
    // Before 2.1.250 the tool does not say when.
    let found = || input["cron"].as_str()?.parse::<CronExpression>().ok()?.next(&now.to_zoned(zone.clone()));
    let at = told().or_else(found)?;
    let by = Scheduler::Job { id: response["id"].as_str()?.to_owned() };
    Some(Scheduled { at, prompt: input["prompt"].as_str()?.to_owned(), by })
}

/// The job that CronDelete has removed.
#[must_use]
pub fn deleted(response: &Value) -> Option<&str> {
    response["id"].as_str()
}
