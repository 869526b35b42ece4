//! The progress of the conditions of a wait, as recorded with the request.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::core::id::FrameId;
use crate::core::waits::conditions::External;

/// The observations of each condition, in order. Those at the end may be missing if nothing was observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WaitProgress(Vec<ConditionProgress>);

/// The observations of one condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConditionProgress {
    /// When it was seen to be met. It remains met, whatever happens later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met: Option<Timestamp>,
    /// Its outcome: the output of a command, or the end of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// When its command was last started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Timestamp>,
    /// How often.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tries: u32,
    /// Why it is not met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// Only for a question's file: when it was changed, if that time was still in the future when it was first seen (`tried`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Timestamp>,
    /// Only for a question's file: a digest of its content when its agent's turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(tries: &u32) -> bool {
    *tries == 0
}

/// The result of a check of one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// It is met. With its outcome, if that can vary.
    Met(Option<String>),
    /// It is not met, and why.
    NotYet(String),
}

impl ConditionProgress {
    fn with(self, other: Self) -> Self {
        if self.met.is_some() {
            return self;
        }
        let tried = if other.changed.is_some() { other.tried } else { self.tried.max(other.tried) };
        Self {
            met: other.met,
            found: other.found,
            tried,
            tries: self.tries.max(other.tries),
            why_not: other.why_not.or(self.why_not).filter(|_| other.met.is_none()),
            changed: other.changed.or(self.changed),
            earlier: other.earlier.or(self.earlier),
        }
    }
}

impl WaitProgress {
    /// The observations of the condition at this index.
    pub(crate) fn seen(&self, at: usize) -> ConditionProgress {
        self.0.get(at).cloned().unwrap_or_default()
    }

    /// The end of this agent was not its last: it is retried.
    pub(crate) fn forget_end(&mut self, wait: &External, ended: FrameId) {
        for (seen, condition) in self.0.iter_mut().zip(wait.conditions()) {
            if matches!(condition, External::Agent(agent) if agent.id == ended) {
                *seen = ConditionProgress::default();
            }
        }
    }

    /// The agents that a wait for them has seen to have ended.
    pub(crate) fn ended_agents(&self, wait: &External) -> Vec<FrameId> {
        let conditions = wait.conditions().iter().enumerate().filter(|(at, _)| self.is_met(*at));
        let agent = |(_, condition): (usize, &External)| match condition {
            External::Agent(agent) => Some(agent.id),
            _ => None,
        };
        conditions.filter_map(agent).collect()
    }

    /// Whether the condition at this index was met.
    pub(crate) fn is_met(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|seen| seen.met.is_some())
    }

    /// Whether the wait has ended.
    pub(crate) fn is_over(&self, wait: &External) -> bool {
        let mut met = (0..wait.conditions().len()).map(|at| self.is_met(at));
        match wait {
            External::All(_) => met.all(|met| met),
            _ => met.any(|met| met),
        }
    }

    /// Adds the result of a check. A condition that was met does not change.
    pub(crate) fn note(&mut self, at: usize, look: CheckResult, now: Timestamp) {
        if self.is_met(at) {
            return;
        }
        let seen = self.at(at);
        match look {
            CheckResult::Met(found) => (seen.met, seen.found, seen.why_not) = (Some(now), found, None),
            CheckResult::NotYet(why) => seen.why_not = Some(why),
        }
    }

    /// A try of its command begins. It counts even if its end is not observed.
    pub(crate) fn begin_try(&mut self, at: usize, now: Timestamp) {
        let seen = self.at(at);
        (seen.tried, seen.tries, seen.why_not) = (Some(now), seen.tries.saturating_add(1), None);
    }

    /// Combines this with the observations of another process that did not know all of this. Conditions that were met remain
    /// met, and no try is forgotten.
    pub(crate) fn with(&self, other: &Self) -> Self {
        let both = 0..self.0.len().max(other.0.len());
        Self(both.map(|at| self.seen(at).with(other.seen(at))).collect())
    }

    /// Since when a file that was changed at `changed` has not changed, as far as known. `None`: the time is still in the
    /// future and seen for the first time. A clock was set, or the file is on a machine with another one.
    pub(crate) fn quiet_since(&self, changed: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let seen = || self.0.first().filter(|seen| seen.changed == Some(changed))?.tried.filter(|first| *first <= now);
        if changed <= now { Some(changed) } else { seen() }
    }

    /// The same, with a file that is first seen at `now` and was changed later than that.
    pub(crate) fn with_changed_ahead(&self, changed: Timestamp, now: Timestamp) -> Self {
        Self(vec![ConditionProgress { changed: Some(changed), tried: Some(now), ..self.seen(0) }])
    }

    /// The same, with a file that an agent has left like this at the end of its turn.
    pub(crate) fn with_earlier(&self, earlier: &str) -> Self {
        Self(vec![ConditionProgress { earlier: Some(earlier.to_owned()), ..self.seen(0) }])
    }

    /// Whether an agent has left a file like this at the end of its turn.
    pub(crate) fn was_earlier(&self, like: &str) -> bool {
        self.0.first().is_some_and(|seen| seen.earlier.as_deref() == Some(like))
    }

    /// The same, with a file whose answer does not count, for a reason that a person was told.
    pub(crate) fn with_reported(&self, why: &str) -> Self {
        Self(vec![ConditionProgress { why_not: Some(why.to_owned()), ..self.seen(0) }])
    }

    /// Whether a person was told why the answer in a file does not count.
    pub(crate) fn was_reported(&self, why: &str) -> bool {
        self.0.first().is_some_and(|seen| seen.why_not.as_deref() == Some(why))
    }

    /// A try of its command that began and ended at `now`.
    #[cfg(test)]
    pub(crate) fn note_try(&mut self, at: usize, look: CheckResult, now: Timestamp) {
        if !self.is_met(at) {
            self.begin_try(at, now);
            self.note(at, look, now);
        }
    }

    fn at(&mut self, at: usize) -> &mut ConditionProgress {
        if self.0.len() <= at {
            self.0.resize(at + 1, ConditionProgress::default());
        }
        &mut self.0[at]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    proptest! {
        /// Simultaneous observations by several processes, recorded in any order.
        #[test]
        fn what_several_have_seen_is_all_kept(
            seen in proptest::collection::vec((0usize..3, any::<bool>(), any::<bool>(), 1i64..100), 0..20)
        ) {
            let (mut recorded, mut stale) = (WaitProgress::default(), WaitProgress::default());
            let (mut met, mut tries) = ([None; 3], [0; 3]);
            for (condition, is_met, reads, now) in seen {
                if reads {
                    stale = recorded.clone();
                }
                if is_met {
                    let mut own = stale.clone();
                    own.note(condition, CheckResult::Met(None), at(now));
                    recorded = recorded.with(&own);
                    met[condition] = met[condition].or(own.seen(condition).met);
                } else {
                    recorded.begin_try(condition, at(now));
                    tries[condition] += 1;
                    recorded = recorded.with(&stale);
                }
                for condition in 0..3 {
                    prop_assert_eq!(recorded.seen(condition).met, met[condition]);
                    prop_assert_eq!(recorded.seen(condition).tries, tries[condition]);
                }
            }
        }
    }

    #[test]
    fn a_change_that_is_still_to_come_counts_from_when_it_was_first_seen() {
        let none = WaitProgress::default();
        assert_eq!(none.quiet_since(at(90), at(100)), Some(at(90)));
        assert_eq!(none.quiet_since(at(900), at(100)), None);
        let seen = WaitProgress::default().with_changed_ahead(at(900), at(100));
        assert_eq!(seen.quiet_since(at(900), at(105)), Some(at(100)));
        assert_eq!(seen.quiet_since(at(900), at(95)), None, "the clock was set back once more");
        assert_eq!(seen.quiet_since(at(901), at(105)), None, "it was changed again");
        assert_eq!(seen.quiet_since(at(900), at(901)), Some(at(900)));
    }

    #[test]
    fn what_is_noted_about_a_file_is_kept_beside_the_rest() {
        let noted =
            WaitProgress::default().with_earlier("a").with_reported("wrong").with_changed_ahead(at(900), at(100));
        assert!(noted.was_earlier("a") && noted.was_reported("wrong"));
        assert_eq!(noted.quiet_since(at(900), at(105)), Some(at(100)));
        let again = noted.with_earlier("b");
        assert!(!again.was_earlier("a") && again.was_reported("wrong"));
        assert!(!WaitProgress::default().was_earlier("a") && !WaitProgress::default().was_reported("wrong"));
    }

    #[test]
    fn any_needs_one_condition_and_all_need_each() {
        let conditions = vec![External::File("/a".into()), External::File("/b".into())];
        let (any, all) = (External::Any(conditions.clone()), External::All(conditions));
        let mut progress = WaitProgress::default();
        assert!(!progress.is_over(&any) && !progress.is_over(&all));
        progress.note(1, CheckResult::Met(None), at(1));
        assert!(progress.is_over(&any) && !progress.is_over(&all));
        progress.note(0, CheckResult::NotYet("does not exist yet".into()), at(2));
        assert!(!progress.is_over(&all));
        progress.note(0, CheckResult::Met(None), at(3));
        assert!(progress.is_over(&all));
    }

    #[test]
    fn what_was_met_stays_met_and_keeps_its_result() {
        let mut progress = WaitProgress::default();
        progress.note_try(0, CheckResult::NotYet("exit status 1".into()), at(1));
        progress.note_try(0, CheckResult::Met(Some("merged".into())), at(2));
        progress.note_try(0, CheckResult::NotYet("exit status 1".into()), at(3));
        let seen = progress.seen(0);
        assert_eq!((seen.met, seen.tries, seen.why_not), (Some(at(2)), 2, None));
        assert_eq!(seen.found.as_deref(), Some("merged"));
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let mut progress = WaitProgress::default();
        assert_eq!(serde_json::to_string(&progress).unwrap(), "[]");
        progress.note_try(1, CheckResult::Met(Some("x".into())), at(2));
        let text = serde_json::to_string(&progress).unwrap();
        assert_eq!(text, r#"[{},{"met":"1970-01-01T00:00:02Z","found":"x","tried":"1970-01-01T00:00:02Z","tries":1}]"#);
        assert_eq!(serde_json::from_str::<WaitProgress>(&text).unwrap(), progress);
    }
}
