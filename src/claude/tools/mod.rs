//! Tools and hooks of Claude Code that agent-cli answers.

pub(crate) mod ask_user_question;
pub(crate) mod call_results;
pub(crate) mod exit_plan_mode;
pub(crate) mod hook_input;
pub(crate) mod native_agents;
pub(crate) mod permission_server;
pub(crate) mod remedies;
pub(crate) mod scheduling;
