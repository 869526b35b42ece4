//! What the end of an attempt does: whether its fork is kept, what becomes of the frame, and what the caller is told.
//!
//! This table is the heart of the program. Nothing else decides whether a fork is kept or discarded.

use jiff::Timestamp;

use crate::core::chain::state::{Ended, Failure, FailureKind, Wait};

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The agent replied.
    Reply(String),
    /// It waits for the requests that it made: a suspended call, or a signal, or the record of a request without one.
    Requested,
    /// It said `SGN_PEND_STARTED` and made no request: what it waits for, only it can judge.
    Started,
    /// It said `SGN_PEND_ONGOING`.
    Ongoing,
    /// It said `SGN_UNHANDLED`.
    Unhandled,
    /// The account is over its usage limit until a known time.
    UsageLimit {
        /// When the limit is lifted.
        resets_at: Timestamp,
        /// Whether the agent had worked in this attempt before it met the limit.
        worked: bool,
    },
    /// The API cannot be reached, is overloaded, or wants fewer requests, and does not say until when.
    Unavailable {
        /// What `claude` said, for people.
        why: String,
        /// Whether the agent had worked in this attempt.
        worked: bool,
    },
    /// `claude` refused before any work: not logged in, a bad flag, no such session, an unknown model.
    Refused(String),
    /// An error after work: an API error, a budget, a limit of turns.
    Error(String),
    /// A person stopped it.
    Stopped {
        /// Whether the agent had worked in this attempt.
        worked: bool,
    },
    /// The process ended without a result.
    Died {
        /// Whether the agent had worked in this attempt.
        worked: bool,
        /// How it ended, as far as that is known.
        how: String,
    },
}

/// Whether the frame has a checkpoint that an attempt can fall back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing was kept before this attempt.
    First,
    /// It continued from a checkpoint.
    Later,
}

/// What to do with the session that an attempt made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// It becomes the frame's checkpoint, and what it was told counts as delivered.
    Keep,
    /// Its transcript is deleted, and its requests are withdrawn. What it was told is told again next time.
    Discard,
    /// There is no conversation in it to continue from: its process died before it was written. Its requests stand, for a
    /// person may have answered them already. What it was told is told again next time.
    Lost,
}

/// What the caller of `spawn` or `resume` hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The reply.
    Reply,
    /// `SGN_PEND_STARTED`: the tree waits for something new.
    Started,
    /// `SGN_PEND_ONGOING`: it waits for what it waited for.
    Ongoing,
    /// An error on standard error.
    Error,
}

/// The decision on an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What becomes of its session.
    pub fork: Fork,
    /// What becomes of its frame.
    pub ended: Ended,
    /// What the caller hears.
    pub report: Report,
}

impl Verdict {
    /// The decision when the session has no conversation to continue from. A reply needs none.
    #[must_use]
    pub fn without_conversation(self) -> Self {
        match self {
            Self { fork: Fork::Keep, ended, report } if ended != Ended::Done => {
                Self { fork: Fork::Lost, ended, report }
            }
            other => other,
        }
    }
}

/// Decides on an attempt.
#[must_use]
#[expect(clippy::match_same_arms, reason = "every row of the table stands for itself")]
pub fn verdict(outcome: &Outcome, turn: Turn) -> Verdict {
    use Fork::{Discard, Keep};
    let of = |fork, ended, report| Verdict { fork, ended, report };
    let failed = |kind, message: &str| Ended::Fail(Failure { kind, message: message.to_owned() });
    match (outcome, turn) {
        (Outcome::Reply(_), _) => of(Keep, Ended::Done, Report::Reply),
        (Outcome::Requested, _) => of(Keep, Ended::Wait(Wait::Requests), Report::Started),
        (Outcome::Started, _) | (Outcome::Ongoing, Turn::First) => {
            of(Keep, Ended::Wait(Wait::AgentDecides), Report::Started)
        }
        (Outcome::Ongoing, Turn::Later) => of(Discard, Ended::Back, Report::Ongoing),
        (Outcome::Unhandled, Turn::First) => {
            of(Discard, failed(FailureKind::Unhandled, "the agent ended with SGN_UNHANDLED"), Report::Error)
        }
        (Outcome::Unhandled, Turn::Later) => of(Discard, Ended::Back, Report::Error),
        // Work that was done before the limit was met is carried on from, not repeated.
        (Outcome::UsageLimit { resets_at, worked }, _) => {
            let fork = if *worked { Keep } else { Discard };
            of(fork, Ended::Wait(Wait::UsageLimit { resets_at: *resets_at }), Report::Started)
        }
        (Outcome::Unavailable { why, worked }, _) => {
            let fork = if *worked { Keep } else { Discard };
            of(fork, Ended::Retry { why: why.clone() }, Report::Started)
        }
        (Outcome::Refused(why), Turn::First) => of(Discard, failed(FailureKind::Refused, why), Report::Error),
        (Outcome::Refused(_), Turn::Later) => of(Discard, Ended::Back, Report::Error),
        (Outcome::Error(why), _) => of(Keep, failed(FailureKind::Error, why), Report::Error),
        (Outcome::Stopped { worked }, _) => of(if *worked { Keep } else { Discard }, Ended::Cancel, Report::Error),
        // The half-done session is the best checkpoint there is. Without work there is nothing in it to keep.
        (Outcome::Died { worked: true, .. }, _) => of(Keep, Ended::Again, Report::Error),
        (Outcome::Died { worked: false, .. }, _) => of(Discard, Ended::Back, Report::Error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Turn = Turn::First;
    const LATER: Turn = Turn::Later;

    fn decided(outcome: &Outcome, turn: Turn) -> (Fork, Ended, Report) {
        let Verdict { fork, ended, report } = verdict(outcome, turn);
        (fork, ended, report)
    }

    fn failure(kind: FailureKind, message: &str) -> Ended {
        Ended::Fail(Failure { kind, message: message.into() })
    }

    #[test]
    fn a_reply_is_kept() {
        for turn in [FIRST, LATER] {
            let row = decided(&Outcome::Reply("Jan 1st".into()), turn);
            assert_eq!(row, (Fork::Keep, Ended::Done, Report::Reply));
        }
    }

    #[test]
    fn a_new_wait_is_kept() {
        for turn in [FIRST, LATER] {
            let row = decided(&Outcome::Requested, turn);
            assert_eq!(row, (Fork::Keep, Ended::Wait(Wait::Requests), Report::Started));
            let row = decided(&Outcome::Started, turn);
            assert_eq!(row, (Fork::Keep, Ended::Wait(Wait::AgentDecides), Report::Started));
        }
    }

    #[test]
    fn still_waiting_is_kept_once_and_then_leaves_no_trace() {
        let row = decided(&Outcome::Ongoing, FIRST);
        assert_eq!(row, (Fork::Keep, Ended::Wait(Wait::AgentDecides), Report::Started));
        assert_eq!(decided(&Outcome::Ongoing, LATER), (Fork::Discard, Ended::Back, Report::Ongoing));
    }

    #[test]
    fn an_unhandled_resume_is_an_error() {
        let (fork, ended, report) = decided(&Outcome::Unhandled, FIRST);
        assert_eq!((fork, report), (Fork::Discard, Report::Error));
        assert!(matches!(ended, Ended::Fail(Failure { kind: FailureKind::Unhandled, .. })));
        assert_eq!(decided(&Outcome::Unhandled, LATER), (Fork::Discard, Ended::Back, Report::Error));
    }

    #[test]
    fn a_usage_limit_is_a_wait_and_keeps_only_work() {
        let resets_at = Timestamp::from_second(1_795_298_091).unwrap();
        let wait = Ended::Wait(Wait::UsageLimit { resets_at });
        for turn in [FIRST, LATER] {
            let row = decided(&Outcome::UsageLimit { resets_at, worked: false }, turn);
            assert_eq!(row, (Fork::Discard, wait.clone(), Report::Started));
            let row = decided(&Outcome::UsageLimit { resets_at, worked: true }, turn);
            assert_eq!(row, (Fork::Keep, wait.clone(), Report::Started));
        }
    }

    #[test]
    fn an_api_that_is_not_available_is_a_wait_and_keeps_only_work() {
        let retry = Ended::Retry { why: "overloaded".into() };
        for turn in [FIRST, LATER] {
            for (worked, fork) in [(false, Fork::Discard), (true, Fork::Keep)] {
                let row = decided(&Outcome::Unavailable { why: "overloaded".into(), worked }, turn);
                assert_eq!(row, (fork, retry.clone(), Report::Started));
            }
        }
    }

    #[test]
    fn a_refusal_loses_nothing() {
        let refused = Outcome::Refused("not logged in".into());
        let failed = failure(FailureKind::Refused, "not logged in");
        assert_eq!(decided(&refused, FIRST), (Fork::Discard, failed, Report::Error));
        assert_eq!(decided(&refused, LATER), (Fork::Discard, Ended::Back, Report::Error));
    }

    #[test]
    fn an_error_after_work_keeps_the_work() {
        for turn in [FIRST, LATER] {
            let row = decided(&Outcome::Error("max turns".into()), turn);
            assert_eq!(row, (Fork::Keep, failure(FailureKind::Error, "max turns"), Report::Error));
        }
    }

    #[test]
    fn what_was_stopped_can_be_carried_on() {
        for turn in [FIRST, LATER] {
            let row = decided(&Outcome::Stopped { worked: true }, turn);
            assert_eq!(row, (Fork::Keep, Ended::Cancel, Report::Error));
            let row = decided(&Outcome::Stopped { worked: false }, turn);
            assert_eq!(row, (Fork::Discard, Ended::Cancel, Report::Error));
        }
    }

    #[test]
    fn what_died_is_carried_on_from_where_it_worked() {
        let died = |worked| Outcome::Died { worked, how: "killed by signal 9".into() };
        for turn in [FIRST, LATER] {
            assert_eq!(decided(&died(true), turn), (Fork::Keep, Ended::Again, Report::Error));
            assert_eq!(decided(&died(false), turn), (Fork::Discard, Ended::Back, Report::Error));
        }
    }

    #[test]
    fn what_cannot_be_continued_from_is_lost_and_nothing_else_changes() {
        let died = |worked| Outcome::Died { worked, how: String::new() };
        for turn in [FIRST, LATER] {
            for outcome in [died(true), Outcome::Requested, Outcome::Stopped { worked: true }] {
                let kept = verdict(&outcome, turn);
                let lost = kept.clone().without_conversation();
                assert_eq!(lost, Verdict { fork: Fork::Lost, ..kept });
            }
            for outcome in [died(false), Outcome::Reply("Jan 1st".into())] {
                let decided = verdict(&outcome, turn);
                assert_eq!(decided.clone().without_conversation(), decided);
            }
        }
    }
}
