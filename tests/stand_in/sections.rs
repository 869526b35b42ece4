//! The results in the prompt that wakes an agent.

use crate::script::{self, Call, Step};

/// A section of the prompt: the result of a request.
pub(crate) struct Section {
    /// Which request.
    pub(crate) of: Request,
    /// What came of it, exact to the byte.
    pub(crate) result: String,
}

/// A request that a section may be about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    /// One with this full id, which the agent knows.
    Known(String),
    /// One that the agent made just before it was killed, so that it does not know about it. It belongs to the step of this
    /// number, which need not be taken again.
    Forgotten(usize),
    /// One whose call has returned the result.
    Called,
    /// One that was made by a call that was killed, and was made again since: it is known by another id.
    Again,
}

const START: &str = "\n\nresult of `agent-cli ";
/// What a prompt says about the line that ends each result, if there is such a line.
const RULE: &str = "\n\nEach result below ends at the line `";

/// The sections, each from behind its start to its end, as far as the prompt alone shows.
fn parts(prompt: &str) -> Vec<&str> {
    let Some((_, (line, mut rest))) =
        prompt.split_once(RULE).and_then(|(before, rest)| Some((before, rest.split_once('`')?)))
    else {
        return prompt.split(START).skip(1).collect();
    };
    let end = format!("\n{line}");
    let mut parts = Vec::new();
    while let Some((_, section)) = rest.split_once(START) {
        let (part, after) = section.split_once(&end).unwrap_or((section, ""));
        parts.push(part);
        rest = after;
    }
    parts
}

/// The sections of a prompt.
///
/// Only a request that may be open begins a section: what looks like one inside of an answer is part of the answer.
pub(crate) fn read(prompt: &str, pending: &[String], instructions: &str, over: usize, again: &[usize]) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    let mut pending = pending.to_vec();
    let all = script::parse(instructions).unwrap_or_default();
    let mut steps = all.iter().enumerate().skip(over);
    let mut recalled: Vec<&str> = Vec::new();
    for part in parts(prompt) {
        let (head, body) = part.split_once('\n').unwrap_or((part, ""));
        let endings = ["):", "), which failed:", "), which expired:", "), which expired, so its default is used:"];
        let told = endings.into_iter().find_map(|ending| head.strip_suffix(ending));
        let named = told.and_then(|told| told.rsplit_once("` ("));
        let known = named.and_then(|(_, short)| pending.iter().position(|id| id.starts_with(short)));
        let of = match (known, named) {
            (Some(at), _) => Some(Request::Known(pending.remove(at))),
            (None, Some((command, _))) => {
                // It has also taken the steps without a request before that one.
                let forgotten = steps.clone().find(|(_, line)| is_about(command, &line.step));
                let called = |number: &usize| all.get(number - 1).is_some_and(|line| is_about(command, &line.step));
                match forgotten {
                    // It was given twice: for a call that was killed, and for the same call made again.
                    _ if recalled.contains(&command) => Some(Request::Again),
                    Some((at, _)) => {
                        steps.find(|(passed, _)| *passed == at);
                        recalled.push(command);
                        Some(Request::Forgotten(at + 1))
                    }
                    None => again.iter().any(called).then_some(Request::Again),
                }
            }
            (None, None) => None,
        };
        match (of, found.last_mut()) {
            (Some(of), _) => {
                let how = ["failed: ", "expired: "]
                    .into_iter()
                    .find(|how| head.ends_with(how.trim_end()))
                    .unwrap_or_default();
                found.push(Section { of, result: format!("{how}{body}") });
            }
            (None, Some(before)) => before.result.extend([START, part]),
            (None, None) => {}
        }
    }
    found
}

/// Whether a command, as a prompt names it, is what a step asks for.
fn is_about(command: &str, step: &Step) -> bool {
    let Step::Call { calls, .. } = step else { return false };
    calls.iter().filter_map(Call::command).any(|own| is_what(command, &own))
}

/// Whether a command, as a prompt names it, is the one that was called.
fn is_what(command: &str, own: &str) -> bool {
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match (command.strip_prefix("spawn "), own.strip_prefix("agent-cli spawn ")) {
        (Some(paths), Some(own)) => {
            // The options of its command are not in the name of a request.
            let named: Vec<_> = paths.split(' ').map(file_name).collect();
            own.split(' ').take(named.len()).map(file_name).eq(named)
        }
        (Some(_), None) | (None, Some(_)) => false,
        (None, None) => {
            let question = command.strip_prefix("ask \"").and_then(|rest| rest.strip_suffix('"'));
            question.and_then(|question| Call::Ask(question.to_owned()).command()).is_some_and(|asked| own == asked)
        }
    }
}
