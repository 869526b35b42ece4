//! ExitPlanMode, Claude Code's own tool to leave plan mode: the plan, and the agent's result.

use serde_json::Value;

use crate::core::requests::proposed_plan::{PlanDecision, ProposedPlan};
use crate::core::requests::request::RequestResult;

pub(crate) const EXIT_PLAN_MODE: &str = "ExitPlanMode";
/// The mode that it ends.
pub(crate) const PLAN_MODE: &str = "plan";

/// The plan in a call's input. `modes`: those in which a person can let its agent continue.
///
/// From 2.1.300 on, Claude Code adds the contents of the plan's file to the input of hooks and ignores the agent's own text.
pub(crate) fn plan(input: &Value, modes: Vec<String>) -> ProposedPlan {
    let text = |name: &str| input[name].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
    ProposedPlan { text: text("plan"), file: text("planFilePath"), modes }
}

/// The agent's result if the answer decides about its plan: the tool's own words, with the approved plan.
pub(crate) fn result(plan: &ProposedPlan, answer: &str) -> Option<RequestResult> {
    Some(match (plan.decided(answer)?, &plan.text) {
        (PlanDecision::Refused { reason }, _) if reason.is_empty() => {
            RequestResult::Failed("a person has not approved the plan: you are still in plan mode".to_owned())
        }
        (PlanDecision::Refused { reason }, _) => RequestResult::Failed(reason),
        (PlanDecision::Approved { .. }, None) => {
            RequestResult::Text("User has approved exiting plan mode. You can now proceed.".to_owned())
        }
        (PlanDecision::Approved { .. }, Some(text)) => {
            let saved = plan.file.as_ref().map_or_else(String::new, |file| {
                format!(
                    "Your plan has been saved to: {file}\nYou can refer back to it if needed during implementation.\n\n"
                )
            });
            RequestResult::Text(format!(
                "User has approved your plan. You can now start coding. Start with updating your todo list if applicable\n\n\
                 {saved}## Approved Plan:\n{text}"
            ))
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn modes() -> Vec<String> {
        vec!["default".to_owned()]
    }

    #[test]
    fn the_agent_reads_the_words_of_the_tool() {
        let written = plan(&json!({"plan": "# P\n\n1. x\n", "planFilePath": "/c/plans/p.md"}), modes());
        let text = |text: &str| Some(RequestResult::Text(text.to_owned()));
        assert_eq!(
            result(&written, "allow"),
            text(
                "User has approved your plan. You can now start coding. Start with updating your todo list if applicable\n\n\
                 Your plan has been saved to: /c/plans/p.md\nYou can refer back to it if needed during implementation.\n\n\
                 ## Approved Plan:\n# P\n\n1. x\n"
            )
        );
        assert_eq!(result(&written, "deny not yet"), Some(RequestResult::Failed("not yet".to_owned())));
        assert!(
            matches!(result(&written, "deny"), Some(RequestResult::Failed(why)) if why.contains("still in plan mode"))
        );
        assert_eq!(result(&written, "perhaps"), None);
        let none = plan(&json!({}), modes());
        assert_eq!(result(&none, "allow"), text("User has approved exiting plan mode. You can now proceed."));
    }

    proptest! {
        #[test]
        fn any_json_is_read(value in crate::core::text::json::any_json()) {
            let _ = plan(&value, modes());
            let _ = plan(&json!({"plan": value, "planFilePath": value}), modes());
        }
    }
}
