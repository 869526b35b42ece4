//! What agents wait for, in words.

use jiff::Timestamp;

use crate::cli::output::format::{cut, one_line};
use crate::core::chain::waiting_on::Blocking;
use crate::core::id::RequestId;
use crate::core::requests::approval;
use crate::core::requests::question::Form;
use crate::core::text::extent;
use crate::core::waits::conditions::External;
use crate::core::waits::words;

/// What a frame waits for, in words.
pub(crate) fn described(what: &Blocking) -> String {
    const LONG: usize = 200;
    match what {
        Blocking::Question { id, form } => {
            let Form { question, .. } = form;
            let (first, more) = in_part(*id, question, question.lines().count(), question.chars().count(), LONG);
            let noted = form.answer_file.as_ref().and_then(|file| file.note(Timestamp::now()));
            let notes = more.into_iter().chain(noted);
            let notes: String = notes.map(|note| format!(" ({note})")).collect();
            format!("an answer to {}: {first}{notes}", id.short())
        }
        Blocking::Permission { id, tool, input, .. } => {
            let (lines, characters) = extent::extent(input);
            let shown = approval::summary(tool, input);
            let (first, more) = in_part(*id, &shown, lines, characters + tool.chars().count() + 2, LONG);
            format!("approval {}: {first}{}", id.short(), more.map_or_else(String::new, |more| format!(" ({more})")))
        }
        Blocking::Plan { id, plan } => {
            let text = plan.text.as_deref().unwrap_or_default();
            let (first, more) = in_part(*id, plan.summary(), text.lines().count(), text.chars().count(), LONG);
            format!(
                "approval {} of its plan: {first}{}",
                id.short(),
                more.map_or_else(String::new, |more| format!(" ({more})"))
            )
        }
        Blocking::External { wait: External::Scheduled(scheduled), .. } => {
            let what = if scheduled.is_job() { "its scheduled job" } else { "its wake-up" };
            format!("{what} at {:.0}: {}", scheduled.at, cut(&scheduled.prompt, LONG))
        }
        Blocking::External { wait, conditions } => words::described(wait, conditions),
        Blocking::UsageLimit { resets_at } => format!("the usage limit to reset at {resets_at:.0}"),
        Blocking::Retry { at, tries, why } => {
            format!("a retry at {at:.0} ({tries} failed so far): {}", cut(why, LONG))
        }
        Blocking::Budget { max_usd, spent_usd } => {
            format!("a larger budget: ${spent_usd:.4} of ${max_usd:.4} spent")
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

/// The first line of a question, how much more there is, and the command that shows it.
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
    // The command comes first, because a narrow terminal cuts the end.
    let more = more.map(|more| format!("agent-cli questions {} shows {}", id.short(), more.trim_start_matches("… ")));
    (seen, more)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
