//! A person's decision about a call or a plan, and plans: what an agent in plan mode wants to do.

use serde::{Deserialize, Serialize};

use crate::core::agent::launch::Launch;
use crate::core::agent::permission_mode::{self, DEFAULT};

/// A person's decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// It may run, once.
    Allow,
    /// It may not run.
    Deny {
        /// The reason, in the person's words. May be empty.
        reason: String,
    },
}

/// The decision in an answer. `None`: it is neither.
pub(crate) fn permit(text: &str) -> Option<Permit> {
    let text = text.trim();
    let (word, reason) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match word.trim_end_matches([':', ',']).to_ascii_lowercase().as_str() {
        "allow" if reason.is_empty() => Some(Permit::Allow),
        "deny" => Some(Permit::Deny { reason: reason.trim().to_owned() }),
        _ => None,
    }
}

/// A plan with which an agent wants to leave plan mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProposedPlan {
    /// The full text. `None`: the agent has written none.
    pub text: Option<String>,
    /// The file that the agent wrote it to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The permission modes in which a person can let it continue. The first one is the default.
    pub modes: Vec<String>,
}

/// A person's decision about a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlanDecision {
    /// The agent continues in this mode.
    Approved { mode: String },
    /// It remains in plan mode.
    Refused {
        /// The reason, in the person's words. May be empty.
        reason: String,
    },
}

/// The modes to continue in, apart from the mode that never asks.
const OFFERED: [&str; 4] = [DEFAULT, "acceptEdits", "auto", "dontAsk"];

/// The modes in which a person can let an agent continue that was started with `launch` and has a plan. `parent`: the launch
/// options of the agent that asked for it.
///
/// The first is the agent's own, or the default one if it was started in plan mode. A person may choose another for the
/// first agent of a chain, but the mode that never asks only if the agent was started in it. Any other agent's mode
/// cannot be wider than its parent's; if the parent was started in plan mode, a person decides with the plan.
pub(crate) fn modes(launch: &Launch, parent: Option<&Launch>) -> Vec<String> {
    let own = match launch.permission_mode.as_deref() {
        _ if launch.is_unrestricted() => permission_mode::UNRESTRICTED,
        Some(mode) if !permission_mode::covers("plan", mode) => mode,
        _ => DEFAULT,
    };
    let is_given = |mode: &str| match parent {
        None => true,
        Some(parent) => parent.covers(mode) || launch.covers(mode) || permission_mode::covers(DEFAULT, mode),
    };
    let others = OFFERED.into_iter().filter(|mode| !permission_mode::is_same(mode, own) && is_given(mode));
    std::iter::once(own).chain(others).map(str::to_owned).collect()
}

impl ProposedPlan {
    /// The decision in an answer: `allow`, `allow MODE`, `deny`, `deny REASON`. `None`: it is none of these.
    pub(crate) fn decided(&self, answer: &str) -> Option<PlanDecision> {
        let mode = || {
            let (word, mode) = answer.trim().split_once(char::is_whitespace)?;
            (permit(word) == Some(Permit::Allow)).then(|| mode.trim())
        };
        match (permit(answer), mode()) {
            (Some(Permit::Deny { reason }), _) => Some(PlanDecision::Refused { reason }),
            (Some(Permit::Allow), _) => Some(PlanDecision::Approved { mode: self.modes.first()?.clone() }),
            (None, Some(mode)) => {
                let offered = self.modes.iter().find(|offered| permission_mode::is_same(offered, mode));
                offered.map(|offered| PlanDecision::Approved { mode: offered.clone() })
            }
            (None, None) => None,
        }
    }

    /// The first line of the plan.
    pub(crate) fn summary(&self) -> &str {
        let text = self.text.as_deref().unwrap_or_default();
        text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(no plan)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::claude_args::ClaudeArgs;

    fn launch(mode: Option<&str>) -> Launch {
        Launch { permission_mode: mode.map(str::to_owned), ..Launch::default() }
    }

    #[test]
    fn an_agent_continues_as_it_was_started_and_no_wider_than_its_parent() {
        let all = Launch { args: ClaudeArgs::from_recorded(&["--dangerously-skip-permissions"]), ..Launch::default() };
        for (name, own, parent, expected) in [
            ("a root in plan mode", launch(Some("plan")), None, "default acceptEdits auto dontAsk"),
            ("a root without a mode", launch(None), None, "default acceptEdits auto dontAsk"),
            ("a root that entered plan mode", launch(Some("acceptEdits")), None, "acceptEdits default auto dontAsk"),
            ("by another name", launch(Some("manual")), None, "manual acceptEdits auto dontAsk"),
            (
                "one that may do everything",
                all.clone(),
                Some(all.clone()),
                "bypassPermissions default acceptEdits auto dontAsk",
            ),
            ("a child in plan mode", launch(Some("plan")), Some(launch(Some("plan"))), "default dontAsk"),
            (
                "a child in plan mode",
                launch(Some("plan")),
                Some(launch(Some("acceptEdits"))),
                "default acceptEdits dontAsk",
            ),
            ("of one that may do everything", launch(Some("plan")), Some(all), "default acceptEdits auto dontAsk"),
        ] {
            assert_eq!(modes(&own, parent.as_ref()).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn a_plan_is_approved_in_a_mode_that_was_offered_or_refused() {
        let plan = ProposedPlan { text: None, file: None, modes: vec!["default".into(), "acceptEdits".into()] };
        let approved = |mode: &str| Some(PlanDecision::Approved { mode: mode.into() });
        let refused = |reason: &str| Some(PlanDecision::Refused { reason: reason.into() });
        for (answer, decided) in [
            ("allow", approved("default")),
            (" Allow\n", approved("default")),
            ("allow acceptEdits", approved("acceptEdits")),
            ("allow manual", approved("default")),
            ("allow bypassPermissions", None),
            ("allow plan", None),
            ("deny", refused("")),
            ("deny: not yet, ask Ann", refused("not yet, ask Ann")),
            ("yes", None),
            ("acceptEdits", None),
            ("", None),
        ] {
            assert_eq!(plan.decided(answer), decided, "{answer:?}");
        }
        let written = ProposedPlan { text: Some("\n  \n# Do it\nthen".into()), ..plan.clone() };
        assert_eq!((written.summary(), plan.summary()), ("# Do it", "(no plan)"));
        let none = ProposedPlan { modes: Vec::new(), ..plan };
        assert_eq!(none.decided("allow"), None);
    }
}
