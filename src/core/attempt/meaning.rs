//! What the end of an attempt means given the records: whether its agent waits for its requests, and whether a signal
//! in its reply counts.

use crate::core::agent::reply_schema::ReplyShape;
use crate::core::attempt::ending::Ending;
use crate::core::attempt::facts::Facts;
use crate::core::attempt::signal::Signal;
use crate::core::steering::fresh_start;

/// The meaning of an attempt's end: a row of the table of [decisions](crate::core::attempt::decision).
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// It replied, but a message to it was recorded before. It must be given the message.
    HasMessages,
    /// It replied, but what it may have wanted to wait for was ended. It must be told.
    CutOff,
    /// It replied, and the reply does not fit the schema of its replies. It must be told, once in a turn.
    Misfit {
        /// What does not fit.
        reasons: Vec<String>,
        /// Whether it had been told before.
        again: bool,
    },
    /// It waits for the requests that it made.
    Requested,
    /// It waits without having made a request, so only the agent can judge whether its wait has ended.
    Started,
    /// It still waits for the same thing as before.
    Ongoing,
    /// It was woken and does not know why.
    Unhandled,
    /// It wrote the summary that it was asked for.
    Summary(String),
    /// It was asked for a summary, and wrote none that can be used.
    NoSummary {
        /// What its summary lacks; nothing if it wrote none.
        lacks: Vec<String>,
        /// The reason, for people.
        why: String,
        /// Whether it is not asked again.
        is_last: bool,
    },
    /// The ending itself. A text is its reply.
    Ended(Ending),
}

/// How the reason begins why an agent could not start afresh.
pub(crate) const NO_SUMMARY: &str = "the summary could not be written";

impl Meaning {
    /// The records take precedence over the agent's words: an agent that asked and then chats has paused nevertheless, and so
    /// has one whose process died after it asked. Whether the results exist already makes no difference: an answer may arrive
    /// before the process has ended.
    pub(crate) fn from_facts(facts: &Facts) -> Self {
        if let Some(lacked) = &facts.summarises {
            return Self::from_summary(&facts.ending, !lacked.is_empty());
        }
        match &facts.ending {
            Ending::Reply(text) => Self::from_reply(text, facts),
            // Claude Code reports an error when the agent was stopped at a call.
            Ending::Error(_) if facts.awaits_approval => Self::Requested,
            Ending::Suspended | Ending::Died { .. } if facts.waits_for_requests() => Self::Requested,
            // The hook of another program suspended a call: what that waits for was not recorded.
            Ending::Suspended => Self::Started,
            ending => Self::Ended(ending.clone()),
        }
    }

    /// One word, as it is recorded.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::HasMessages => "has_messages",
            Self::CutOff => "cut_off",
            Self::Misfit { again: false, .. } => MISFIT,
            Self::Misfit { again: true, .. } => SECOND_MISFIT,
            Self::Requested => "requested",
            Self::Started | Self::Ended(Ending::Suspended) => "started",
            Self::Ongoing => "ongoing",
            Self::Unhandled => "unhandled",
            Self::Summary(_) => SUMMARY,
            Self::NoSummary { .. } => "no_summary",
            Self::Ended(Ending::Reply(_)) => "reply",
            Self::Ended(Ending::UsageLimit { .. }) => "usage_limit",
            Self::Ended(Ending::Unavailable { .. }) => "unavailable",
            Self::Ended(Ending::Refused { .. }) => "refused",
            Self::Ended(Ending::Error(_)) => "error",
            Self::Ended(Ending::Stopped { .. }) => "stopped",
            Self::Ended(Ending::ShutDown { .. }) => "shut_down",
            Self::Ended(Ending::OverBudget { .. }) => "over_budget",
            Self::Ended(Ending::Died { .. }) => "died",
        }
    }

    /// Other details that are recorded, for people. A reply has its own column.
    pub(crate) fn message(&self) -> Option<String> {
        let ending = match self {
            Self::Misfit { reasons, .. } => return Some(misfit(reasons)),
            Self::Summary(text) | Self::NoSummary { why: text, .. } => return Some(text.clone()),
            Self::Ended(ending) => ending,
            _ => return None,
        };
        match ending {
            Ending::Refused { why, .. } | Ending::Error(why) | Ending::Unavailable { why, .. } => Some(why.clone()),
            Ending::Died { how, .. } => Some(how.clone()),
            Ending::UsageLimit { resets_at, .. } => Some(format!("resets at {resets_at}")),
            Ending::Reply(_)
            | Ending::Suspended
            | Ending::Stopped { .. }
            | Ending::ShutDown { .. }
            | Ending::OverBudget { .. } => None,
        }
    }

    pub(crate) fn signal(&self) -> Option<Signal> {
        match self {
            Self::Started => Some(Signal::Started),
            Self::Ongoing => Some(Signal::Ongoing),
            Self::Unhandled => Some(Signal::Unhandled),
            _ => None,
        }
    }

    /// What an attempt has written that was asked for a summary. `again`: whether an earlier one lacked something.
    fn from_summary(ending: &Ending, again: bool) -> Self {
        let lacks = match ending {
            Ending::Reply(text) => fresh_start::lacking(text),
            Ending::Suspended => fresh_start::lacking(""),
            // Another try would send the same.
            Ending::Error(why) | Ending::Refused { why, .. } => {
                let why = format!("{NO_SUMMARY}: {why}");
                return Self::NoSummary { lacks: Vec::new(), why, is_last: true };
            }
            ending => return Self::Ended(ending.clone()),
        };
        match ending {
            Ending::Reply(text) if lacks.is_empty() => Self::Summary(text.clone()),
            _ => Self::NoSummary { why: fresh_start::in_words(&lacks), lacks, is_last: again },
        }
    }

    fn from_reply(text: &str, facts: &Facts) -> Self {
        // It only repeats what it was just given: a person may answer `SGN_PEND_STARTED`.
        let is_passed_on = facts.results.iter().any(|result| result.trim() == text.trim());
        // Any text may be a value in JSON.
        let is_json = matches!(&facts.shape, ReplyShape::Fits(json) if json == text.trim());
        let on_a_line = Signal::on_a_line(text).filter(|_| !is_passed_on && !is_json);
        // The end of a turn joins what runs in the background.
        if (facts.waits_for_requests() || facts.has_background) && on_a_line != Some(Signal::Unhandled) {
            return Self::Requested;
        }
        if let (ReplyShape::Fits(_), None) = (&facts.shape, on_a_line) {
            return Self::of_turn(facts);
        }
        match on_a_line.or_else(|| in_a_sentence(text, facts)) {
            Some(Signal::Started) => Self::Started,
            Some(Signal::Ongoing) => Self::Ongoing,
            Some(Signal::Unhandled) => Self::Unhandled,
            None => Self::of_turn(facts),
        }
    }

    /// The meaning of a reply that is not a signal.
    fn of_turn(facts: &Facts) -> Self {
        match &facts.shape {
            _ if facts.has_messages && facts.stop.is_none() => Self::HasMessages,
            _ if facts.is_cut_off() => Self::CutOff,
            ReplyShape::Free => Self::Ended(facts.ending.clone()),
            ReplyShape::Fits(json) => Self::Ended(Ending::Reply(json.clone())),
            ReplyShape::Misfit(reasons) => Self::Misfit { reasons: reasons.clone(), again: facts.was_corrected },
        }
    }
}

/// The outcome of an attempt after which its frame starts afresh.
pub(crate) const SUMMARY: &str = "summary";

const MISFIT: &str = "misfit";
const SECOND_MISFIT: &str = "second_misfit";

/// Whether the agent was already told in this turn that a reply does not match. `outcomes`: the outcomes of its earlier
/// attempts, the latest first.
pub(crate) fn was_corrected<'a>(outcomes: impl IntoIterator<Item = &'a str>) -> bool {
    // With these a turn ends. After the others, it continues.
    let ends = ["reply", "error", SECOND_MISFIT];
    outcomes.into_iter().take_while(|outcome| !ends.contains(outcome)).any(|outcome| outcome == MISFIT)
}

/// Why a reply is not accepted.
pub(crate) fn misfit(reasons: &[String]) -> String {
    const MOST: usize = 3;
    let more = reasons.len().saturating_sub(MOST);
    let more = (more > 0).then(|| format!("and {more} more"));
    let shown: Vec<_> = reasons.iter().take(MOST).cloned().chain(more).collect();
    format!("the reply does not fit its schema: {}", shown.join("; "))
}

impl Facts {
    /// Whether some of the agent's requests have not been delivered. Results that were delivered but never reached the
    /// agent are included.
    fn waits_for_requests(&self) -> bool {
        self.has_requests || !self.unseen.is_empty()
    }
}

/// The signal in a reply without a request that is inside a sentence: the last one whose word was not given to its agent.
fn in_a_sentence(reply: &str, facts: &Facts) -> Option<Signal> {
    let is_mention = |signal: Signal| facts.results.iter().chain(&facts.texts).any(|text| signal.is_named_in(text));
    // An agent that was not woken cannot wonder why it was woken.
    let makes_sense = |signal: Signal| signal != Signal::Unhandled || facts.has_checkpoint;
    Signal::in_sentences(reply).into_iter().rev().find(|signal| makes_sense(*signal) && !is_mention(*signal))
}

#[cfg(test)]
mod tests;
