//! When a process that keeps running checks a chain that may be able to continue.
//!
//! A chain is checked as soon as something in it changes. A chain that was checked and has not changed rests: some conditions
//! that agents wait for can only be checked by starting a process, or a request.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use crate::core::chain::backoff;
use crate::core::id::FrameId;
use crate::core::requests::question_form::Form;
use crate::core::waits::conditions::External;
use crate::core::waits::outlook::{WaitOutlook, outlook};
use crate::core::waits::wait_progress::WaitProgress;

/// The longest time between two checks. Some changes are not noticed: a file on a network, a runner that is killed.
pub(crate) const TICK: SignedDuration = SignedDuration::from_secs(60);

/// How long other processes leave a frame to the process that made it ready, which runs it.
const MAKER_STARTS: SignedDuration = SignedDuration::from_secs(10);

/// Until when a frame that is ready since then is left to the process that made it so, if that time has not passed.
pub(crate) fn left_to_its_maker(since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let until = since.saturating_add(MAKER_STARTS).unwrap_or(since);
    // It may have become ready after this process has read the clock. If the clock was set back, that may be far away.
    (now.duration_since(since).abs() < MAKER_STARTS).then_some(until)
}

/// Why a chain may be able to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContinueReason {
    /// Nothing keeps one of its agents from running.
    Free,
    /// One of its agents is recorded as running. Its runner may have died.
    Running,
    /// Only an agent can judge whether its wait has ended.
    AgentDecides,
    /// Only time ends the wait of one of its agents.
    Until(Timestamp),
    /// One of its agents waits for something outside the chain.
    Outside(External),
    /// One of its agents asks in this file. `changed`: when an answer in it was last changed.
    InFile { form: Box<Form>, changed: Option<Timestamp> },
}

/// The state of the file of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InFile {
    NoAnswer,
    /// Its content does not count as an answer. Whether a person was told.
    Refused {
        why: String,
        was_reported: bool,
    },
    /// An answer that counts from this time on.
    Soon(Timestamp),
    /// An answer that was last changed then.
    Answer(Timestamp),
}

/// A chain in which something may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedChain {
    pub(crate) root: FrameId,
    pub(crate) reason: ContinueReason,
    /// The progress of its wait for something outside the chain.
    pub(crate) progress: WaitProgress,
}

/// What to do now.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CheckPlan {
    /// The chains to check.
    pub(crate) due: Vec<FrameId>,
    /// When to check again, if nothing changes.
    pub(crate) next: Option<Timestamp>,
    /// The files that are waited for.
    pub(crate) files: Vec<PathBuf>,
    /// Content that does not count as an answer.
    pub(crate) refused: Vec<RefusedAnswer>,
}

/// A file whose content does not count as an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedAnswer {
    pub(crate) root: FrameId,
    /// An agent has named it.
    pub(crate) path: PathBuf,
    pub(crate) why: String,
    /// Whether it is recorded that a person was told.
    pub(crate) was_reported: bool,
}

/// The outcome of a check of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckOutcome {
    /// It cannot continue.
    NotRun,
    /// An agent ended its turn with something new, and nothing went wrong.
    Progressed,
    /// It was run without progress. Its reasons may have changed, because a scheduled time has arrived.
    NoProgress,
    /// Something went wrong that is no agent's doing, such as a full disk or a server that is gone. It may end at any time.
    Failed,
    /// Its agent found no free slot, because agents of other chains use them all. This process is not notified when one of them
    /// ends.
    NoSlot,
}

/// The longest rest of a chain after something went wrong that is no agent's doing.
const LONGEST_AFTER_FAILURE: SignedDuration = SignedDuration::from_mins(5);

/// How long a chain rests whose agent found no free slot.
const WITHOUT_SLOT: SignedDuration = SignedDuration::from_secs(2);

/// What is known about the chains that were checked.
#[derive(Debug, Default)]
pub(crate) struct CheckSchedule {
    rests: HashMap<FrameId, RestPeriod>,
    seen: HashMap<FrameId, Vec<ContinueReason>>,
}

#[derive(Debug)]
struct RestPeriod {
    /// Its reasons as long as nothing has changed; `None`: those at the next check.
    reasons: Option<Vec<ContinueReason>>,
    since: Timestamp,
    until: Timestamp,
    times: u32,
}

impl RestPeriod {
    /// Whether it lasts at `now`. If the clock was set back to before it began, it has ended.
    fn lasts(&self, now: Timestamp) -> bool {
        self.since <= now && now < self.until
    }
}

impl CheckSchedule {
    /// Which `candidates` are due at `now`. `is_met` judges conditions that are neither times nor commands, `in_file` the file
    /// of a question.
    pub(crate) fn plan(
        &mut self,
        candidates: Vec<ChangedChain>,
        now: Timestamp,
        is_met: impl Fn(&External) -> bool,
        in_file: impl Fn(&Form, &WaitProgress) -> InFile,
    ) -> CheckPlan {
        let mut plan = CheckPlan::default();
        let mut order = Vec::new();
        self.seen.clear();
        for ChangedChain { root, reason, progress } in candidates {
            let reason = match reason {
                ContinueReason::Until(time) if time > now => {
                    plan.check_again(time);
                    continue;
                }
                ContinueReason::Outside(wait) => {
                    plan.files.extend(wait.files().map(Path::to_owned));
                    let WaitOutlook { due, next } = outlook(&wait, &progress, Timestamp::MAX, now, &is_met);
                    next.into_iter().for_each(|next| plan.check_again(next));
                    let Some(due) = due else { continue };
                    ContinueReason::Outside(due)
                }
                ContinueReason::InFile { form, .. } => {
                    let Some(path) = form.answered_in() else { continue };
                    plan.files.push(path.clone());
                    match in_file(&form, &progress) {
                        InFile::NoAnswer => continue,
                        InFile::Refused { why, was_reported } => {
                            plan.refused.push(RefusedAnswer { root, path, why, was_reported });
                            continue;
                        }
                        InFile::Soon(time) => {
                            plan.check_again(time);
                            continue;
                        }
                        // An answer that nevertheless was not recorded rests until it changes.
                        InFile::Answer(changed) => ContinueReason::InFile { form, changed: Some(changed) },
                    }
                }
                reason => reason,
            };
            let reasons = self.seen.entry(root).or_default();
            if reasons.is_empty() {
                order.push(root);
            }
            reasons.push(reason);
        }
        self.rests.retain(|root, _| self.seen.contains_key(root));
        for root in order {
            let seen = &self.seen[&root];
            let is_as_before = |rest: &mut RestPeriod| rest.reasons.get_or_insert_with(|| seen.clone()) == seen;
            let rest = self.rests.get_mut(&root);
            match rest.and_then(|rest| (is_as_before(rest) && rest.lasts(now)).then_some(rest.until)) {
                Some(until) => plan.check_again(until),
                None => plan.due.push(root),
            }
        }
        plan
    }

    /// A chain with these `reasons` was checked. It rests as long as they do not change, unless it progressed.
    pub(crate) fn checked(
        &mut self,
        root: FrameId,
        reasons: Vec<ContinueReason>,
        now: Timestamp,
        outcome: CheckOutcome,
    ) {
        if outcome == CheckOutcome::Progressed && !reasons.contains(&ContinueReason::AgentDecides) {
            self.rests.remove(&root);
            return;
        }
        let times = match self.rests.get(&root) {
            Some(rest) if rest.reasons.as_ref().is_none_or(|known| *known == reasons) => rest.times.saturating_add(1),
            _ => 1,
        };
        let polled = reasons.iter().filter_map(|reason| match reason {
            ContinueReason::Outside(wait) => wait.polled_every(),
            _ => None,
        });
        let length = match (polled.min(), outcome) {
            (_, CheckOutcome::NoSlot) => WITHOUT_SLOT,
            (Some(every), _) => every.min(TICK),
            (None, CheckOutcome::Progressed | CheckOutcome::NoProgress) => backoff::until_next_try(times),
            (None, CheckOutcome::Failed) => backoff::until_next_try(times).min(LONGEST_AFTER_FAILURE),
            (None, CheckOutcome::NotRun) => TICK,
        };
        let until = now.saturating_add(length).unwrap_or(now);
        let may_change = matches!(outcome, CheckOutcome::NoProgress | CheckOutcome::Failed);
        let reasons = Some(reasons).filter(|_| !may_change);
        self.rests.insert(root, RestPeriod { reasons, since: now, until, times });
    }

    /// Why a chain of the newest plan may be able to continue.
    pub(crate) fn reasons(&self, root: FrameId) -> Vec<ContinueReason> {
        self.seen.get(&root).cloned().unwrap_or_default()
    }
}

impl CheckPlan {
    fn check_again(&mut self, time: Timestamp) {
        self.next = Some(self.next.map_or(time, |next| next.min(time)));
    }
}

#[cfg(test)]
mod tests;
