//! The few options of Claude Code that decide what an agent may do.
//!
//! [`crate::claude`] knows the other options and how they are written. These are here because the rules about rights
//! also apply to recorded options: an imported archive must not grant its agents what its options claim to allow.

/// Options with one value that cannot give a child more rights than its parent. Only a person can give others, to the
/// root.
pub(crate) const FOR_CHILDREN: [&str; 6] =
    ["--append-system-prompt", "--disallowedTools", "--effort", "--fallback-model", "--max-budget-usd", "--max-turns"];

/// What a child's system prompt has besides its own: what it gives is added to what the agents above it have.
pub(crate) const APPENDED: &str = "--append-system-prompt";

/// System prompts of which Claude Code takes the last: a child may not replace those that the agents above it have.
pub(crate) const PROMPTS: [&str; 3] = ["--append-system-prompt-file", "--system-prompt", "--system-prompt-file"];

/// Limits that a child may not raise above its parent's.
pub(crate) const LIMITS: [&str; 2] = [MAX_BUDGET, MAX_TURNS];
pub(crate) const MAX_BUDGET: &str = "--max-budget-usd";
pub(crate) const MAX_TURNS: &str = "--max-turns";

/// Lets an agent do everything, whatever its permission mode.
pub(crate) const SKIP_PERMISSIONS: &str = "--dangerously-skip-permissions";

/// Lets an agent switch to the mode in which it may do everything. Before 2.1.300 it could do everything in plan mode,
/// too.
pub(crate) const MAY_SKIP_PERMISSIONS: &str = "--allow-dangerously-skip-permissions";

/// Lets one of the user's tools decide on approvals. Questions would go there too.
pub(crate) const PROMPT_TOOL: &str = "--permission-prompt-tool";
