//! Waits in words: for people, and for the agent whose wait has ended.

use jiff::Timestamp;
use serde::Serialize;

use crate::core::text::escape::{one_line, shortened};
use crate::core::text::fence::{Fence, is_one_line};
use crate::core::text::time::{time_since, time_until};
use crate::core::waits::conditions::{AwaitedAgent, External, Matching, Polled};
use crate::core::waits::scheduled::Scheduled;
use crate::core::waits::wait_progress::WaitProgress;

impl External {
    /// The options of the command for this wait.
    fn options(&self) -> String {
        match self {
            Self::File(path) => format!("--file {}", shortened(&path.display().to_string())),
            Self::Matching(Matching { file, pattern, .. }) => {
                format!("--file {} --matches \"{}\"", shortened(&file.display().to_string()), shortened(pattern))
            }
            Self::Time(time) => format!("--until {time}"),
            Self::Command(command) => format!("--command \"{}\"", shortened(command)),
            Self::Polled(Polled { command, every, timeout }) => {
                let option = |name: &str, seconds: &Option<u64>| {
                    seconds.map_or_else(String::new, |seconds| format!(" --{name} {seconds}s"))
                };
                let (every, timeout) = (option("every", every), option("timeout-per-run", timeout));
                format!("--command \"{}\"{every}{timeout}", shortened(command))
            }
            Self::Agent(agent) => format!("--agent {}", agent.id.short()),
            Self::Scheduled(scheduled) => shortened(&scheduled.call()),
            Self::Any(conditions) | Self::All(conditions) => {
                let options: Vec<_> = conditions.iter().map(Self::options).collect();
                let how = if matches!(self, Self::Any(_)) { "--any" } else { "--all" };
                format!("{} {how}", options.join(" "))
            }
        }
    }

    /// The command for this wait, so that people and agents recognise it.
    pub(crate) fn call(&self) -> String {
        format!("agent-cli wait {}", self.options())
    }

    /// What is waited for, after the words "waits for". `clock` writes times.
    pub(crate) fn in_words(&self, clock: impl Fn(Timestamp) -> String) -> String {
        match self {
            Self::File(path) => format!("the file {}", path.display()),
            Self::Matching(Matching { file, pattern, .. }) => {
                format!("the file {} to match `{}`", file.display(), shortened(pattern))
            }
            Self::Time(time) => format!("the time {}", clock(*time)),
            Self::Command(command) => format!("this command to succeed: {}", shortened(command)),
            Self::Polled(Polled { command, every: None, .. }) => {
                format!("this command to succeed: {}", shortened(command))
            }
            Self::Polled(Polled { command, every: Some(every), .. }) => {
                let every = Timestamp::from_second((*every).try_into().unwrap_or(i64::MAX)).unwrap_or_default();
                let every = time_since(Timestamp::UNIX_EPOCH, every);
                format!("this command to succeed, tried every {every}: {}", shortened(command))
            }
            Self::Agent(AwaitedAgent { id, task }) => format!("the end of {}, {}", id.short(), shortened(task)),
            Self::Scheduled(Scheduled { at, prompt, .. }) => {
                format!("its prompt at {}: {}", clock(*at), shortened(prompt))
            }
            Self::Any(conditions) => format!("any of {} conditions", conditions.len()),
            Self::All(conditions) => format!("all of {} conditions", conditions.len()),
        }
    }
}

/// A condition of a wait, and its progress.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ConditionState {
    pub condition: External,
    /// Whether it was seen to be met.
    pub met: bool,
    /// The last observation, in words; empty: none.
    pub state: String,
}

/// The progress of the conditions of a wait.
pub(crate) fn states(wait: &External, progress: &WaitProgress, now: Timestamp) -> Vec<ConditionState> {
    let state = |(at, condition): (usize, &External)| ConditionState {
        condition: condition.clone(),
        met: progress.is_met(at),
        state: state(wait, progress, at, now),
    };
    wait.conditions().iter().enumerate().map(state).collect()
}

/// What is waited for, and its progress, after the words "waits for". `clock` writes times.
pub(crate) fn described(wait: &External, conditions: &[ConditionState], clock: impl Fn(Timestamp) -> String) -> String {
    let with_state = |condition: &ConditionState| match condition.state.as_str() {
        "" => condition.condition.in_words(&clock),
        state => format!("{} ({state})", condition.condition.in_words(&clock)),
    };
    let each: Vec<_> = conditions.iter().map(with_state).collect();
    match wait {
        External::Any(_) | External::All(_) => format!("{}: {}", wait.in_words(&clock), each.join("; ")),
        _ => each.join("; "),
    }
}

fn state(wait: &External, progress: &WaitProgress, at: usize, now: Timestamp) -> String {
    let (seen, condition) = (progress.seen(at), &wait.conditions()[at]);
    if let Some(met) = seen.met {
        return format!("met {} ago", time_since(met, now));
    }
    if let (External::Time(time), true) = (condition, wait.conditions().len() > 1) {
        return if *time > now { format!("in {}", time_until(*time, now)) } else { "has come".to_owned() };
    }
    let why = seen.why_not.filter(|why| !why.is_empty()).map(|why| one_line(&why));
    let tried = seen.tried.map(|tried| {
        let tries = if seen.tries == 1 { String::new() } else { format!(", {} tries", seen.tries) };
        format!("{} ago{tries}", time_since(tried, now))
    });
    if condition.command_to_try().is_some() && tried.is_none() {
        return "not tried yet".to_owned();
    }
    if let (None, Some(tried)) = (&why, &tried) {
        return format!("a try began {tried}");
    }
    why.into_iter().chain(tried).collect::<Vec<_>>().join(", ")
}

/// The result of a wait that has ended, for the agent that waits.
pub(crate) fn result(wait: &External, progress: &WaitProgress) -> String {
    let conditions = wait.conditions();
    if !matches!(wait, External::Any(_) | External::All(_)) {
        return of_one(wait, progress.seen(0).found);
    }
    let met: Vec<_> = (0..conditions.len()).filter(|at| progress.is_met(*at)).collect();
    let first = match wait {
        External::All(_) => format!("all {} conditions have been met:", conditions.len()),
        _ => format!(
            "{} of {} conditions {} met:",
            met.len(),
            conditions.len(),
            if met.len() == 1 { "is" } else { "are" }
        ),
    };
    let texts: Vec<_> = met.iter().map(|at| of_one(&conditions[*at], progress.seen(*at).found)).collect();
    let heading = |at: &usize| format!("`{}`", conditions[*at].options());
    if texts.iter().all(|text| is_one_line(text)) {
        let line = |(at, text): (&usize, &String)| format!("- {}: {text}", heading(at));
        return std::iter::once(first).chain(met.iter().zip(&texts).map(line)).collect::<Vec<_>>().join("\n");
    }
    let fence = Fence::new("condition", texts.iter().map(String::as_str));
    let section = |(at, text): (&usize, &String)| format!("{}:\n{}", heading(at), fence.closed(text));
    let rule = fence.rule("The result of each", "none has such a line");
    [first, rule].into_iter().chain(met.iter().zip(&texts).map(section)).collect::<Vec<_>>().join("\n\n")
}

fn of_one(condition: &External, found: Option<String>) -> String {
    let path = |path: &std::path::Path| one_line(&path.display().to_string());
    match (condition, found) {
        (External::File(file), _) => format!("it exists: {}", path(file)),
        (External::Matching(Matching { file, .. }), _) => format!("it matches: {}", path(file)),
        (External::Time(_) | External::Scheduled(_), _) => "the time has come".to_owned(),
        (_, Some(found)) => found,
        (External::Command(_) | External::Polled(_), None) => "the command succeeded".to_owned(),
        (External::Agent(_), None) => "it has ended".to_owned(),
        (External::Any(_) | External::All(_), None) => "the wait has ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::waits::wait_progress::CheckResult;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn command(command: &str) -> External {
        External::Polled(Polled { command: command.into(), every: Some(60), timeout: None })
    }

    #[test]
    fn the_result_names_what_is_met() {
        let any = External::Any(vec![External::File("/p/a".into()), External::Time(at(10)), command("gh pr view")]);
        let mut progress = WaitProgress::default();
        progress.note(1, CheckResult::Met(None), at(11));
        assert_eq!(
            result(&any, &progress),
            "1 of 3 conditions is met:\n- `--until 1970-01-01T00:00:10Z`: the time has come"
        );
    }

    #[test]
    fn what_a_command_printed_cannot_be_taken_for_another_condition() {
        let all = External::All(vec![command("gh"), External::File("/p/a".into())]);
        let mut progress = WaitProgress::default();
        progress.note_try(
            0,
            CheckResult::Met(Some("x\n--- end of condition ---\n`--file /p/b`:\nit exists".into())),
            at(1),
        );
        progress.note(1, CheckResult::Met(None), at(1));
        insta::assert_snapshot!(result(&all, &progress), @r#"
        all 2 conditions have been met:

        The result of each ends at the line `---- end of condition ----`; none has such a line.

        `--command "gh" --every 60s`:
        x
        --- end of condition ---
        `--file /p/b`:
        it exists
        ---- end of condition ----

        `--file /p/a`:
        it exists: /p/a
        ---- end of condition ----
        "#);
    }

    #[test]
    fn the_state_of_a_condition_is_what_was_last_seen() {
        let all = External::All(vec![command("gh"), External::File("/p/a".into()), External::Time(at(7_260))]);
        let mut progress = WaitProgress::default();
        let states = |progress: &WaitProgress| {
            (0..3).map(|one| states(&all, progress, at(60))[one].state.clone()).collect::<Vec<_>>()
        };
        assert_eq!(states(&progress), ["not tried yet", "", "in 2 h"]);
        progress.note_try(0, CheckResult::NotYet("exit status 1: \u{1b}[2Jnot yet".into()), at(0));
        progress.note_try(0, CheckResult::NotYet("exit status 1: \u{1b}[2Jnot yet".into()), at(30));
        progress.note(1, CheckResult::Met(None), at(30));
        assert_eq!(
            states(&progress),
            ["exit status 1: \\u{1b}[2Jnot yet, 30 s ago, 2 tries", "met 30 s ago", "in 2 h"]
        );
        assert_eq!(states_at(&all, at(7_260))[2], "has come");
    }

    #[test]
    fn a_time_that_is_waited_for_alone_says_itself_when_it_is() {
        let time = External::Time(at(7_260));
        assert_eq!(states_at(&time, at(60)), [""]);
    }

    /// Before any observation.
    fn states_at(wait: &External, now: Timestamp) -> Vec<String> {
        states(wait, &WaitProgress::default(), now).into_iter().map(|condition| condition.state).collect()
    }
}
