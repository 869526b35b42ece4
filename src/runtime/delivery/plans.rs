//! The permission mode in which a person lets an agent continue after approving its plan.

use crate::core::agent::starting_mode::Chosen;
use crate::core::requests::proposed_plan::PlanDecision;
use crate::core::requests::request::{Delivery, RequestKind};
use crate::store::Undelivered;

/// A mode that a person chose.
pub(crate) struct ChosenMode {
    mode: String,
    /// Whether the next attempt tells the agent about it.
    is_new: bool,
}

impl ChosenMode {
    pub(crate) fn as_chosen(&self) -> Chosen<'_> {
        Chosen { mode: &self.mode, is_new: self.is_new }
    }
}

/// The mode for the next attempt of a frame, which is given this: that of the last approved plan.
pub(crate) fn chosen(undelivered: &Undelivered) -> Option<ChosenMode> {
    let approved = |delivery: &Delivery| match &delivery.kind {
        RequestKind::Plan(plan) => match plan.decided(delivery.result.text()) {
            Some(PlanDecision::Approved { mode }) => Some(mode),
            Some(PlanDecision::Refused { .. }) | None => None,
        },
        _ => None,
    };
    let new = undelivered.results.iter().rev().find_map(approved).map(|mode| ChosenMode { mode, is_new: true });
    new.or_else(|| undelivered.chosen_mode.clone().map(|mode| ChosenMode { mode, is_new: false }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::RequestId;
    use crate::core::requests::proposed_plan::ProposedPlan;
    use crate::core::requests::request::RequestResult;

    fn answered(answer: &str) -> Delivery {
        let modes = vec!["default".to_owned(), "acceptEdits".to_owned()];
        let kind = RequestKind::Plan(ProposedPlan { text: None, file: None, modes });
        Delivery { request: RequestId::random(), call: None, kind, result: RequestResult::Text(answer.to_owned()) }
    }

    #[test]
    fn the_last_approved_plan_decides_the_mode() {
        let mode = |results: Vec<Delivery>, before: Option<&str>| {
            let undelivered = Undelivered { results, chosen_mode: before.map(str::to_owned), ..Undelivered::default() };
            chosen(&undelivered).map(|chosen| (chosen.mode, chosen.is_new))
        };
        let [edits, default, refused] = ["allow acceptEdits", "allow", "deny: too large"].map(answered);
        assert_eq!(mode(vec![], None), None);
        assert_eq!(mode(vec![], Some("default")), Some(("default".into(), false)));
        assert_eq!(mode(vec![edits.clone(), refused.clone()], Some("default")), Some(("acceptEdits".into(), true)));
        assert_eq!(mode(vec![edits, default], None), Some(("default".into(), true)));
        assert_eq!(mode(vec![refused], Some("default")), Some(("default".into(), false)));
    }
}
