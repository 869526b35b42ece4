//! Facts that a run learned about a chain and that its records do not contain.

use std::collections::HashSet;

use serde::Serialize;

use crate::core::attempt::decision::{Decision, Note};
use crate::core::chain::admission::NotAdmitted;
use crate::core::chain::frame_state::{Ended, FrameState};
use crate::core::chain::tree::{Node, Tree};
use crate::core::id::FrameId;
use crate::runtime::run::frame_error::{FrameError, FrameErrorKind};

/// What happened while a chain was run.
#[derive(Debug, Default)]
pub(crate) struct Driven {
    /// Frames that began to wait for something new.
    pub started: HashSet<FrameId>,
    /// Frames whose agents have replied.
    pub replied: HashSet<FrameId>,
    /// Whether an attempt has ended.
    pub worked: bool,
    /// Whether anything has changed.
    pub got_on: bool,
    /// Errors that no agent in the chain has been told about.
    pub errors: Vec<FrameError>,
    /// Frames that are run by another process.
    pub busy: Vec<Busy>,
    /// A person stopped it.
    pub interrupted: bool,
    /// A frame that had to wait because too many agents of all chains are running.
    pub no_place: Option<(FrameId, NotAdmitted)>,
    /// Notes on frames for a person, although nothing went wrong.
    pub notes: Vec<(FrameId, Note)>,
}

/// An agent that is run by another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Busy {
    #[serde(rename = "agent")]
    pub frame: FrameId,
    /// The process that started the attempt. It may have died while `claude` finishes its turn.
    pub runner: Option<u32>,
}

impl Driven {
    /// Whether there is nothing to report about the run: the chain was only checked, or left to another process.
    pub(crate) fn is_uneventful(&self) -> bool {
        let Self { started, replied: _, worked, got_on: _, errors, busy: _, interrupted, no_place, notes } = self;
        let is_quiet = started.is_empty() && errors.is_empty() && notes.is_empty();
        is_quiet && !worked && !interrupted && no_place.is_none()
    }

    /// Notes that an attempt of a frame has ended. Earlier notes about the frame no longer count.
    pub(super) fn ended(&mut self, frame: FrameId, decision: &Decision) {
        self.worked = true;
        self.got_on |= decision.frame.is_progress();
        if decision.frame == Ended::Done {
            self.replied.insert(frame);
        }
        if decision.begins_to_wait() {
            self.started.insert(frame);
        } else {
            self.started.remove(&frame);
        }
        self.errors.retain(|error| error.frame != frame);
        self.notes.extend(decision.notes.iter().map(|note| (frame, *note)));
    }

    /// Notes that something went wrong with a frame.
    pub(super) fn failed(&mut self, frame: FrameId, why: FrameErrorKind) {
        self.errors.push(FrameError { frame, kind: why });
    }

    /// Notes that another process runs a frame.
    pub(super) fn is_busy(&mut self, busy: Busy) {
        if !self.busy.iter().any(|known| known.frame == busy.frame) {
            self.busy.push(busy);
        }
    }

    /// Finishes the run: nothing in the chain can run any more, or a person has stopped it.
    pub(super) fn finish(mut self, tree: &Tree, interrupted: bool) -> Self {
        self.errors.retain(|error| tree.concerns_the_caller(error.frame));
        let is_aside = |node: &&Node| node.has_outcome && node.state == FrameState::Done && node.id != tree.top();
        let again = tree.parents_first().into_iter().filter(is_aside).filter(|node| self.replied.contains(&node.id));
        self.notes.extend(again.map(|node| (node.id, Note::RepliedAgain)));
        Self { interrupted, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::decision::decide;
    use crate::core::attempt::ending::Ending;
    use crate::core::attempt::facts::Facts;

    fn said(text: &str) -> Decision {
        decide(&Facts { has_checkpoint: true, ..Facts::from_ending(Ending::Reply(text.into())) })
    }

    fn errors(driven: &Driven) -> Vec<FrameId> {
        driven.errors.iter().map(|error| error.frame).collect()
    }

    #[test]
    fn the_last_attempt_of_a_frame_counts() {
        let [one, other] = [FrameId::random(), FrameId::random()];
        let mut driven = Driven::default();
        driven.ended(one, &said("SGN_PEND_STARTED"));
        assert_eq!((driven.worked, &driven.started), (true, &HashSet::from([one])));
        driven.failed(one, FrameErrorKind::Ended("max turns".into()));
        driven.failed(other, FrameErrorKind::Ended("max turns".into()));
        assert_eq!(errors(&driven), [one, other]);
        driven.ended(one, &said("SGN_PEND_ONGOING"));
        assert_eq!((&driven.started, errors(&driven)), (&HashSet::new(), vec![other]));
    }

    #[test]
    fn what_a_person_should_know_of_a_frame_is_collected() {
        let frame = FrameId::random();
        let mut driven = Driven::default();
        driven.ended(frame, &said("so SGN_PEND_STARTED it is"));
        driven.ended(frame, &said("Jan 1st"));
        assert_eq!(driven.notes.len(), 1);
    }

    #[test]
    fn whatever_happened_is_reported() {
        let frame = FrameId::random();
        assert!(Driven::default().is_uneventful());
        let worked = |driven: &mut Driven| driven.worked = true;
        let interrupted = |driven: &mut Driven| driven.interrupted = true;
        let no_place = |driven: &mut Driven| driven.no_place = Some((frame, NotAdmitted::Parallel { most: 1 }));
        let failed = |driven: &mut Driven| driven.failed(frame, FrameErrorKind::Ended("max turns".into()));
        let began = |driven: &mut Driven| driven.started = HashSet::from([frame]);
        let happenings: [&dyn Fn(&mut Driven); 5] = [&worked, &interrupted, &no_place, &failed, &began];
        for happens in happenings {
            let mut driven = Driven::default();
            happens(&mut driven);
            assert!(!driven.is_uneventful(), "{driven:?}");
        }
        let mut left_to_another = Driven::default();
        left_to_another.is_busy(Busy { frame, runner: None });
        assert!(left_to_another.is_uneventful());
    }

    #[test]
    fn a_frame_is_named_once_as_run_by_another_process() {
        let frame = FrameId::random();
        let mut driven = Driven::default();
        for runner in [Some(1), Some(2)] {
            driven.is_busy(Busy { frame, runner });
        }
        assert_eq!(driven.busy, [Busy { frame, runner: Some(1) }]);
    }

    #[test]
    fn an_error_of_a_frame_that_is_gone_is_not_reported() {
        let frame = FrameId::random();
        let mut driven = Driven::default();
        driven.failed(frame, FrameErrorKind::Ended("max turns".into()));
        let driven = driven.finish(&Tree::new(frame, Vec::new()), true);
        assert!(driven.errors.is_empty() && driven.interrupted);
    }
}
