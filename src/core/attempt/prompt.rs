//! Prompts for agents: a frame's first one, and the one that wakes it.

use crate::core::agent::child_worktree::Worktree;
use crate::core::agent::reply_schema::ReplySchema;
use crate::core::attempt::{meaning, signal};
use crate::core::chain::frame::{Frame, Task, Trouble};
use crate::core::requests::request::{Delivery, Request, RequestKind, RequestResult};
use crate::core::steering::fresh_start;
use crate::core::text::escape;
use crate::core::text::fence::{Fence, is_one_line};
use crate::core::waits::scheduled::Scheduled;

/// The information for a fork whose conversation does not say that it is one.
pub(crate) const FORK: &str = "You are a fork of the agent that started you: the conversation before this prompt is its own, and \
    so are the agents that it has started. It gets your reply as the result of its call.";

/// What the call returns in a fork that has made it.
pub(crate) const FORKED_HERE: &str = "This call has started you: you are its fork, and have the conversation up to here. The agent \
    that made it gets your reply as its result. Your task follows; other calls, the agents that they have started and what was to come \
    after this one are not yours.";

/// The same if the caller does not wait.
pub(crate) const FORKED_IN_BACKGROUND: &str = "This call has started you in the background: you are its fork, and have the conversation \
    up to here. The agent that made it works on, and gets your reply later. Your task follows; other calls, the agents that they have \
    started and what was to come after this one are not yours.";

/// What the other calls return in a fork.
pub(crate) const ELSEWHERE: &str =
    "This call belongs to the conversation that yours began with. Its result goes there.";

/// The first prompt of a frame. `deliveries` and `notices` come from an attempt that left no conversation.
pub(crate) fn first(frame: &Frame, deliveries: &[Delivery], notices: &[String]) -> String {
    let task = of_task(&frame.task);
    let shape = frame.launch.schema.as_ref().map(of_schema);
    let before = elsewhere(frame).into_iter().chain(frame.summary().map(fresh_start::opening)).chain(shape);
    let added: Vec<String> = before.chain(notices.iter().cloned()).chain(sections(deliveries)).collect();
    // A task of several lines could run into the text added to it.
    let task = if added.is_empty() || is_one_line(&task) {
        task
    } else {
        let fence = Fence::new("task", [task.as_str()]);
        format!("{}\n\n{}", fence.rule("Your task", "it has no such line"), fence.closed(&task))
    };
    std::iter::once(task).chain(added).collect::<Vec<_>>().join("\n\n")
}

/// The conversation that a frame begins with mentions files in the directory where it was held.
fn elsewhere(frame: &Frame) -> Option<String> {
    let Worktree { path, branch, .. } = frame.launch.worktree.as_ref().filter(|_| frame.baseline.is_some())?;
    Some(format!(
        "You work in a git worktree of your own from now on, {}, on the branch {branch}. Read and change the files there, \
         not those that this conversation has named so far.",
        path.display()
    ))
}

fn of_task(task: &Task) -> String {
    match task {
        Task::File(path) => format!("Read {} and follow its instructions.", path.display()),
        // Claude Code takes a prompt that begins like this for a command, but not after a line break.
        Task::Prompt(text) if text.starts_with('/') => format!("\n{text}"),
        Task::Prompt(text) => text.clone(),
        // A group has no agent.
        Task::Group(_) => String::new(),
    }
}

/// The prompt that wakes an agent: notices, and the results of its requests. If the only results are prompts that it scheduled
/// for this time, the prompt consists of these.
///
/// The first line is `SGN_RESUME`. A prompt with nothing else asks the agent to check for itself whether its wait has ended.
pub(crate) fn resume(deliveries: &[Delivery], notices: &[String]) -> String {
    if let Some(scheduled) = only_scheduled(deliveries, notices) {
        return scheduled;
    }
    let sections = notices.iter().cloned().chain(sections(deliveries));
    std::iter::once(signal::RESUME.to_owned()).chain(sections).collect::<Vec<_>>().join("\n\n")
}

/// The prompts that an agent scheduled, if there is nothing else for it, and they cannot pass for anything else.
fn only_scheduled(deliveries: &[Delivery], notices: &[String]) -> Option<String> {
    let alone = |delivery: &Delivery| delivery.kind.scheduled().filter(|it| it.stands_alone()).map(Scheduled::prompt);
    let prompts: Option<Vec<_>> = deliveries.iter().map(alone).collect();
    prompts.filter(|prompts| !prompts.is_empty() && notices.is_empty()).map(|prompts| prompts.join("\n\n"))
}

/// The prompt that lets an agent continue after its calls have received their results: what else it must know. `others` are
/// results that no call returns, and prompts.
pub(crate) fn go_on(others: &[Delivery], notices: &[String]) -> String {
    if let Some(scheduled) = only_scheduled(others, notices) {
        return scheduled;
    }
    let results = "The calls that were open when you stopped have their results now: continue from there.";
    let sections = notices.iter().cloned().chain([results.to_owned()]).chain(sections(others));
    std::iter::once(signal::RESUME.to_owned()).chain(sections).collect::<Vec<_>>().join("\n\n")
}

/// The requirement for the reply.
fn of_schema(schema: &ReplySchema) -> String {
    format!(
        "When you are done, your last message must be JSON that fits this JSON Schema: the whole message, or a ```json block in it. \
         It is checked.\n{}",
        schema.text()
    )
}

/// What the next prompt of an agent says about its last attempt, if that ended badly. The first prompt of a session has the
/// schema anyway.
pub(crate) fn of_last_attempt(frame: &Frame) -> Option<String> {
    let schema = frame.launch.schema.as_ref().filter(|_| frame.checkpoint.is_some());
    frame.trouble.as_ref().map(|trouble| of_trouble(trouble, schema))
}

/// What an agent is told about an attempt that ended badly. `schema`: that of its replies.
pub(crate) fn of_trouble(trouble: &Trouble, schema: Option<&ReplySchema>) -> String {
    let misfits = &trouble.misfits;
    let is_cut_short = misfits.is_empty() || trouble.lost || trouble.what != meaning::misfit(misfits);
    let cut_short = is_cut_short.then(|| of_cut_short(trouble));
    let misfits = (!misfits.is_empty()).then(|| of_misfits(misfits, schema));
    cut_short.into_iter().chain(misfits).collect::<Vec<_>>().join("\n\n")
}

fn of_misfits(misfits: &[String], schema: Option<&ReplySchema>) -> String {
    let reasons: Vec<String> = misfits.iter().map(|reason| format!("- {}", escape::one_line(reason))).collect();
    let reasons = reasons.join("\n");
    let again = schema.map(|schema| format!("\n{}", of_schema(schema))).unwrap_or_default();
    format!("Your last message does not fit the JSON Schema of your reply:\n{reasons}\nReply again, in full.{again}")
}

fn of_cut_short(trouble: &Trouble) -> String {
    if !trouble.background.is_empty() {
        return of_background(&trouble.background);
    }
    let what = escape::one_line(trouble.what.trim().trim_end_matches('.'));
    let calls: Vec<String> = trouble.calls.iter().map(|call| format!("- {}", escape::one_line(call))).collect();
    let go_on = if trouble.lost {
        "This conversation has nothing of what you did in it."
    } else {
        "Carry on where you stopped."
    };
    let calls = match calls.as_slice() {
        [] => String::new(),
        [call] => {
            format!(
                " This tool call was made then and may have taken effect, even if the conversation says that it was rejected, so check before you repeat it:\n{call}"
            )
        }
        calls => format!(
            " These tool calls were made then and may have taken effect, even if the conversation says that they were rejected, so check before you repeat them:\n{}",
            calls.join("\n")
        ),
    };
    format!("Your last turn was cut short: {what}. {go_on}{calls}")
}

/// The notice for an agent that may have ended its turn to wait for something in its background.
fn of_background(ended: &[String]) -> String {
    let ended: Vec<String> = ended.iter().map(|title| format!("- {}", escape::one_line(title))).collect();
    format!(
        "You have ended your turn while something ran in the background. Its time is up, and it was ended:\n{}\n\
         If you wait for something, wait for it with `agent-cli wait`, which may take as long as it likes. Otherwise finish now. \
         Only what you say next is your reply: if your last one stands, repeat all of it.",
        ended.join("\n")
    )
}

/// The notice for an agent whose conversation may not have what it called in the background.
pub(crate) fn of_agents_beside(background: impl Iterator<Item = Request>) -> Option<String> {
    let named = |request: Request| match request.kind {
        RequestKind::Spawn { child, task, .. } => format!("- {}: {}", child.short(), escape::shortened(&task)),
        other => format!("- {}", other.command()),
    };
    let named: Vec<_> = background.map(named).collect();
    let several = "You have called these agents in the background, and not got their replies:";
    (!named.is_empty()).then(|| format!("{several}\n{}", named.join("\n")))
}

/// How the heading of a request's result in a prompt begins, whatever the result is. It occurs nowhere earlier.
pub(crate) fn beginning_of_heading(delivery: &Delivery) -> String {
    format!("{HEADING}{}` ({})", delivery.kind.command(), delivery.known_as())
}

fn heading(delivery: &Delivery) -> String {
    let how = match &delivery.result {
        RequestResult::Text(_) => "",
        RequestResult::Default(_) => ", which expired, so its default is used",
        RequestResult::Failed(_) | RequestResult::PartlyFailed(_) => ", which failed",
        RequestResult::Unanswered { .. } => ", which expired",
    };
    format!("{}{how}:", beginning_of_heading(delivery))
}

/// The result of each request, exact to the byte below its heading.
///
/// A text of one line is that line. If one of them has more, or looks like a heading, each ends at a line that none of them
/// contains, which is announced first: a counterfeit can then be distinguished from this program's words.
fn sections(deliveries: &[Delivery]) -> Vec<String> {
    if deliveries.iter().map(said).all(|text| is_one_line(text) && !text.to_lowercase().contains(HEADING)) {
        return deliveries.iter().map(|delivery| format!("{}\n{}", heading(delivery), said(delivery))).collect();
    }
    let fence = Fence::new("result", deliveries.iter().map(said));
    let section = |delivery: &Delivery| format!("{}\n{}", heading(delivery), fence.closed(said(delivery)));
    std::iter::once(fence.rule("Each result below", "none has such a line"))
        .chain(deliveries.iter().map(section))
        .collect()
}

/// The beginning of headings.
const HEADING: &str = "result of `";

/// Returns the prompt itself if its agent scheduled one.
fn said(delivery: &Delivery) -> &str {
    if let Some(scheduled) = delivery.kind.scheduled() {
        return &scheduled.prompt;
    }
    delivery.result.text()
}

#[cfg(test)]
mod tests;
