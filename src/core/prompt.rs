//! What an agent is told: the first prompt of a frame, and the prompt that wakes it.

use super::frame::{Frame, Task, Trouble};
use super::request::{Delivery, RequestResult, Wish};
use super::signal;
use super::worktree::Worktree;

/// How an agent is told what it was waiting for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Its suspended tool call returns the result: there is nothing to say.
    Call,
    /// Its suspended tool calls have their results when it is told to go on.
    Calls,
    /// The call that it was stopped at is open again, and decided on when it is come to once more.
    Permission {
        /// The call.
        call: String,
    },
    /// With a prompt.
    Prompt,
}

/// How the next attempt of `frame` is told what came of its requests, and `notices` beside that. `hooks`: whether a suspended call can be answered.
#[must_use]
pub fn telling(frame: &Frame, deliveries: &[Delivery], notices: &[String], hooks: bool) -> Telling {
    let permission = deliveries.iter().find(|delivery| matches!(delivery.wish, Wish::Permission { .. }));
    if let (true, Some(call)) = (hooks, permission.and_then(|delivery| delivery.call.clone())) {
        return Telling::Permission { call };
    }
    let of_suspended = |delivery: &Delivery| delivery.call.is_some() && delivery.call == frame.suspended;
    if deliveries.iter().all(|delivery| delivery.call.is_none()) {
        Telling::Prompt
    } else if hooks && notices.is_empty() && deliveries.iter().all(of_suspended) && is_returned(deliveries) {
        Telling::Call
    } else {
        Telling::Calls
    }
}

/// Whether the call that made these requests can return what came of them as it is.
///
/// The Bash tool takes blanks off both ends of what a command prints, and says something of its own where nothing is left.
/// Of both tools, longer results are put into a file.
fn is_returned(deliveries: &[Delivery]) -> bool {
    const MOST: usize = 30_000;
    let printed_unchanged = |text: &str| !text.is_empty() && text.trim() == text && !text.contains('\0');
    let mut length = 0;
    deliveries.iter().all(|delivery| {
        let (RequestResult::Text(text) | RequestResult::Failed(text)) = &delivery.result;
        length += text.len();
        length <= MOST && (delivery.wish.native_question().is_some() || printed_unchanged(text))
    })
}

/// The first prompt of a frame. `deliveries` and `notices` are of an attempt that has left no conversation.
#[must_use]
pub fn first(frame: &Frame, deliveries: &[Delivery], notices: &[String]) -> String {
    let sections = notices.iter().cloned().chain(deliveries.iter().map(section));
    std::iter::once(beginning(frame)).chain(sections).collect::<Vec<_>>().join("\n\n")
}

fn beginning(frame: &Frame) -> String {
    let task = of_task(&frame.task);
    match &frame.launch.worktree {
        // The conversation speaks of the files that it was held among.
        Some(Worktree { path, branch, .. }) if frame.baseline.is_some() => format!(
            "{task}\n\nYou work in a git worktree of your own from now on, {}, on the branch {branch}. Read and change \
             the files there, not those that this conversation has named so far.",
            path.display()
        ),
        _ => task,
    }
}

fn of_task(task: &Task) -> String {
    match task {
        Task::File(path) => format!("Read {} and follow its instructions.", path.display()),
        // Claude Code takes a prompt that begins like this for a command, but not after a line break.
        Task::Prompt(text) if text.starts_with('/') => format!("\n{text}"),
        Task::Prompt(text) => text.clone(),
        // Nobody is there to be told.
        Task::Group(_) => String::new(),
    }
}

/// The prompt that wakes an agent: what it has to know besides, and what came of its requests.
///
/// The first line is `SGN_RESUME`. A prompt with nothing else asks the agent to look for itself whether its wait is
/// over.
#[must_use]
pub fn resume(deliveries: &[Delivery], notices: &[String]) -> String {
    let sections = notices.iter().cloned().chain(deliveries.iter().map(section));
    std::iter::once(signal::RESUME.to_owned()).chain(sections).collect::<Vec<_>>().join("\n\n")
}

/// The prompt that makes an agent go on whose calls have got their results: the rest that it is to know.
#[must_use]
pub fn go_on(others: &[Delivery], notices: &[String]) -> String {
    let results = "The calls that were open when you stopped have their results now: go on from there.";
    let sections = notices.iter().cloned().chain([results.to_owned()]).chain(others.iter().map(section));
    std::iter::once(signal::RESUME.to_owned()).chain(sections).collect::<Vec<_>>().join("\n\n")
}

/// What an agent is told of an attempt that ended badly.
#[must_use]
pub fn of_trouble(trouble: &Trouble) -> String {
    let what = trouble.what.trim_end_matches('.');
    let go_on = if trouble.lost {
        "This conversation has nothing of what you did in it."
    } else {
        "Carry on where you stopped."
    };
    let calls = match trouble.calls.as_slice() {
        [] => String::new(),
        [call] => {
            format!(" This tool call was made then and may have taken effect, so check before you repeat it:\n{call}")
        }
        calls => format!(
            " These tool calls were made then and may have taken effect, so check before you repeat them:\n{}",
            calls.join("\n")
        ),
    };
    format!("Your last turn was cut short: {what}. {go_on}{calls}")
}

/// Whether Claude Code could take a word of a prompt for the name of a file to be read into the conversation.
#[must_use]
pub fn has_mention(text: &str) -> bool {
    let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    text.match_indices('@').any(|(at, _)| text[..at].chars().next_back().is_none_or(is_blank))
}

/// What stands above the result of a request in a prompt, and nowhere before.
#[must_use]
pub fn heading(delivery: &Delivery) -> String {
    let (command, id) = (delivery.wish.command(), delivery.known_as());
    let how = match &delivery.result {
        RequestResult::Text(_) => "",
        RequestResult::Failed(_) => ", which failed",
    };
    format!("result of `{command}` ({id}){how}:")
}

fn section(delivery: &Delivery) -> String {
    let (RequestResult::Text(text) | RequestResult::Failed(text)) = &delivery.result;
    format!("{}\n{text}", heading(delivery))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::core::id::RequestId;

    fn answer(text: &str) -> Delivery {
        Delivery {
            request: RequestId("4f2c1a90-0000-4000-8000-000000000000".parse().unwrap()),
            call: None,
            wish: Wish::Ask { question: "When is your birthday?".into(), choices: None },
            result: RequestResult::Text(text.into()),
        }
    }

    #[test]
    fn the_first_prompt_names_the_file() {
        let task = Task::File(PathBuf::from("/my dir/ins1.md"));
        assert_eq!(of_task(&task), "Read /my dir/ins1.md and follow its instructions.");
    }

    #[test]
    fn a_first_prompt_is_no_command() {
        assert_eq!(of_task(&Task::Prompt("/compact is a word".into())), "\n/compact is a word");
        assert_eq!(of_task(&Task::Prompt(" say /help\n".into())), " say /help\n");
    }

    #[test]
    fn a_mention_begins_a_word() {
        for text in ["@a", "read @a", "read\n@a", "read\u{a0}@a"] {
            assert!(has_mention(text), "{text}");
        }
        for text in ["", "me@home", "(@a)", "`@a`"] {
            assert!(!has_mention(text), "{text}");
        }
    }

    #[test]
    fn a_resumed_agent_gets_each_result_after_its_request() {
        insta::assert_snapshot!(resume(&[answer("Jan 1st"), answer("SGN_PEND_STARTED")], &[]), @r#"
        SGN_RESUME

        result of `agent-cli ask "When is your birthday?"` (4f2c1a90):
        Jan 1st

        result of `agent-cli ask "When is your birthday?"` (4f2c1a90):
        SGN_PEND_STARTED
        "#);
    }

    #[test]
    fn an_interrupted_agent_is_told_what_is_uncertain() {
        let calls = vec!["Bash: git push".to_owned()];
        let mut trouble = Trouble { what: "claude was killed by signal 9".into(), calls, lost: false };
        insta::assert_snapshot!(resume(&[], &[of_trouble(&trouble)]), @r"
        SGN_RESUME

        Your last turn was cut short: claude was killed by signal 9. Carry on where you stopped. This tool call was made then and may have taken effect, so check before you repeat it:
        Bash: git push
        ");
        trouble.calls.push("Bash: make".into());
        trouble.lost = true;
        insta::assert_snapshot!(of_trouble(&trouble), @r"
        Your last turn was cut short: claude was killed by signal 9. This conversation has nothing of what you did in it. These tool calls were made then and may have taken effect, so check before you repeat them:
        Bash: git push
        Bash: make
        ");
    }

    #[test]
    fn a_wait_that_the_agent_judges_is_asked_about_with_the_signal_alone() {
        assert_eq!(resume(&[], &[]), "SGN_RESUME");
    }
}
