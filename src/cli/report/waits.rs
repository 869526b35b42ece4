//! Describes in words what agents wait for.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cli::output::format::{self, cut, one_line, time_since};
use crate::cli::report::costs::{limit_usd, usd};
use crate::core::chain::waiting_on::shown_state::ShownState;
use crate::core::chain::waiting_on::{Blocker, Blocking};
use crate::core::id::RequestId;
use crate::core::requests::approval;
use crate::core::requests::question_form::Form;
use crate::core::text::extent;
use crate::core::text::time::on_clock;
use crate::core::waits::conditions::External;
use crate::core::waits::words;
use crate::local_zone::local_zone;

/// Describes what an agent waits for. The text follows "waits for".
pub(crate) fn described(what: &Blocking) -> String {
    described_at(what, Timestamp::now(), &local_zone())
}

fn described_at(what: &Blocking, now: Timestamp, zone: &TimeZone) -> String {
    let asked = asked(what);
    let moment = |at: &Timestamp| format::moment(*at, now, zone);
    match what {
        Blocking::Question { .. } => format!("an answer to {asked}"),
        Blocking::Permission { .. } => format!("approval {asked}"),
        Blocking::Plan { .. } => format!("approval of its plan {asked}"),
        Blocking::External { wait: External::Scheduled(scheduled), .. } => {
            let what = if scheduled.is_job() { "its scheduled job" } else { "its wake-up" };
            format!("{what} at {}: {}", moment(&scheduled.at), cut(&scheduled.prompt, LONG))
        }
        Blocking::External { wait: External::Time(at), .. } => moment(at),
        Blocking::External { wait, conditions } => words::described(wait, conditions, |at| on_clock(at, now, zone)),
        Blocking::UsageLimit { resets_at } => format!("the usage limit to reset at {}", moment(resets_at)),
        Blocking::Retry { at, tries, why } => {
            format!("a retry at {} ({tries} failed so far): {}", moment(at), cut(why, LONG))
        }
        Blocking::Budget { max_usd, spent_usd } => {
            format!("a larger budget: {} of {} spent", usd(*spent_usd), limit_usd(*max_usd))
        }
        Blocking::Parallel { most } => {
            format!("a free slot: the chain's limit of {most} running agents is reached (--max-parallel)")
        }
        Blocking::ParallelTotal { most } => {
            format!("a free slot: the limit of {most} running agents is reached (--max-parallel-total)")
        }
        Blocking::Paused { said, .. } => format!("a person to continue it: {}", cut(said, LONG)),
        Blocking::Agent => "something that only the agent can judge".to_owned(),
    }
}

/// Describes what a person is asked, to follow the question's id. Empty if a person is not asked.
fn asked(what: &Blocking) -> String {
    let noted = |(first, more): (String, Option<String>)| match more {
        Some(more) => format!("{first} ({more})"),
        None => first,
    };
    match what {
        Blocking::Question { id, form } => {
            let Form { question, .. } = form;
            let (first, more) = in_part(*id, question, question.lines().count(), question.chars().count(), LONG);
            let note = form.answer_file.as_ref().and_then(|file| file.note(Timestamp::now()));
            let note = note.map_or_else(String::new, |note| format!(" ({note})"));
            format!("{}: {}{note}", id.short(), noted((first, more)))
        }
        Blocking::Permission { id, tool, input, .. } => {
            let (lines, characters) = extent::extent(input);
            let shown = approval::summary(tool, input);
            let part = in_part(*id, &shown, lines, characters + tool.chars().count() + 2, LONG);
            format!("{}: {}", id.short(), noted(part))
        }
        Blocking::Plan { id, plan } => {
            let text = plan.text.as_deref().unwrap_or_default();
            let part = in_part(*id, plan.summary(), text.lines().count(), text.chars().count(), LONG);
            format!("{}: {}", id.short(), noted(part))
        }
        _ => String::new(),
    }
}

/// The maximum width, in columns, of a text that others wrote.
const LONG: usize = 200;

/// Describes the state of an agent with this blocker, in the words of lists, with the reason.
pub(crate) fn stated(what: &Blocking) -> String {
    let (now, zone) = (Timestamp::now(), local_zone());
    let words = ShownState::blocked_by(what).words(now, &zone);
    match what {
        Blocking::Question { .. } | Blocking::Permission { .. } | Blocking::Plan { .. } => {
            format!("{words} {}", asked(what))
        }
        Blocking::Retry { tries, why, .. } => format!("{words} ({tries} failed so far): {}", cut(why, LONG)),
        Blocking::Budget { max_usd, spent_usd } => {
            format!("{words}: {} of {} spent", usd(*spent_usd), limit_usd(*max_usd))
        }
        Blocking::Paused { said, .. } => format!("{words}: {}", cut(said, LONG)),
        Blocking::UsageLimit { .. } | Blocking::Agent => words,
        Blocking::External { .. } | Blocking::Parallel { .. } | Blocking::ParallelTotal { .. } => {
            format!("{words} {}", waits(what, now, &zone))
        }
    }
}

/// Describes what an agent waits for, with its expiry.
pub(crate) fn with_expiry(what: &Blocking) -> String {
    match what {
        Blocking::Question { form: Form { expires_at: Some(at), .. }, .. } => {
            format!("{} ({})", described(what), format::expiry(*at, Timestamp::now(), &local_zone()))
        }
        _ => described(what),
    }
}

/// Describes what a person is asked and how long ago, or what an agent waits for (to follow "waits") and for how long.
pub(crate) fn with_times(blocker: &Blocker, now: Timestamp, zone: &TimeZone) -> String {
    match &blocker.what {
        Blocking::Question { form: Form { expires_at: Some(at), .. }, .. } => {
            format!(
                "{}, asked {} ago, {}",
                asked(&blocker.what),
                time_since(blocker.since, now),
                format::expiry(*at, now, zone)
            )
        }
        Blocking::Question { .. } | Blocking::Permission { .. } | Blocking::Plan { .. } => {
            format!("{}, asked {} ago", asked(&blocker.what), time_since(blocker.since, now))
        }
        _ => waits(&blocker.what, now, zone),
    }
}

/// Describes what an agent waits for, to follow "waits".
fn waits(what: &Blocking, now: Timestamp, zone: &TimeZone) -> String {
    let preposition = if matches!(what, Blocking::External { wait: External::Time(_), .. }) { "until" } else { "for" };
    format!("{preposition} {}", described_at(what, now, zone))
}

/// The first line of a question, how much more there is, and the command that shows all of it.
pub(crate) fn in_part(
    id: RequestId,
    text: &str,
    lines: usize,
    characters: usize,
    most: usize,
) -> (String, Option<String>) {
    let first = text.trim_start().lines().next().unwrap_or_default();
    let seen = cut(first, most);
    let shown = if seen == one_line(first) { first } else { seen.trim_end_matches('…') };
    let more = extent::hidden(lines, characters, shown);
    // The command comes first, because a narrow terminal cuts the end of the line.
    let more = more.map(|more| format!("agent-cli questions {} shows {}", id.short(), more.trim_start_matches("… ")));
    (seen, more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::FrameId;
    use crate::core::waits::wait_progress::WaitProgress;

    #[test]
    fn whatever_is_not_shown_is_counted() {
        let id = RequestId::random();
        let part = |text: &str| in_part(id, text, text.lines().count(), text.chars().count(), 8);
        let more = |more| Some(format!("agent-cli questions {} shows {more}", id.short()));
        assert_eq!(part("When?"), ("When?".into(), None));
        assert_eq!(part("漢字漢字"), ("漢字漢字".into(), None));
        assert_eq!(part("When exactly?"), ("When ex…".into(), more("6 more characters")));
        assert_eq!(part("漢字漢字漢字"), ("漢字漢…".into(), more("3 more characters")));
        assert_eq!(part("When?\nWhere?"), ("When?".into(), more("1 more line, 7 characters")));
    }

    #[test]
    fn a_wait_says_since_when_or_until_when() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = time("2026-11-22T09:49:00Z");
        let said = |what| {
            with_times(
                &Blocker { frame: FrameId::random(), since: time("2026-11-22T07:49:00Z"), what },
                now,
                &TimeZone::UTC,
            )
        };
        let external = |wait: External| {
            let conditions = words::states(&wait, &WaitProgress::default(), now);
            Blocking::External { wait, conditions }
        };
        let at = |text: &str| said(external(External::Time(time(text))));
        assert_eq!(at("2026-11-22T11:49:30Z"), "until 11:49 (in 2 h 1 min)");
        assert_eq!(at("2026-12-24T18:00:00Z"), "until 2026-12-24 18:00 (in 32 d)");
        assert_eq!(at("2026-11-22T09:00:00Z"), "until 09:00");
        let (file, noon) = (External::File("/a".into()), External::Time(time("2026-11-22T12:00:00Z")));
        let either = external(External::Any(vec![file, noon.clone()]));
        assert_eq!(said(either), "for any of 2 conditions: the file /a; the time 12:00 (in 2 h 11 min)");
        assert_eq!(described_at(&external(noon), now, &TimeZone::UTC), "12:00 (in 2 h 11 min)", "after waits for");
        let id = RequestId::random();
        let question = said(Blocking::Question { id, form: Form::text("When?") });
        assert_eq!(question, format!("{}: When?, asked 2 h ago", id.short()));
        let form = Form { expires_at: Some(time("2026-11-22T11:49:00Z")), ..Form::text("When?") };
        let question = said(Blocking::Question { id, form });
        let expected = format!("{}: When?, asked 2 h ago, expires 11:49 (in 2 h)", id.short());
        assert_eq!(question, expected);
        let limit = said(Blocking::UsageLimit { resets_at: time("2026-11-22T09:59:00Z") });
        assert_eq!(limit, "for the usage limit to reset at 09:59 (in 10 min)");
    }
}
