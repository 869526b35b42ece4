//! A finding of a check of the environment, and its severity.

use serde::Serialize;

/// The severity of a finding. The worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum Status {
    /// Nothing needs to be done.
    Ok,
    /// Chains run, but with a disadvantage, or something cannot be checked from here.
    Warning,
    /// Chains cannot run.
    Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Finding {
    /// The check. A check of several things has a finding for each problem.
    pub name: &'static str,
    /// How bad it is.
    pub status: Status,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl Finding {
    /// A finding that needs no action.
    pub(crate) fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, message: message.into(), hint: None }
    }

    /// A finding about a possible improvement.
    pub(crate) fn warning(name: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, status: Status::Warning, message: message.into(), hint: Some(hint.into()) }
    }

    /// A finding that needs action.
    pub(crate) fn problem(name: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, status: Status::Problem, message: message.into(), hint: Some(hint.into()) }
    }
}

/// The worst status of these findings.
pub(crate) fn worst(findings: &[Finding]) -> Status {
    findings.iter().map(|finding| finding.status).max().unwrap_or(Status::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_counts() {
        let findings =
            [Finding::ok("a", ""), Finding::problem("b", "is broken", "fix it"), Finding::warning("c", "", "")];
        assert_eq!(worst(&findings), Status::Problem);
        assert_eq!(worst(&findings[2..]), Status::Warning);
        assert_eq!(worst(&[]), Status::Ok);
    }
}
