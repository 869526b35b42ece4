//! What the end of an attempt does to its session, to its frame and within this run of the program.
//!
//! This table is the heart of the program. Nothing else decides whether a session is kept or discarded, and nothing changes a
//! decision: it is [recorded](crate::store) and carried out. `docs/recovery.md` has the same table in words.

use crate::core::attempt::continuation::Way;
use crate::core::attempt::ending::{Ending, Objection};
use crate::core::attempt::facts::Facts;
use crate::core::attempt::meaning::{self, Meaning};
use crate::core::attempt::salvaged::Salvage;
use crate::core::attempt::signal::Signal;
use crate::core::chain::frame::Trouble;
use crate::core::chain::frame_state::{Ended, Failure, FailureKind, Wait};
use crate::core::id::RequestId;
use crate::core::steering::stop_order::{Stop, StopKind};

#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The meaning of its end.
    pub meaning: Meaning,
    /// What happens to its session.
    pub session: Fate,
    /// What happens to its frame.
    pub frame: Ended,
    /// Which of the results that it was given are delivered again.
    pub redelivery: Redelivery,
    /// What the next attempt must know about it.
    pub trouble: Option<Trouble>,
    /// What this run of the program does with the frame.
    pub next: Next,
    /// What went wrong, for people; `None`: nothing.
    pub error: Option<String>,
    /// What a person should know although nothing went wrong.
    pub notes: Vec<Note>,
    /// Whether `claude` could not record the turn that it had ended. Its agent will repeat it, and it is billed again.
    pub is_unrecorded: bool,
}

/// What happens to the session of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It becomes the frame's checkpoint.
    Keep,
    /// Its transcript is deleted, and its requests are withdrawn.
    Discard,
    /// It has no conversation to continue from: its process died before writing one. Its requests remain valid, because a
    /// person may have answered them already.
    Lost,
}

/// Which results of an attempt are delivered again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redelivery {
    All,
    /// Only these; the others have been delivered.
    Only(Vec<RequestId>),
}

/// What a run of the program does with a frame after one of its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The frame runs again when its tree allows it.
    AsItComes,
    /// The frame is not attempted again in this run: an attempt that changed nothing would change nothing again, and a
    /// limit is not lifted within seconds.
    Skip,
    /// The frame continues at once in another way.
    Continue(Way),
}

/// What a person should know about a frame although nothing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Its agent used this signal inside a sentence, and it was treated as one.
    InASentence(Signal),
    /// Its agent has reported this many times in a row that it waits, without a request.
    PausesInARow(usize),
    /// Its agent has written a summary, and continues in a new session.
    StartsAfresh,
    /// It has replied to the person who continued it. Its parent has an earlier result.
    RepliedAgain,
}

impl Decision {
    /// Whether the frame has begun to wait for something new.
    pub(crate) fn begins_to_wait(&self) -> bool {
        matches!(self.frame, Ended::Wait(_) | Ended::Retry { .. })
    }
}

/// Decides what follows from the end of an attempt. Pure and exhaustive.
pub fn decide(facts: &Facts) -> Decision {
    let meaning = Meaning::from_facts(facts);
    let (session, frame) = if facts.summarises.is_some() { of_summary(&meaning, facts) } else { row(&meaning, facts) };
    // A recorded stop only changes the outcome for the frame. A reply was faster.
    let frame = match &facts.stop {
        Some(stop) if frame != Ended::Done => frame.stopped(stop),
        _ => frame,
    };
    let session = match facts.salvage {
        // A reply needs no session, unless there is one from which its agent can continue when it gets an instruction.
        Salvage::Nothing if session == Fate::Keep && (frame != Ended::Done || facts.has_checkpoint) => Fate::Lost,
        Salvage::Nothing | Salvage::Part | Salvage::Whole => session,
    };
    let is_unrecorded = is_unrecorded(facts, session, &frame);
    // As long as there is no room, the next attempt would be lost as well.
    let next = if is_unrecorded { Next::Skip } else { next(facts, &meaning, session, &frame) };
    let is_news = !matches!(next, Next::Continue(_)) && !died_elsewhere(facts, &meaning);
    Decision {
        redelivery: redelivery(facts, session),
        trouble: trouble(facts, &meaning, session, &frame, is_unrecorded),
        next,
        error: error(facts, &meaning).filter(|_| is_news),
        notes: notes(facts, &meaning),
        meaning,
        session,
        frame,
        is_unrecorded,
    }
}

/// A process that ended its turn has recorded it, unless its disk is full: then it continues without a message.
fn is_unrecorded(facts: &Facts, session: Fate, frame: &Ended) -> bool {
    let by_itself = match facts.ending {
        Ending::Reply(_)
        | Ending::Suspended
        | Ending::UsageLimit { .. }
        | Ending::Unavailable { .. }
        | Ending::Refused { .. }
        | Ending::Error(_) => true,
        Ending::Stopped { .. } | Ending::ShutDown { .. } | Ending::OverBudget { .. } | Ending::Died { .. } => false,
    };
    by_itself
        && facts.spoke
        && facts.ended_beside.is_empty()
        && !facts.was_killed
        && facts.salvage != Salvage::Whole
        && session != Fate::Discard
        && *frame != Ended::Done
}

/// A row of the table: what happens to a session that can be continued from, and to its frame.
#[expect(clippy::match_same_arms, reason = "every row of the table stands for itself")]
fn row(meaning: &Meaning, facts: &Facts) -> (Fate, Ended) {
    use Fate::{Discard, Keep};
    // An attempt that failed once would probably fail again for a while.
    let back_off = |why: &str| Ended::BackOff { why: why.to_owned() };
    let failed = |kind, message: &str| Ended::Fail(Failure { kind, message: message.to_owned() });
    // Completed work is continued, not repeated. Without any, nothing is worth keeping.
    let worth = |worked: &bool| if *worked { Keep } else { Discard };
    match (meaning, facts.has_checkpoint) {
        (Meaning::Ended(Ending::Reply(_)), _) => (Keep, Ended::Done),
        (Meaning::HasMessages | Meaning::CutOff | Meaning::Misfit { again: false, .. }, _) => (Keep, Ended::Again),
        (Meaning::Misfit { again: true, reasons }, _) => (Keep, failed(FailureKind::Error, &meaning::misfit(reasons))),
        (Meaning::Requested, _) => (Keep, Ended::Wait(Wait::Requests)),
        (Meaning::Started | Meaning::Ended(Ending::Suspended), _) => (Keep, Ended::Wait(Wait::AgentDecides)),
        (Meaning::Ongoing, false) => (Keep, Ended::Wait(Wait::AgentDecides)),
        (Meaning::Ongoing, true) => (Discard, Ended::Back),
        (Meaning::Unhandled, false) => (Discard, failed(FailureKind::Unhandled, UNHANDLED)),
        (Meaning::Unhandled, true) => (Discard, back_off(UNHANDLED)),
        (Meaning::Summary(_) | Meaning::NoSummary { .. }, _) => of_summary(meaning, facts),
        (Meaning::Ended(Ending::UsageLimit { resets_at, worked }), _) => {
            (worth(worked), Ended::Wait(Wait::UsageLimit { resets_at: *resets_at, tries: 0 }))
        }
        (Meaning::Ended(Ending::Unavailable { why, worked }), _) => (worth(worked), Ended::Retry { why: why.clone() }),
        // Its parent could not fix it: it is retried when there may be room.
        (Meaning::Ended(Ending::Refused { why, objection: Objection::Room }), false) => (Discard, back_off(why)),
        // What it has done in its earlier session is not lost.
        (Meaning::Ended(Ending::Refused { why, .. }), false) if facts.begins_afresh => (Discard, back_off(why)),
        (Meaning::Ended(Ending::Refused { why, .. }), false) => (Discard, failed(FailureKind::Refused, why)),
        (Meaning::Ended(Ending::Refused { .. }), true) if other_way(facts, meaning).is_some() => (Discard, Ended::Back),
        (Meaning::Ended(Ending::Refused { why, .. }), true) => (Discard, back_off(why)),
        (Meaning::Ended(Ending::Error(why)), _) => (Keep, failed(FailureKind::Error, why)),
        (Meaning::Ended(Ending::Stopped { worked }), _) => (worth(worked), Ended::Cancel),
        (Meaning::Ended(Ending::ShutDown { worked: true }), _) => (Keep, Ended::Again),
        (Meaning::Ended(Ending::ShutDown { worked: false }), _) => (Discard, Ended::Back),
        // It starts again when its chain may spend more.
        (Meaning::Ended(Ending::OverBudget { worked: true }), _) => (Keep, Ended::Again),
        (Meaning::Ended(Ending::OverBudget { worked: false }), _) => (Discard, Ended::Back),
        // The half-finished session is the best checkpoint available.
        (Meaning::Ended(Ending::Died { worked: true, .. }), _) if facts.is_abandoned => (Keep, Ended::Again),
        (Meaning::Ended(Ending::Died { worked: false, .. }), _) if facts.is_abandoned => (Discard, Ended::Back),
        (Meaning::Ended(Ending::Died { worked: true, how }), _) => (Keep, Ended::Die { why: how.clone() }),
        (Meaning::Ended(Ending::Died { worked: false, how }), _) => (Discard, Ended::Die { why: how.clone() }),
    }
}

/// The row of an attempt whose agent was asked for a summary. Its session is not continued, whatever was said in it: the summary
/// itself is recorded, and without one everything is as before.
fn of_summary(meaning: &Meaning, facts: &Facts) -> (Fate, Ended) {
    let frame = match meaning {
        Meaning::Summary(_) => Ended::Summarised,
        Meaning::NoSummary { .. } => Ended::Back,
        _ => match row(meaning, facts).1 {
            Ended::Again => Ended::Back,
            ended => ended,
        },
    };
    (Fate::Discard, frame)
}

const UNHANDLED: &str = "the agent ended with SGN_UNHANDLED";

fn redelivery(facts: &Facts, session: Fate) -> Redelivery {
    match session {
        Fate::Discard | Fate::Lost => Redelivery::All,
        Fate::Keep => Redelivery::Only(facts.unseen.iter().chain(&facts.looked_up).copied().collect()),
    }
}

/// What the next attempt must know about this one. A discarded attempt leaves that unchanged.
fn trouble(facts: &Facts, meaning: &Meaning, session: Fate, frame: &Ended, unrecorded: bool) -> Option<Trouble> {
    if matches!(meaning, Meaning::Summary(_)) {
        // It was told about it when it wrote the summary.
        return facts.trouble.clone().filter(|trouble| !trouble.misfits.is_empty());
    }
    if session == Fate::Discard {
        return facts.trouble.clone();
    }
    if *meaning == Meaning::CutOff {
        let background = facts.ended_beside.clone();
        return Some(Trouble { what: "its background work was ended".to_owned(), background, ..Trouble::default() });
    }
    let misfits = match meaning {
        Meaning::Misfit { reasons, .. } => reasons.clone(),
        // The conversation does not have what a lost attempt was told.
        _ if session == Fate::Lost => facts.trouble.iter().flat_map(|trouble| trouble.misfits.clone()).collect(),
        _ => Vec::new(),
    };
    let what = match (frame, &facts.ending, &facts.stop) {
        _ if matches!(meaning, Meaning::Misfit { .. }) => meaning::misfit(&misfits),
        // It had ended its turn, and was not cut short.
        (_, Ending::Reply(_) | Ending::Suspended, Some(_)) if facts.salvage == Salvage::Whole => return None,
        (_, _, Some(stop)) => stop.in_words(),
        (Ended::Fail(Failure { message, .. }), ..) => message.clone(),
        (Ended::Cancel, ..) => "a person stopped it".to_owned(),
        (_, Ending::UsageLimit { .. }, _) => "the usage limit was reached".to_owned(),
        (_, Ending::Unavailable { why, .. }, _) => why.clone(),
        (_, Ending::OverBudget { .. }, _) => "the budget of the chain was spent".to_owned(),
        (_, Ending::ShutDown { .. }, _) => "the system ended the program that ran it".to_owned(),
        (_, Ending::Died { how, .. }, _) => how.clone(),
        _ if facts.salvage != Salvage::Whole => "claude could not record all of it".to_owned(),
        _ => return None,
    };
    let lost = session == Fate::Lost;
    // The conversation does not contain what a lost attempt was told, either.
    let before = facts.trouble.iter().filter(|_| lost).flat_map(|trouble| &trouble.calls);
    let calls = before.chain(&facts.uncertain_calls).cloned().collect();
    let background = facts.trouble.iter().filter(|_| lost).flat_map(|trouble| trouble.background.clone()).collect();
    // A process that was not started lacks nothing.
    Some(Trouble { what, calls, lost: lost && facts.spoke, unrecorded, misfits, background })
}

fn next(facts: &Facts, meaning: &Meaning, session: Fate, frame: &Ended) -> Next {
    if let Some(way) = other_way(facts, meaning) {
        return Next::Continue(way);
    }
    // Without a summary, a person decides how it continues.
    if let Meaning::Summary(_) | Meaning::NoSummary { is_last: false, .. } = meaning {
        return Next::AsItComes;
    }
    let is_limited = matches!(meaning, Meaning::Ended(Ending::UsageLimit { .. } | Ending::Unavailable { .. }));
    let goes_on = matches!(
        meaning,
        Meaning::HasMessages | Meaning::CutOff | Meaning::Misfit { .. } | Meaning::Ended(Ending::OverBudget { .. })
    );
    let is_again = *frame == Ended::Again && !goes_on;
    let backs_off = matches!(frame, Ended::BackOff { .. } | Ended::Die { .. });
    let is_skipped = session == Fate::Discard || is_again || is_limited || backs_off;
    if is_skipped && !died_elsewhere(facts, meaning) { Next::Skip } else { Next::AsItComes }
}

/// How the frame continues at once if `claude` refused to continue it like this.
fn other_way(facts: &Facts, meaning: &Meaning) -> Option<Way> {
    let Meaning::Ended(Ending::Refused { objection: Objection::Unknown, .. }) = meaning else { return None };
    facts.silent.and_then(Way::after_refusal).filter(|_| facts.has_checkpoint && facts.stop.is_none())
}

/// If an attempt of an earlier run died, this run has not failed: it has not tried yet.
fn died_elsewhere(facts: &Facts, meaning: &Meaning) -> bool {
    facts.is_abandoned && matches!(meaning, Meaning::Ended(Ending::Died { .. }))
}

fn error(facts: &Facts, meaning: &Meaning) -> Option<String> {
    match meaning {
        Meaning::Ended(Ending::Reply(_)) => None,
        _ if is_wanted(facts, StopKind::Stop) => facts.stop.as_ref().map(Stop::in_words),
        Meaning::Unhandled => Some(UNHANDLED.to_owned()),
        Meaning::Misfit { again: true, reasons } => Some(meaning::misfit(reasons)),
        Meaning::NoSummary { why, is_last: true, .. } => {
            Some(format!("{why}; the agent keeps its conversation, and does not start afresh"))
        }
        Meaning::Ended(ending) => match ending {
            Ending::Refused { why, .. } | Ending::Error(why) => Some(why.clone()),
            Ending::Stopped { .. } | Ending::ShutDown { .. } | Ending::Died { .. }
                if is_wanted(facts, StopKind::Pause) =>
            {
                None
            }
            Ending::Died { how, .. } => Some(format!("{how} before the agent had finished")),
            Ending::Stopped { .. } | Ending::ShutDown { .. } => Some("stopped".to_owned()),
            Ending::Reply(_)
            | Ending::Suspended
            | Ending::UsageLimit { .. }
            | Ending::Unavailable { .. }
            | Ending::OverBudget { .. } => None,
        },
        Meaning::HasMessages
        | Meaning::CutOff
        | Meaning::Misfit { again: false, .. }
        | Meaning::NoSummary { is_last: false, .. }
        | Meaning::Summary(_)
        | Meaning::Requested
        | Meaning::Started
        | Meaning::Ongoing => None,
    }
}

fn is_wanted(facts: &Facts, how: StopKind) -> bool {
    facts.stop.as_ref().is_some_and(|stop| stop.how == how)
}

fn notes(facts: &Facts, meaning: &Meaning) -> Vec<Note> {
    /// A new wait may follow another one at once, and so may a third.
    const MANY: usize = 3;
    let in_a_sentence = match &facts.ending {
        Ending::Reply(text) if Signal::on_a_line(text).is_none() => {
            meaning.signal().filter(|signal| Signal::in_sentences(text).contains(signal))
        }
        _ => None,
    };
    let pauses = if *meaning == Meaning::Started { facts.earlier_pauses + 1 } else { 0 };
    let pauses = (pauses >= MANY).then_some(Note::PausesInARow(pauses));
    let afresh = matches!(meaning, Meaning::Summary(_)).then_some(Note::StartsAfresh);
    in_a_sentence.map(Note::InASentence).into_iter().chain(pauses).chain(afresh).collect()
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
