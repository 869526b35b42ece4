//! The few options of Claude Code that decide what an agent may do.
//!
//! Which options there are besides, and how they are typed, is for [`crate::claude`] to know. These are here because the
//! rules about rights are asked of recorded options, too: an archive that brings options along must not bring with them what
//! they are said to allow.

/// Options with one value that let no child do more than its parent. Whatever else there is, a person gives the root.
pub(crate) const FOR_CHILDREN: [&str; 6] =
    ["--append-system-prompt", "--disallowedTools", "--effort", "--fallback-model", "--max-budget-usd", "--max-turns"];

/// Limits of which a child may not have a higher one than its parent.
pub(crate) const LIMITS: [&str; 2] = ["--max-budget-usd", "--max-turns"];

/// Lets an agent do everything, whatever its permission mode.
pub(crate) const SKIP_PERMISSIONS: &str = "--dangerously-skip-permissions";

/// Lets an agent come to the mode in which it may do everything, and before 2.1.300 do everything in plan mode, too.
pub(crate) const MAY_SKIP_PERMISSIONS: &str = "--allow-dangerously-skip-permissions";

/// Lets a tool of the user decide on approvals. Questions would go there too.
pub(crate) const PROMPT_TOOL: &str = "--permission-prompt-tool";
