//! When a chain that may be able to continue is driven by a process that stays.
//!
//! Whatever changes in a chain has it driven at once. A chain that was driven and is as it was before rests: some of what
//! agents wait for can only be found out by starting a process, or a request.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use crate::core::chain::backoff;
use crate::core::id::FrameId;
use crate::core::requests::question::Form;
use crate::core::waits::conditions::External;
use crate::core::waits::outlook::{WaitOutlook, outlook};
use crate::core::waits::wait_progress::WaitProgress;

/// The longest time between two looks at anything. Not every change is seen by itself: a file in a network, a runner that
/// is killed.
pub(crate) const TICK: SignedDuration = SignedDuration::from_secs(60);

/// Whoever makes a frame starts it, and is given this time before anybody else does.
const MAKER_STARTS: SignedDuration = SignedDuration::from_secs(10);

/// Until when a frame that is ready is left to the process that made it, if that is still to come.
pub(crate) fn left_to_its_maker(created: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let until = created.saturating_add(MAKER_STARTS).unwrap_or(created);
    // If the clock was set back, that may be far away.
    (created <= now && now < until).then_some(until)
}

/// Why a chain may be able to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContinueReason {
    /// Nothing keeps one of its agents.
    Free,
    /// One of its agents is recorded as running. Its runner may have died.
    Running,
    /// Only an agent can judge whether its wait is over.
    AgentDecides,
    /// Only time ends the wait of one of its agents.
    Until(Timestamp),
    /// One of its agents waits for something outside.
    Outside(External),
    /// One of its agents asks in this file. `changed`: when an answer in it was last changed.
    InFile { form: Box<Form>, changed: Option<Timestamp> },
}

/// What the file of a question says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InFile {
    NoAnswer,
    /// Something that does not count as an answer, and whether a person was told.
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
    pub(crate) stir: ContinueReason,
    /// How far its wait for something outside is.
    pub(crate) progress: WaitProgress,
}

/// What is to be done now.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CheckPlan {
    /// The chains to look at.
    pub(crate) due: Vec<FrameId>,
    /// When to look again, if nothing changes.
    pub(crate) next: Option<Timestamp>,
    /// The files that are waited for.
    pub(crate) files: Vec<PathBuf>,
    /// What does not count as an answer.
    pub(crate) refused: Vec<RefusedAnswer>,
}

/// A file in which something does not count as an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedAnswer {
    pub(crate) root: FrameId,
    /// An agent has named it.
    pub(crate) path: PathBuf,
    pub(crate) why: String,
    /// Whether it is recorded that a person was told.
    pub(crate) was_reported: bool,
}

/// What came of looking at a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckOutcome {
    /// It cannot continue.
    NotDriven,
    /// An agent ended its turn with something new, and nothing went wrong.
    GotOn,
    /// It was driven, for nothing. It may look another way than before, because its time has come, without being any further.
    GotNowhere,
    /// Its agent found no place, because agents of other chains take them all. Nothing tells when one of them ends.
    NoPlace,
}

/// How long a chain rests whose agent found no place.
const NO_PLACE: SignedDuration = SignedDuration::from_secs(2);

/// What is known about the chains that were looked at.
#[derive(Debug, Default)]
pub(crate) struct CheckSchedule {
    rests: HashMap<FrameId, RestPeriod>,
    seen: HashMap<FrameId, Vec<ContinueReason>>,
}

#[derive(Debug)]
struct RestPeriod {
    /// What it looks like as long as nothing has changed; `None`: as it will at the next look.
    stirs: Option<Vec<ContinueReason>>,
    since: Timestamp,
    until: Timestamp,
    times: u32,
}

impl RestPeriod {
    /// Whether it goes on at `now`. If the clock was set back to before it began, it is over.
    fn goes_on(&self, now: Timestamp) -> bool {
        self.since <= now && now < self.until
    }
}

impl CheckSchedule {
    /// What `candidates` are due at `now`. `is_met` judges conditions that are neither times nor commands, `in_file` what the
    /// file of a question says.
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
        for ChangedChain { root, stir, progress } in candidates {
            let stir = match stir {
                ContinueReason::Until(time) if time > now => {
                    plan.look_again(time);
                    continue;
                }
                ContinueReason::Outside(wait) => {
                    plan.files.extend(wait.files().map(Path::to_owned));
                    let WaitOutlook { due, next } = outlook(&wait, &progress, Timestamp::MAX, now, &is_met);
                    next.into_iter().for_each(|next| plan.look_again(next));
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
                            plan.look_again(time);
                            continue;
                        }
                        // What is not recorded in spite of that rests until somebody changes it.
                        InFile::Answer(changed) => ContinueReason::InFile { form, changed: Some(changed) },
                    }
                }
                stir => stir,
            };
            let stirs = self.seen.entry(root).or_default();
            if stirs.is_empty() {
                order.push(root);
            }
            stirs.push(stir);
        }
        self.rests.retain(|root, _| self.seen.contains_key(root));
        for root in order {
            let seen = &self.seen[&root];
            let is_as_before = |rest: &mut RestPeriod| rest.stirs.get_or_insert_with(|| seen.clone()) == seen;
            let rest = self.rests.get_mut(&root);
            match rest.and_then(|rest| (is_as_before(rest) && rest.goes_on(now)).then_some(rest.until)) {
                Some(until) => plan.look_again(until),
                None => plan.due.push(root),
            }
        }
        plan
    }

    /// A chain with these `stirs` was looked at. It rests as long as they stay the same, unless it got on.
    pub(crate) fn looked_at(&mut self, root: FrameId, stirs: Vec<ContinueReason>, now: Timestamp, look: CheckOutcome) {
        if look == CheckOutcome::GotOn && !stirs.contains(&ContinueReason::AgentDecides) {
            self.rests.remove(&root);
            return;
        }
        let times = match self.rests.get(&root) {
            Some(rest) if rest.stirs.as_ref().is_none_or(|known| *known == stirs) => rest.times.saturating_add(1),
            _ => 1,
        };
        let polled = stirs.iter().filter_map(|stir| match stir {
            ContinueReason::Outside(wait) => wait.polled_every(),
            _ => None,
        });
        let length = match (polled.min(), look) {
            (_, CheckOutcome::NoPlace) => NO_PLACE,
            (Some(every), _) => every.min(TICK),
            (None, CheckOutcome::GotOn | CheckOutcome::GotNowhere) => backoff::until_next_try(times),
            (None, CheckOutcome::NotDriven) => TICK,
        };
        let until = now.saturating_add(length).unwrap_or(now);
        let stirs = Some(stirs).filter(|_| look != CheckOutcome::GotNowhere);
        self.rests.insert(root, RestPeriod { stirs, since: now, until, times });
    }

    /// Why a chain of the newest plan may be able to continue.
    pub(crate) fn stirs(&self, root: FrameId) -> Vec<ContinueReason> {
        self.seen.get(&root).cloned().unwrap_or_default()
    }
}

impl CheckPlan {
    fn look_again(&mut self, time: Timestamp) {
        self.next = Some(self.next.map_or(time, |next| next.min(time)));
    }
}

#[cfg(test)]
mod tests;
