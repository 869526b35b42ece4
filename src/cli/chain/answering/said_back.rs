//! Confirms how an answer was understood.

use crate::cli::output::format::cut;
use crate::core::requests::proposed_plan::{Permit, PlanDecision, permit};
use crate::core::requests::request::RequestKind;

/// The maximum length of a text in a confirmation.
const MOST: usize = 60;

/// Describes the answer `recorded` to a question of this `kind`. `typed` is the person's input, such as the numbers of
/// options.
pub(super) fn said_back(kind: &RequestKind, typed: &str, recorded: &str) -> String {
    let denied = |reason: &str| match cut(reason, MOST) {
        reason if reason.is_empty() => "denied".to_owned(),
        reason => format!("denied: {reason}"),
    };
    match kind {
        RequestKind::Permission { .. } => match permit(recorded) {
            Some(Permit::Deny { reason }) => denied(&reason),
            _ => "allowed".to_owned(),
        },
        RequestKind::Plan(plan) => match plan.decided(recorded) {
            Some(PlanDecision::Refused { reason }) => denied(&reason),
            Some(PlanDecision::Approved { mode }) => format!("allowed, to continue in mode {}", cut(&mode, MOST)),
            None => "answered".to_owned(),
        },
        _ if typed.trim() == recorded.trim() => format!("answered: {}", cut(recorded, MOST)),
        _ => format!("answered: {}: {}", cut(typed, MOST), cut(recorded, MOST)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::requests::proposed_plan::ProposedPlan;
    use crate::core::requests::question_form::Form;

    #[test]
    fn a_person_reads_what_their_answer_means() {
        let ask = RequestKind::Ask(Form::text("Which?"));
        let call = RequestKind::Permission {
            tool: "Bash".into(),
            input: json!({ "command": "ls" }),
            reason: None,
            place: None,
        };
        let modes = vec!["default".into(), "acceptEdits".into()];
        let plan = RequestKind::Plan(ProposedPlan { text: None, file: None, modes });
        for (kind, typed, recorded, said) in [
            (&ask, "1, 3", "linux, windows", "answered: 1, 3: linux, windows"),
            (&ask, " linux", "linux", "answered: linux"),
            (&ask, "a\nb\u{1b}[2J", "a\nb\u{1b}[2J", "answered: a⏎b\\u{1b}[2J"),
            (&call, "y", "allow", "allowed"),
            (&call, "deny", "deny", "denied"),
            (&call, "deny too\nlong", "deny too\nlong", "denied: too⏎long"),
            (&plan, "allow", "allow", "allowed, to continue in mode default"),
            (&plan, "allow acceptEdits", "allow acceptEdits", "allowed, to continue in mode acceptEdits"),
            (&plan, "n", "deny", "denied"),
        ] {
            assert_eq!(said_back(kind, typed, recorded), said);
        }
    }
}
