//! What an outcome means with what is on record: whether the agent waits for its requests, and whether a signal in its reply
//! is one.

use crate::core::attempt::decision::{Outcome, Turn};
use crate::core::attempt::signal::Signal;

/// What is on record of an attempt when it ends, beside what `claude` printed.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Whether it made requests whose results its agent has not been given. They may be there.
    pub undelivered: bool,
    /// Whether one of them is for a permission: the agent was stopped at a call.
    pub permission: bool,
    /// The results that its agent was given.
    pub results: &'a [&'a str],
    /// All that its agent was told: these results, its prompt, its instructions.
    pub given: &'a [&'a str],
    /// Whether its agent was woken.
    pub turn: Turn,
}

/// What a person should know of a frame, though nothing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Its agent said this signal inside a sentence, and it was taken for one.
    InASentence(Signal),
    /// Its agent has said so many times in a row that it waits, without a request.
    PausesInARow(usize),
}

impl Outcome {
    /// The same outcome, given what is on record of the attempt.
    ///
    /// The record wins over the agent's words: an agent that asked and then chats has paused all the same, and so has
    /// one whose process died after it asked. It makes no difference whether the results are there by now: an answer may come
    /// before the process has ended.
    #[must_use]
    pub fn on_record(self, record: &Record<'_>) -> Self {
        match self {
            Self::Reply(text) => Self::of_reply(text, record),
            // Claude Code calls it an error that the agent was stopped at a call.
            Self::Error(_) if record.permission => Self::Requested,
            Self::Died { .. } if record.undelivered => Self::Requested,
            // Somebody else's hook suspended a call: what that waits for is not on record.
            Self::Requested if !record.undelivered => Self::Started,
            other => other,
        }
    }

    /// The signal that it amounts to.
    #[must_use]
    pub fn signal(&self) -> Option<Signal> {
        match self {
            Self::Started => Some(Signal::Started),
            Self::Ongoing => Some(Signal::Ongoing),
            Self::Unhandled => Some(Signal::Unhandled),
            _ => None,
        }
    }

    fn of_reply(text: String, record: &Record<'_>) -> Self {
        // Word for word what it was just given: a person may answer `SGN_PEND_STARTED`.
        let is_passed_on = record.results.iter().any(|result| result.trim() == text.trim());
        let on_a_line = Signal::on_a_line(&text).filter(|_| !is_passed_on);
        if record.undelivered && on_a_line != Some(Signal::Unhandled) {
            return Self::Requested;
        }
        match on_a_line.or_else(|| in_a_sentence(&text, record)) {
            Some(Signal::Started) => Self::Started,
            Some(Signal::Ongoing) => Self::Ongoing,
            Some(Signal::Unhandled) => Self::Unhandled,
            None => Self::Reply(text),
        }
    }
}

/// The signal that a reply without a request says inside a sentence: the last one whose word was not given to its agent.
fn in_a_sentence(reply: &str, record: &Record<'_>) -> Option<Signal> {
    let is_mention = |signal: Signal| record.given.iter().any(|text| signal.is_named_in(text));
    // An agent that nobody woke cannot be at a loss why.
    let makes_sense = |signal: Signal| signal != Signal::Unhandled || record.turn == Turn::Later;
    Signal::in_sentences(reply).into_iter().rev().find(|signal| makes_sense(*signal) && !is_mention(*signal))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Turn = Turn::Later;
    const NOTHING: Record<'static> =
        Record { undelivered: false, permission: false, results: &[], given: &[], turn: Turn::First };

    fn reply(text: &str) -> Outcome {
        Outcome::Reply(text.into())
    }

    #[test]
    fn the_record_wins_over_the_words() {
        let asked = Record { undelivered: true, ..NOTHING };
        let died = Outcome::Died { worked: true, how: String::new() };
        for outcome in [
            reply("I asked, and now I chat"),
            reply("SGN_PEND_STARTED"),
            reply("SGN_PEND_ONGOING"),
            reply("I was woken and say SGN_UNHANDLED to nobody"),
            died.clone(),
            Outcome::Requested,
        ] {
            assert_eq!(outcome.on_record(&asked), Outcome::Requested);
        }
        assert_eq!(died.clone().on_record(&NOTHING), died);
        assert_eq!(Outcome::Requested.on_record(&NOTHING), Outcome::Started);
        assert_eq!(reply("SGN_UNHANDLED").on_record(&asked), Outcome::Unhandled);
        for outcome in [Outcome::Stopped { worked: true }, Outcome::Error(String::new())] {
            assert_eq!(outcome.clone().on_record(&asked), outcome);
        }
        let stopped_at_a_call = Record { permission: true, ..asked };
        assert_eq!(Outcome::Error(String::new()).on_record(&stopped_at_a_call), Outcome::Requested);
    }

    #[test]
    fn a_signal_on_a_line_of_its_own_counts_unless_it_is_passed_on() {
        for (text, outcome) in [
            ("done\nSGN_PEND_STARTED.", Outcome::Started),
            ("SGN_PEND_ONGOING (question.md)", Outcome::Ongoing),
            ("`SGN_UNHANDLED`", Outcome::Unhandled),
        ] {
            let read = Record { given: &["SGN_PEND_STARTED, SGN_PEND_ONGOING, SGN_UNHANDLED"], ..NOTHING };
            assert_eq!(reply(text).on_record(&NOTHING), outcome);
            assert_eq!(reply(text).on_record(&read), outcome, "an instruction names it");
            let given = [text];
            let passed_on = Record { results: &given, given: &given, ..NOTHING };
            assert_eq!(reply(text).on_record(&passed_on), reply(text));
        }
    }

    #[test]
    fn a_word_in_a_sentence_counts_unless_the_agent_was_given_it() {
        let woken = Record { turn: LATER, ..NOTHING };
        for (text, record, outcome) in [
            ("Replying SGN_PEND_STARTED to the caller.", NOTHING, Outcome::Started),
            ("No answer yet: SGN_PEND_ONGOING it is.", woken, Outcome::Ongoing),
            ("I do not know why, so SGN_UNHANDLED from me.", woken, Outcome::Unhandled),
        ] {
            assert_eq!(reply(text).on_record(&record), outcome);
            for given in ["Do not say SGN_PEND_STARTED", "```\nSGN_PEND_ONGOING\n```", "say SGN_UNHANDLED", "nothing"] {
                let texts = [given];
                let is_mention = given.contains(text.split(' ').find(|word| word.starts_with("SGN_")).unwrap());
                let expected = if is_mention { reply(text) } else { outcome.clone() };
                assert_eq!(reply(text).on_record(&Record { given: &texts, ..record }), expected, "{text} {given}");
            }
        }
        let never_woken = reply("I never had to say SGN_UNHANDLED to anybody.");
        assert_eq!(never_woken.clone().on_record(&NOTHING), never_woken);
        // Of several, the last one that is the agent's own.
        let several = reply("The document says SGN_PEND_ONGOING where I say SGN_PEND_STARTED now; SGN_PEND_ONGOING.");
        let read = Record { given: &["SGN_PEND_ONGOING"], ..woken };
        assert_eq!(several.on_record(&read), Outcome::Started);
    }

    #[test]
    fn the_table_of_the_protocol_holds() {
        let protocol = include_str!("../../../docs/protocol.md");
        let (_, table) = protocol.split_once("| last words | on record | meaning |\n").unwrap();
        let rows: Vec<_> = table.lines().skip(1).take_while(|line| line.starts_with('|')).collect();
        assert!(rows.len() > 15, "{rows:?}");
        for row in rows {
            let [words, on_record, meaning] = row.trim_matches('|').split('|').collect::<Vec<_>>()[..] else {
                panic!("{row}")
            };
            let words = words.trim();
            let words = words.strip_prefix("`` ").and_then(|words| words.strip_suffix(" ``")).unwrap_or_else(|| {
                words.strip_prefix('`').and_then(|words| words.strip_suffix('`')).unwrap_or_else(|| panic!("{row}"))
            });
            let words = words.replace('⏎', "\n");
            let results = [words.as_str()];
            let record = match on_record.trim() {
                "" => NOTHING,
                "woken" => Record { turn: LATER, ..NOTHING },
                "a result that it was not given" => Record { undelivered: true, ..NOTHING },
                "it was given a text with that word" => {
                    Record { given: &["say SGN_PEND_STARTED when you wait"], turn: LATER, ..NOTHING }
                }
                "it was given exactly that" => Record { results: &results, given: &results, turn: LATER, ..NOTHING },
                other => panic!("{other}"),
            };
            let expected = match meaning.trim() {
                "it waits for its requests" => Outcome::Requested,
                "it waits" => Outcome::Started,
                "it still waits" => Outcome::Ongoing,
                "it does not know why it was woken" => Outcome::Unhandled,
                "a reply" => reply(&words),
                other => panic!("{other}"),
            };
            assert_eq!(reply(&words).on_record(&record), expected, "{row}");
        }
    }

    #[test]
    fn a_quotation_is_a_reply() {
        for text in ["```\nSGN_PEND_STARTED\n```", "> SGN_UNHANDLED", "so:\n~~~\nSGN_PEND_ONGOING"] {
            assert_eq!(reply(text).on_record(&Record { turn: LATER, ..NOTHING }), reply(text));
        }
    }
}
