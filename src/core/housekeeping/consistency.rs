//! What is wrong with a state directory: the rules of `fsck`, applied to facts.

use std::collections::{HashMap, HashSet};

use crate::core::chain::frame::{Frame, KeptConversation};
use crate::core::chain::frame_state::FrameState;
use crate::core::housekeeping::fsck_finding::{FindingKind, FsckFinding};
use crate::core::id::{AttemptId, FrameId, RequestId};

/// How much of a session's file can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsableLines {
    /// It is missing, or has no complete line.
    #[default]
    None,
    /// It ends in the middle of a line.
    Torn,
    /// It is whole.
    Whole,
}

/// What is known about a frame.
#[derive(Clone, Debug)]
pub struct FrameFacts {
    pub frame: Frame,
    /// Whether it has a reply.
    pub replied: bool,
    /// Its attempts without a recorded end, each with the offset at which its output begins.
    pub running: Vec<(AttemptId, u64)>,
    pub files: FrameFiles,
}

/// What is known about a frame's files. While a frame runs, its files change and are not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameFiles {
    /// Whether a process holds its lease.
    pub held: bool,
    /// The length of its output.
    pub output: u64,
    /// The copy of its checkpoint.
    pub copy: UsableLines,
    /// The transcript of its checkpoint in Claude Code's folder.
    pub transcript: UsableLines,
    /// Whether its checkpoint's conversation is missing its beginning.
    pub broken: bool,
    /// Whether the session in which its agent waits was continued outside agent-cli.
    pub went_on: bool,
}

/// What is known about a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts {
    pub id: RequestId,
    pub frame: FrameId,
    /// The child that it was made for.
    pub child: Option<FrameId>,
    pub withdrawn: bool,
}

/// The position of a frame in its chain.
#[derive(Clone, Copy, Debug)]
pub struct TreePosition {
    pub parent: Option<FrameId>,
    pub root: FrameId,
    pub depth: u32,
}

/// All frames. There may be a hundred thousand, so nothing else about them is kept.
pub(crate) type Known = HashMap<FrameId, TreePosition>;

/// The problems of these frames and requests, which are all, in the given order.
pub(crate) fn judge(frames: &[FrameFacts], requests: &[RequestFacts]) -> Vec<FsckFinding> {
    let place = |frame: &Frame| TreePosition { parent: frame.parent, root: frame.root, depth: frame.depth };
    let known: Known = frames.iter().map(|facts| (facts.frame.id, place(&facts.frame))).collect();
    frames.iter().flat_map(|facts| judge_frame(facts, &known)).chain(judge_requests(requests, &known)).collect()
}

/// The problems of a frame.
pub(crate) fn judge_frame(facts: &FrameFacts, known: &Known) -> Vec<FsckFinding> {
    let found = in_its_place(&facts.frame, known).into_iter().chain(state(facts)).chain(files(facts));
    found.map(|kind| FsckFinding { frame: Some(facts.frame.id), kind }).collect()
}

/// The problems of requests.
pub(crate) fn judge_requests(requests: &[RequestFacts], known: &Known) -> Vec<FsckFinding> {
    let found = requests.iter().filter_map(|facts| Some((facts.frame, request(facts, known)?)));
    found.map(|(frame, kind)| FsckFinding { frame: Some(frame), kind }).collect()
}

fn in_its_place(frame: &Frame, known: &Known) -> Option<FindingKind> {
    // A group is not a level.
    let level = u32::from(!frame.task.is_group());
    let Some(parent) = frame.parent else {
        return (frame.root != frame.id || frame.depth != level).then_some(FindingKind::Misplaced);
    };
    let Some(above) = known.get(&parent) else { return Some(FindingKind::NoParent { parent }) };
    let mut seen = HashSet::from([frame.id]);
    let mut next = Some(parent);
    while let Some(id) = next {
        if !seen.insert(id) {
            return Some(FindingKind::Circle);
        }
        next = known.get(&id).and_then(|frame| frame.parent);
    }
    (frame.root != above.root || frame.depth != above.depth + level).then_some(FindingKind::Misplaced)
}

fn state(facts: &FrameFacts) -> Vec<FindingKind> {
    let state = &facts.frame.state;
    let mut found = Vec::new();
    match (state, facts.running.as_slice()) {
        (FrameState::Running { .. }, []) => found.push(FindingKind::RunsWithoutAttempt),
        (FrameState::Running { .. }, _) if !facts.files.held => found.push(FindingKind::ToHarvest),
        (FrameState::Running { .. }, _) => {}
        (_, running) => {
            found.extend(running.iter().map(|(attempt, _)| FindingKind::AttemptWithoutRunning { attempt: *attempt }));
        }
    }
    let trouble = facts.frame.trouble.as_ref().filter(|_| !state.is_over());
    found.extend(trouble.filter(|trouble| trouble.unrecorded).map(|_| FindingKind::Unrecorded));
    match (state, facts.replied) {
        // Its reply to a person's instruction belongs to the instruction.
        (FrameState::Done, false) if facts.frame.outcome.is_none() => found.push(FindingKind::NoReply),
        (FrameState::Done, _) | (_, false) => {}
        // A report of what it had done when it was stopped, or a reply before a person continued it.
        (state, true) if state.was_stopped() || facts.frame.outcome.is_some() => {}
        // The replies of a group's members are kept when one of them failed, and while that one is retried.
        (_, true) if facts.frame.task.is_group() => {}
        (_, true) => found.push(FindingKind::EarlyReply),
    }
    found
}

/// A finished frame needs no checkpoint.
fn files(facts: &FrameFacts) -> Vec<FindingKind> {
    let (frame, files) = (&facts.frame, facts.files);
    if files.held {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (_, from) in facts.running.iter().filter(|(_, from)| files.output < *from) {
        found.push(FindingKind::ShortOutput { from: *from, length: files.output });
    }
    let kept = frame.continues().filter(|_| frame.checkpoint.is_some() && frame.state != FrameState::Done);
    let Some(KeptConversation { session, .. }) = kept else { return found };
    match (files.copy, files.transcript) {
        (UsableLines::None, UsableLines::None) => found.push(FindingKind::NoCheckpoint { session }),
        (UsableLines::None, _) => found.push(FindingKind::NoCopy { session }),
        (UsableLines::Torn, _) => found.push(FindingKind::TornCopy { session }),
        // The next attempt restores a missing transcript.
        (UsableLines::Whole, _) => {}
    }
    found.extend(files.broken.then_some(FindingKind::Broken { session }));
    found.extend(files.went_on.then_some(FindingKind::WentOn { session }));
    found
}

fn request(facts: &RequestFacts, known: &Known) -> Option<FindingKind> {
    let child = facts.child.filter(|child| !facts.withdrawn && !known.contains_key(child));
    child.map(|child| FindingKind::NoChild { request: facts.id, child })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::core::agent::launch::Launch;
    use crate::core::agent::situation::Situation;
    use crate::core::chain::frame::Task;
    use crate::core::chain::frame_state::Wait;
    use crate::core::id::SessionId;

    fn facts(state: FrameState) -> FrameFacts {
        let id = FrameId::random();
        let frame = Frame {
            id,
            parent: None,
            root: id,
            depth: 1,
            task: Task::Prompt("x".to_owned()),
            cwd: "/srv".into(),
            launch: Launch::default(),
            state,
            since: Timestamp::UNIX_EPOCH,
            session: id.into(),
            checkpoint: None,
            baseline: None,
            suspended: None,
            situation: Situation::default(),
            trouble: None,
            afresh: None,
            pushed: None,
            outcome: None,
            created: Timestamp::UNIX_EPOCH,
        };
        let replied = frame.state == FrameState::Done;
        FrameFacts { frame, replied, running: Vec::new(), files: FrameFiles::default() }
    }

    fn waiting() -> FrameFacts {
        facts(FrameState::Waiting { wait: Wait::Requests })
    }

    fn running() -> FrameFacts {
        let running = vec![(AttemptId::random(), 5)];
        let files = FrameFiles { output: 5, ..FrameFiles::default() };
        FrameFacts { running, files, ..facts(FrameState::Running { waited: None }) }
    }

    fn below(parent: &FrameFacts) -> FrameFacts {
        let mut child = waiting();
        let above = &parent.frame;
        (child.frame.parent, child.frame.root, child.frame.depth) = (Some(above.id), above.root, above.depth + 1);
        child
    }

    fn asked(frame: &FrameFacts) -> RequestFacts {
        RequestFacts { id: RequestId::random(), frame: frame.frame.id, child: None, withdrawn: false }
    }

    fn found(frames: &[FrameFacts], requests: &[RequestFacts]) -> Vec<FindingKind> {
        judge(frames, requests).into_iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn nothing_is_wrong_with_what_this_program_writes() {
        let parent = waiting();
        let child = below(&parent);
        let held = FrameFacts { files: FrameFiles { held: true, ..FrameFiles::default() }, ..running() };
        let request = RequestFacts { child: Some(child.frame.id), ..asked(&parent) };
        let answered = RequestFacts { ..asked(&child) };
        assert_eq!(found(&[parent, child, facts(FrameState::Done), held], &[request, answered]), []);
    }

    #[test]
    fn an_attempt_and_its_frame_agree() {
        let without = FrameFacts { running: Vec::new(), ..running() };
        assert_eq!(found(&[without], &[]), [FindingKind::RunsWithoutAttempt]);
        let attempt = AttemptId::random();
        let not_running = FrameFacts { running: vec![(attempt, 0)], ..waiting() };
        assert_eq!(found(&[not_running], &[]), [FindingKind::AttemptWithoutRunning { attempt }]);
        let findings = judge(&[running()], &[]);
        assert!(findings.len() == 1 && findings[0].is_note(), "{findings:?}");
    }

    #[test]
    fn an_output_that_was_cut_is_found_unless_it_is_in_use() {
        let mut short = running();
        short.files.output = 4;
        let cut = FindingKind::ShortOutput { from: 5, length: 4 };
        assert_eq!(found(std::slice::from_ref(&short), &[]), [FindingKind::ToHarvest, cut]);
        short.files.held = true;
        assert_eq!(found(&[short], &[]), []);
    }

    #[test]
    fn states_and_replies_agree() {
        let silent = FrameFacts { replied: false, ..facts(FrameState::Done) };
        assert_eq!(found(&[silent], &[]), [FindingKind::NoReply]);
        assert_eq!(found(&[FrameFacts { replied: true, ..waiting() }], &[]), [FindingKind::EarlyReply]);
    }

    #[test]
    fn frames_stand_where_their_parents_say() {
        let parent = waiting();
        let mut deep = below(&parent);
        deep.frame.depth = 9;
        let mut elsewhere = below(&parent);
        elsewhere.frame.root = elsewhere.frame.id;
        let orphan = below(&waiting());
        let above = orphan.frame.parent.unwrap();
        let expected = [FindingKind::Misplaced, FindingKind::Misplaced, FindingKind::NoParent { parent: above }];
        assert_eq!(found(&[parent, deep, elsewhere, orphan], &[]), expected);
        let (mut first, mut second) = (waiting(), waiting());
        (first.frame.parent, second.frame.parent) = (Some(second.frame.id), Some(first.frame.id));
        assert_eq!(found(&[first, second], &[]), [FindingKind::Circle, FindingKind::Circle]);
    }

    #[test]
    fn a_frame_that_will_go_on_needs_a_copy_of_its_checkpoint() {
        let session = SessionId::random();
        let with = |state: FrameState, copy, transcript| {
            let mut facts = facts(state);
            facts.frame.session = session;
            facts.frame.checkpoint = Some(AttemptId::random());
            facts.files = FrameFiles { copy, transcript, ..FrameFiles::default() };
            found(&[facts], &[])
        };
        let waits = || FrameState::Waiting { wait: Wait::Requests };
        assert_eq!(with(waits(), UsableLines::None, UsableLines::None), [FindingKind::NoCheckpoint { session }]);
        assert_eq!(with(waits(), UsableLines::None, UsableLines::Whole), [FindingKind::NoCopy { session }]);
        assert_eq!(with(waits(), UsableLines::Torn, UsableLines::Whole), [FindingKind::TornCopy { session }]);
        assert_eq!(with(waits(), UsableLines::Whole, UsableLines::None), []);
        assert_eq!(with(FrameState::Done, UsableLines::None, UsableLines::None), []);
        let mut facts = facts(waits());
        facts.frame.session = session;
        facts.frame.checkpoint = Some(AttemptId::random());
        let whole = FrameFiles { copy: UsableLines::Whole, transcript: UsableLines::Whole, ..FrameFiles::default() };
        facts.files = FrameFiles { broken: true, went_on: true, ..whole };
        assert_eq!(found(&[facts.clone()], &[]), [FindingKind::Broken { session }, FindingKind::WentOn { session }]);
        facts.files.held = true;
        assert_eq!(found(&[facts], &[]), []);
    }

    #[test]
    fn the_child_of_a_request_is_there_unless_it_was_withdrawn() {
        let (frame, gone) = (waiting(), FrameId::random());
        assert_eq!(found(std::slice::from_ref(&frame), &[asked(&frame)]), []);
        let child = RequestFacts { child: Some(gone), ..asked(&frame) };
        assert_eq!(
            found(std::slice::from_ref(&frame), &[child]),
            [FindingKind::NoChild { request: child.id, child: gone }]
        );
        assert_eq!(found(&[frame], &[RequestFacts { withdrawn: true, ..child }]), []);
    }
}
