//! The few options of Claude Code that decide what an agent may do.
//!
//! [`crate::claude`] knows the other options and how they are written. These are here because the rules about rights
//! also apply to recorded options: an imported archive must not grant its agents what its options claim to allow.

/// Options with one value that cannot give a child more rights than its parent. Only a person can give others, to the
/// root.
pub(crate) const FOR_CHILDREN: [&str; 6] =
    ["--append-system-prompt", "--disallowedTools", "--effort", "--fallback-model", "--max-budget-usd", "--max-turns"];

/// Limits that a child may not raise above its parent's.
pub(crate) const LIMITS: [&str; 2] = ["--max-budget-usd", "--max-turns"];

/// Lets an agent do everything, whatever its permission mode.
pub(crate) const SKIP_PERMISSIONS: &str = "--dangerously-skip-permissions";

/// Lets an agent switch to the mode in which it may do everything. Before 2.1.300 it could do everything in plan mode,
/// too.
pub(crate) const MAY_SKIP_PERMISSIONS: &str = "--allow-dangerously-skip-permissions";

/// Lets one of the user's tools decide on approvals. Questions would go there too.
pub(crate) const PROMPT_TOOL: &str = "--permission-prompt-tool";
